package connect_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// A pooler can be put in between, and taken away, while a pool is in use.
func TestSession_IsTheServicesOwnUnlessAPoolerIsInBetween(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"transaction", "session"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			url := ephemeral.Postgres(t)
			pooler := assert.Must(pgx.ParseConfig(ephemeral.Pooler(t, url, mode)))(t)
			var pooled atomic.Bool
			pool := ephemeral.OpenPool(t, url, connect.PostgresConfig{MaxConns: 8, StatementTimeout: 7 * time.Second, Edit: func(c *pgxpool.Config) {
				direct := c.ConnConfig.DialFunc
				c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if pooled.Load() {
						addr = net.JoinHostPort(pooler.Host, fmt.Sprint(pooler.Port))
					}
					return direct(ctx, network, addr)
				}
			}})
			for _, is := range []bool{false, true, false} {
				pooled.Store(is)
				pool.Reset()
				wantReads(t, pool)
				want := session{Timeout: "7s", ReadOnly: "on", Named: true}
				if is {
					want = session{Pooled: true, Timeout: "0", ReadOnly: "off"}
				}
				for range 10 {
					assert.Equal(t, sessionOf(t, pool), want, "through a pooler: %v", is)
				}
			}
		})
	}
}

// wantReads reads with many connections at once.
func wantReads(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var all sync.WaitGroup
	for i := range 120 {
		all.Go(func() {
			var got int
			err := pool.QueryRow(t.Context(), "SELECT $1::int", i).Scan(&got)
			assert.That(t, err == nil && got == i, "read %d: %d, %v", i, got, err)
		})
	}
	all.Wait()
}

type session struct {
	Pooled            bool
	Timeout, ReadOnly string
	Named             bool // it has a prepared statement
}

func sessionOf(t *testing.T, pool *pgxpool.Pool) (s session) {
	t.Helper()
	assert.NoError(t, pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
		s.Pooled = connect.Pooled(conn.Conn())
		assert.Must(conn.Exec(t.Context(), "SELECT $1::int", 1))(t)
		const sql = `SELECT current_setting('statement_timeout'), current_setting('default_transaction_read_only'),
			EXISTS (SELECT FROM pg_prepared_statements WHERE statement = 'SELECT $1::int')`
		return conn.QueryRow(t.Context(), sql, pgx.QueryExecModeExec).Scan(&s.Timeout, &s.ReadOnly, &s.Named)
	}))
	return s
}

// Such as one that shows the process IDs of Postgres.
func TestSession_IsThatOfAPoolerIfTheURLNamesAMode(t *testing.T) {
	t.Parallel()
	pool := ephemeral.OpenPool(t, ephemeral.Postgres(t)+"&default_query_exec_mode=cache_describe", connect.PostgresConfig{})
	wantReads(t, pool)
	assert.Equal(t, sessionOf(t, pool), session{Pooled: true, Timeout: "0", ReadOnly: "off"}, "session")
}
