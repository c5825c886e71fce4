//go:build unix

package ephemeral

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/connect"
	"commerce/deploy/migrations"
)

// Migrated is like Postgres, but the database has the service's schema. It has no rows.
func Migrated(tb testing.TB) string {
	tb.Helper()
	return PostgresFrom(tb, Template{Name: "migrated_" + migrations.Digest(), Prepare: Migrate})
}

// Migrate applies all migrations to the database at url.
func Migrate(ctx context.Context, url string) error {
	return withMigrator(url, func(m *migrations.Migrator) error {
		_, err := m.Up(ctx)
		return err
	})
}

// Grant gives a role the rights of the service.
func Grant(ctx context.Context, url, role string) error {
	return withMigrator(url, func(m *migrations.Migrator) error { return m.Grant(ctx, role) })
}

func withMigrator(url string, work func(*migrations.Migrator) error) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	migrator, err := migrations.Open(config)
	if err != nil {
		return err
	}
	defer migrator.Close()
	return work(migrator)
}

// MigratedPool returns a pool for a new database with the service's schema and no
// rows. The pool can write, and its statements have no timeout.
func MigratedPool(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return OpenPool(tb, Migrated(tb), connect.PostgresConfig{Writable: true, MaxConns: 4, StatementTimeout: -1})
}

// OpenPool returns a pool for the database at url, which is closed when the test ends. Unless c says
// otherwise, it is patient: on a busy machine, a connection can take more than a second.
func OpenPool(tb testing.TB, url string, c connect.PostgresConfig) *pgxpool.Pool {
	tb.Helper()
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 10*time.Second)
	pool, err := connect.Postgres(tb.Context(), url, c)
	must(tb, "open pool", err)
	tb.Cleanup(pool.Close)
	return pool
}

// Settle waits until every transaction that has begun on the server of db has ended. Only then
// is what was committed so far among the changes of subscriptions. Other tests share the
// server, so that can take as long as their transactions.
func Settle(tb testing.TB, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) {
	tb.Helper()
	transaction := func(bound string) (id uint64) {
		// Unprepared, for tests that deallocate prepared statements.
		err := db.QueryRow(tb.Context(), "SELECT pg_snapshot_"+bound+"(pg_current_snapshot())", pgx.QueryExecModeExec).Scan(&id)
		must(tb, "settle", err)
		return id
	}
	for begun := transaction("xmax"); transaction("xmin") < begun; {
		time.Sleep(time.Millisecond)
	}
}
