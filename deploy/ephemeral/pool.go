//go:build unix

package ephemeral

import (
	"cmp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/connect"
)

// OpenPool returns a pool for the database at url, which is closed when the test ends. Unless c says
// otherwise, it is patient: on a busy machine, a connection can take more than a second.
func OpenPool(tb testing.TB, url string, c connect.PostgresConfig) *pgxpool.Pool {
	tb.Helper()
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 10*time.Second)
	pool, err := connect.Postgres(tb.Context(), url, c)
	if err != nil {
		tb.Fatalf("ephemeral: %v", err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// MigratedPool returns a pool for a new database with the service's schema and no
// rows. The pool can write, and its statements have no timeout.
func MigratedPool(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return OpenPool(tb, Migrated(tb), connect.PostgresConfig{Writable: true, MaxConns: 4, StatementTimeout: -1})
}
