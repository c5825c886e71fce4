package connect_test

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// listening starts a Listener for the test. The channel receives the payloads of
// notifications, and "missed" for each call of Missed.
func listening(t *testing.T, url string, log io.Writer) (events <-chan string, admin *pgxpool.Pool) {
	t.Helper()
	admin = ephemeral.OpenPool(t, url, connect.PostgresConfig{Writable: true})
	received := make(chan string, 100)
	l := connect.Listener{
		Config: admin.Config().ConnConfig, Channel: "news", Log: slog.New(slog.NewTextHandler(log, nil)),
		Silence: 100 * time.Millisecond,
		Heard:   func(message string) { received <- message },
		Missed:  func() { received <- "missed" },
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
		case <-time.After(5 * time.Second):
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
		case <-time.After(10 * time.Second):
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

// lines collects the messages of a log.
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
			time.Sleep(3 * time.Second) // the ping after the silence has failed by then
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
