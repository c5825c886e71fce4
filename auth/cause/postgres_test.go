package cause_test

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/cause"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// failed runs a statement for at most a second of Patience and returns its described error.
func failed(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(time.Second))
	defer cancel()
	began := time.Now()
	_, err := pool.Exec(ctx, sql, args...)
	return cause.OfPostgres(pool, began, err)
}

// wantText compares an error, where ADDR is the address in a URL and TIME any duration.
func wantText(t *testing.T, err error, rawURL, want string) {
	t.Helper()
	u := assert.Must(url.Parse(rawURL))(t)
	want = strings.NewReplacer("ADDR", regexp.QuoteMeta(u.Host), "TIME", `\d+(\.\d+)?m?s`).Replace(regexp.QuoteMeta(want))
	assert.That(t, err != nil && regexp.MustCompile("^"+want+"$").MatchString(err.Error()), "got %v\nwant %s", err, want)
}

func TestOfPostgres_NamesTheServerAndWhatHappened(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, url string) *pgxpool.Pool {
		return ephemeral.OpenPool(t, url, connect.PostgresConfig{MaxConns: 1, StatementTimeout: 100 * time.Millisecond})
	}
	t.Run("a statement", func(t *testing.T) {
		t.Parallel()
		url := ephemeral.Postgres(t)
		for sql, want := range map[string]string{
			"SELECT pg_sleep(10)":       "canceling statement due to statement timeout after TIME (SQLSTATE 57014)",
			"SELECT * FROM none":        `relation "none" does not exist (SQLSTATE 42P01)`,
			"SELECT 'sara'::text::int4": "it refused a value: SQLSTATE 22P02",
		} {
			wantText(t, failed(t, open(t, url), sql), url, "postgres ADDR: "+want)
		}
	})
	t.Run("no connection is free", func(t *testing.T) {
		t.Parallel()
		url := ephemeral.Postgres(t)
		pool := open(t, url)
		conn := assert.Must(pool.Acquire(t.Context()))(t)
		defer conn.Release()
		wantText(t, failed(t, pool, "SELECT 1"), url, "postgres ADDR: no connection became free within TIME: all 1 are in use")
	})
	t.Run("stopped and frozen", func(t *testing.T) {
		t.Parallel()
		server := ephemeral.StartPostgres(t)
		pool := open(t, server.URL)
		assert.NoError(t, failed(t, pool, "SELECT 1"))
		server.Freeze()
		wantText(t, failed(t, pool, "SELECT 1"), server.URL, "postgres ADDR: canceled after TIME")
		wantText(t, failed(t, open(t, server.URL), "SELECT 1"), server.URL, "postgres ADDR: no connection after TIME")
		server.Kill()
		wantText(t, failed(t, open(t, server.URL), "SELECT 1"), server.URL, "postgres ADDR: connection refused")
	})
	t.Run("another database", func(t *testing.T) {
		t.Parallel()
		u := assert.Must(url.Parse(ephemeral.Postgres(t)))(t)
		u.Path = "/none"
		wantText(t, failed(t, open(t, u.String()), "SELECT 1"), u.String(), `postgres ADDR: database "none" does not exist (SQLSTATE 3D000)`)
	})
}

func TestOfPostgres_KeepsTheError(t *testing.T) {
	t.Parallel()
	pool := ephemeral.OpenPool(t, ephemeral.Postgres(t), connect.PostgresConfig{})
	err := failed(t, pool, "SELECT * FROM none")
	refused, ok := errors.AsType[*pgconn.PgError](err)
	assert.That(t, ok && refused.Code == "42P01", "got %v", err)
	for _, same := range []error{nil, pgx.ErrNoRows} {
		err := cause.OfPostgres(pool, time.Now(), same)
		assert.That(t, err == same, "%v became %v", same, err)
	}
}

func TestPostgres_NamesAllHosts(t *testing.T) {
	t.Parallel()
	config := assert.Must(pgx.ParseConfig("postgres://user:hunter@a:5432,b:5433/db?sslmode=prefer"))(t)
	assert.Equal(t, cause.Postgres(config), "postgres a:5432,b:5433", "cause.Postgres(config)")
}
