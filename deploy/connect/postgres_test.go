package connect_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestPostgres_SendsItsSettingsToTheServer(t *testing.T) {
	t.Parallel()
	const ask = `SELECT name || '=' || setting FROM pg_settings WHERE name = ANY($1) ORDER BY name`
	names := []string{"application_name", "default_transaction_read_only", "statement_timeout"}
	url := ephemeral.Postgres(t)
	for name, test := range map[string]struct {
		config connect.PostgresConfig
		want   []string
	}{
		"the service's": {
			connect.PostgresConfig{},
			[]string{"application_name=commerce", "default_transaction_read_only=on", "statement_timeout=1000"},
		},
		"a writer's": {
			connect.PostgresConfig{Writable: true, ApplicationName: "migrate", StatementTimeout: -1},
			[]string{"application_name=migrate", "default_transaction_read_only=off", "statement_timeout=0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.config.ConnectTimeout = ephemeral.Patience(10 * time.Second)
			pool := assert.Must(connect.Postgres(t.Context(), url, test.config))(t)
			t.Cleanup(pool.Close)
			rows, _ := pool.Query(t.Context(), ask, names)
			got := assert.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
			assert.Equal(t, got, test.want, "settings")
		})
	}
}

func TestPostgres_LimitsTheTimeToConnect(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartPostgres(t)
	server.Freeze()
	pool := ephemeral.OpenPool(t, server.URL, connect.PostgresConfig{ConnectTimeout: 100 * time.Millisecond})
	start := time.Now()
	err := pool.Ping(t.Context())
	took := time.Since(start)
	assert.That(t, err != nil && took <= ephemeral.Patience(20*time.Second), "frozen: %v after %v, want an error after 100ms", err, took)
}

// pgx itself has no free connection for 15 s.
func TestPostgres_UsesTheNextServerIfOneHangs(t *testing.T) {
	t.Parallel()
	first, second := ephemeral.StartPostgres(t), ephemeral.StartPostgres(t)
	both := strings.Replace(first.URL, addr(t, first), addr(t, first)+","+addr(t, second), 1)
	pool := ephemeral.OpenPool(t, both, connect.PostgresConfig{MaxConns: 1, ConnectTimeout: ephemeral.Patience(time.Second)})
	port := func() (port string, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(time.Second))
		defer cancel()
		err = pool.QueryRow(ctx, "SHOW port").Scan(&port)
		return port, err
	}
	before := assert.Must(port())(t)
	first.Freeze()
	for began := time.Now(); ; {
		after, err := port()
		if err == nil {
			assert.That(t, after != before, "the same server")
			return
		}
		assert.Require(t, time.Since(began) < ephemeral.Patience(10*time.Second), "still: %v", err)
	}
}

// If its disk hangs, a server accepts connections, and requests to cancel that have no effect.
func TestPostgres_ReplacesNoConnectionIfItsServerAnswers(t *testing.T) {
	t.Parallel()
	limit := min(ephemeral.Patience(time.Second), 4*time.Second) // after 15 s, pgx closes the connection in any case
	pool := ephemeral.OpenPool(t, ephemeral.StartPostgres(t).URL, connect.PostgresConfig{MaxConns: 1, ConnectTimeout: limit})
	var backend int
	assert.NoError(t, pool.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&backend))
	assert.NoError(t, syscall.Kill(backend, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(backend, syscall.SIGCONT) })
	for began := time.Now(); time.Since(began) < 3*limit; {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := pool.Exec(ctx, "SELECT 1")
		cancel()
		assert.Require(t, err != nil, "the pool has opened another connection")
	}
}

func TestPostgres_ReportsABadURLInOneLineWithoutThePassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                        "empty",
		"postgres://u:hunter/2@h/db":              "percent-encoded",
		"postgres://u:hun%zzter@h/db":             "percent-encoded",
		"postgres://u:hunter@h:port/db":           "port",
		"postgres://u:p@hunter@h/db":              "percent-encoded",
		"postgres://u:hunter@h/db?sslmode=hunter": "sslmode",
		"host=h password='hunter":                 "percent-encoded",
		"postgres://u:hunter@h/db?sslrootcert=/nowhere/ca.pem": "/nowhere/ca.pem",
	} {
		_, err := connect.Postgres(t.Context(), url, connect.PostgresConfig{})
		text := fmt.Sprint(err)
		assert.That(t, strings.Contains(text, want) && !strings.Contains(text, "hun") && !strings.Contains(text, "\n"),
			"Postgres(%q): %q, want one line with %q and no password", url, text, want)
	}
}

