//go:build unix

package ephemeral

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/connect"
	"commerce/deploy/migrations"
)

const databaseLimit = time.Minute

// Postgres returns the URL of a new, empty database of the shared Postgres
// server. Its role is a superuser. The database is dropped when the test ends.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return PostgresFrom(tb, "", nil)
}

// PostgresFrom is like Postgres, but the database is a copy of a template, which takes about
// 30 ms. prepare fills the template, once per server, and must close its connections. The name of
// the template should change when prepare changes, because a server may outlive a change; for
// example, it can contain a digest of the migrations. The database is empty if name is "".
func PostgresFrom(tb testing.TB, name string, prepare func(ctx context.Context, url string) error) string {
	tb.Helper()
	server, database := sharedPostgres.urlFor(tb), "test_"+strings.ToLower(rand.Text())
	url, err := createDatabase(server, database, name, prepare)
	must(tb, "create database", err)
	tb.Cleanup(func() {
		if err := dropDatabase(server, database); err != nil {
			tb.Errorf("ephemeral: %v", err)
		}
	})
	if mode := os.Getenv(EnvPooler); mode != "" {
		return Pooler(tb, url, mode)
	}
	return url
}

func createDatabase(server, name, template string, prepare func(ctx context.Context, url string) error) (string, error) {
	at, err := url.Parse(server)
	if err != nil || at.Host == "" {
		return "", fmt.Errorf("%s must be a URL", EnvPostgres)
	}
	urlOf := func(database string) string {
		u := *at
		u.Path = "/" + database
		return u.String()
	}
	return urlOf(name), query(server, func(ctx context.Context, conn *pgx.Conn) error {
		source := "template0"
		if template != "" {
			source = "template_" + template
			err := ensureTemplate(ctx, conn, source, func(draft string) error { return prepare(ctx, urlOf(draft)) })
			if err != nil {
				return fmt.Errorf("template %s: %w", template, err)
			}
		}
		return execute(ctx, conn, "CREATE DATABASE "+name+" TEMPLATE "+source)
	})
}

// ensureTemplate creates the template's database unless it exists. It takes a lock, because test
// processes share a server. It renames the database last, so that the name never refers to a
// half-prepared one.
func ensureTemplate(ctx context.Context, conn *pgx.Conn, name string, prepare func(draft string) error) error {
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext($1))", name); err != nil {
		return err
	}
	defer conn.Exec(ctx, "SELECT pg_advisory_unlock_all()") // at the latest, the end of the session does it
	var exists bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists)
	if err != nil || exists {
		return err
	}
	draft := name + "_draft"
	if err := execute(ctx, conn, "DROP DATABASE IF EXISTS "+draft, "CREATE DATABASE "+draft+" TEMPLATE template0"); err != nil {
		return err
	}
	if err := prepare(draft); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return execute(ctx, conn, "ALTER DATABASE "+draft+" RENAME TO "+name)
}

func execute(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func dropDatabase(server, name string) error {
	return query(server, func(ctx context.Context, conn *pgx.Conn) error {
		return execute(ctx, conn, "DROP DATABASE "+name+" WITH (FORCE)")
	})
}

// query calls do with a connection, and closes it. It takes at most databaseLimit of Patience.
func query(url string, do func(ctx context.Context, conn *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience(databaseLimit))
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(ctx, conn)
}

// Migrated is like Postgres, but the database has the service's schema. It has no rows.
func Migrated(tb testing.TB) string {
	tb.Helper()
	return PostgresFrom(tb, "migrated_"+migrations.Digest(), Migrate)
}

func Migrate(ctx context.Context, url string) error {
	return migrate(url, func(m *migrations.Migrator) error {
		_, err := m.Up(ctx)
		return err
	})
}

func Grant(ctx context.Context, url, role string) error {
	return migrate(url, func(m *migrations.Migrator) error { return m.Grant(ctx, role, migrations.ServiceRights()) })
}

func migrate(url string, work func(*migrations.Migrator) error) error {
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

// MigratedPool returns a pool for writes, without timeout, on a new empty database.
func MigratedPool(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	return OpenPool(tb, Migrated(tb), connect.PostgresConfig{Writable: true, MaxConns: 4, StatementTimeout: -1})
}

// OpenPool returns a pool for the database at url, which is closed when the test ends. Its timeouts are those of the
// service, unless c says otherwise, but with Patience. On a busy machine, a connection can take more than a second.
func OpenPool(tb testing.TB, url string, c connect.PostgresConfig) *pgxpool.Pool {
	tb.Helper()
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, Patience(10*time.Second))
	c.StatementTimeout = cmp.Or(c.StatementTimeout, Patience(time.Second))
	edit := c.Edit
	c.Edit = func(pool *pgxpool.Config) {
		pool.PingTimeout = Patience(pool.PingTimeout)
		if edit != nil {
			edit(pool)
		}
	}
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