func TestPostgresHosts_AreThoseOfTheURLEachOnce(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][]string{
		"postgres://u@a/db":                                    {"a:5432"},
		"postgres://u@a:1,b:2,a:1/db?sslmode=prefer":           {"a:1", "b:2"},
		"host=a,b port=1,2 dbname=db sslmode=require":          {"a:1", "b:2"},
		"postgres://u@[::1]:1,b/db?sslmode=disable":            {"[::1]:1", "b:5432"},
		"host=/var/run/postgresql,b user=u dbname=db port=1,2": {"/var/run/postgresql:1", "b:2"},
	} {
		assert.Equal(t, assert.Must(connect.PostgresHosts(url))(t), want, "%s", url)
	}
	_, err := connect.PostgresHosts("postgres://u:hun/2@h/db")
	assert.That(t, err != nil, "a bad URL has hosts")
}

func TestPostgres_UsesOnlyOneHost(t *testing.T) {
	t.Parallel()
	for mode, targets := range map[string]int{"disable": 1, "require": 1, "prefer": 2, "allow": 2} { // without TLS too
		for _, only := range []string{"a:1", "b:2", "c:3"} {
			edit := func(pool *pgxpool.Config) {
				hosts := map[string]bool{pool.ConnConfig.Host: true}
				for _, other := range pool.ConnConfig.Fallbacks {
					hosts[other.Host] = true
				}
				assert.Equal(t, 1+len(pool.ConnConfig.Fallbacks), targets, "sslmode=%s, only %s: targets", mode, only)
				assert.Equal(t, hosts, map[string]bool{only[:1]: true}, "sslmode=%s: hosts", mode)
			}
			config := connect.PostgresConfig{Only: only, Edit: edit}
			assert.Must(connect.Postgres(t.Context(), "postgres://u@a:1,b:2,c:3/db?sslmode="+mode, config))(t).Close()
		}
	}
}

// listening starts a Listener for the test. The channel receives the payloads of
// notifications, and "missed" for each call of Missed.
func listening(t *testing.T, url string, log io.Writer) (events <-chan string, admin *pgxpool.Pool) {
	t.Helper()
	admin = ephemeral.OpenPool(t, url, connect.PostgresConfig{Writable: true})
	received := make(chan string, 100)
	l := connect.Listener{
		Config: admin.Config().ConnConfig, Channel: "news", Log: slog.New(slog.NewTextHandler(log, nil)),
		Silence: 100 * time.Millisecond, Timeout: ephemeral.Patience(time.Second),
		Heard:  func(message string) { received <- message },
		Missed: func() { received <- "missed" },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(ephemeral.Patience(5 * time.Second)):
			t.Error("the listener did not end with its context")
		}
	})
	return received, admin
}

func wantEvents(t *testing.T, events <-chan string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		select {
		case got := <-events:
			assert.Require(t, got == w, "received %q, want %q", got, w)
		case <-time.After(ephemeral.Patience(10 * time.Second)):
			t.Fatalf("did not receive %q", w)
		}
	}
}

func notify(t *testing.T, admin *pgxpool.Pool, message string) {
	t.Helper()
	assert.Must(admin.Exec(t.Context(), "SELECT pg_notify('news', $1)", message))(t)
}

const cutListeners = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '% listener'`

func TestListener_ReceivesInOrderAndReportsReconnects(t *testing.T) {
	t.Parallel()
	events, admin := listening(t, ephemeral.Postgres(t), io.Discard)
	wantEvents(t, events, "missed")
	notify(t, admin, "one")
	notify(t, admin, "two")
	wantEvents(t, events, "one", "two")

	assert.Must(admin.Exec(t.Context(), cutListeners))(t)
	wantEvents(t, events, "missed")
	notify(t, admin, "three")
	wantEvents(t, events, "three")
}

func TestListener_NeedsNoLogger(t *testing.T) {
	t.Parallel()
	nowhere := assert.Must(pgx.ParseConfig("postgres://127.0.0.1:1/none"))(t)
	l := connect.Listener{Config: nowhere, Channel: "news"}
	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer cancel()
	l.Run(ctx) // logs that it cannot connect
}

type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(line))
	return len(line), nil
}

func (l *lines) seen() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

func TestListener_ReconnectsAndLogsTheLossAndTheReturnOnce(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]func(*ephemeral.Server){
		"restart": func(server *ephemeral.Server) {
			server.Kill()
			time.Sleep(500 * time.Millisecond) // for some tries
			server.Restart()
		},
		"freeze": func(server *ephemeral.Server) {
			server.Freeze()
			time.Sleep(ephemeral.Patience(3 * time.Second)) // the ping after the silence has failed by then
			server.Thaw()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, log := ephemeral.StartPostgres(t), &lines{}
			events, admin := listening(t, server.URL, log)
			wantEvents(t, events, "missed")
			outage(server)
			wantEvents(t, events, "missed")
			admin.Reset()
			notify(t, admin, "one")
			wantEvents(t, events, "one")
			got := log.seen()
			if len(got) != 2 || !strings.Contains(got[0], "level=WARN") || !strings.Contains(got[0], "postgres "+addr(t, server)+": ") ||
				!strings.Contains(got[1], "level=INFO") || !strings.Contains(got[1], "works again") || !strings.Contains(got[1], "after=") {
				t.Errorf("logged %q", got)
			}
		})
	}
}
