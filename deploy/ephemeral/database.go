//go:build unix

package ephemeral

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Template is a database that is prepared once per server. Tests get copies of it, which
// takes about 30 ms, however long the preparation took.
type Template struct {
	// Name identifies the template on its server. It should change when Prepare
	// changes, because a server may outlive a change; for example, it can contain a
	// digest of the migrations. Empty: an empty database, and Prepare is not used.
	Name string

	// Prepare fills the database at url. It must close its connections.
	Prepare func(ctx context.Context, url string) error
}

const databaseLimit = time.Minute

// Postgres returns the URL of a new, empty database of the shared Postgres
// server. Its role is a superuser. The database is dropped when the test ends.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return PostgresFrom(tb, Template{})
}

// PostgresFrom is like Postgres, but the database is a copy of template.
func PostgresFrom(tb testing.TB, template Template) string {
	tb.Helper()
	server, name := sharedPostgres.urlFor(tb), "test_"+strings.ToLower(rand.Text())
	url, err := template.create(server, name)
	must(tb, "create database", err)
	tb.Cleanup(func() {
		if err := dropDatabase(server, name); err != nil {
			tb.Errorf("ephemeral: %v", err)
		}
	})
	return url
}

// create creates a database on server, and returns its URL.
func (t Template) create(server, name string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), databaseLimit)
	defer cancel()
	err := query(ctx, server, func(conn *pgx.Conn) error {
		source := "template0"
		if t.Name != "" {
			source = "template_" + t.Name
			if err := t.ensure(ctx, conn, server, source); err != nil {
				return fmt.Errorf("template %s: %w", t.Name, err)
			}
		}
		_, err := conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+source)
		return err
	})
	if err != nil {
		return "", err
	}
	return databaseURL(server, name)
}

// ensure creates the template's database unless it exists. It takes a lock, because test
// processes share a server. It renames the database last, so that the name never refers to a
// half-prepared one.
func (t Template) ensure(ctx context.Context, conn *pgx.Conn, server, name string) error {
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
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + draft, "CREATE DATABASE " + draft + " TEMPLATE template0"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	u, err := databaseURL(server, draft)
	if err != nil {
		return err
	}
	if err := t.Prepare(ctx, u); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+draft+" RENAME TO "+name)
	return err
}

// dropDatabase drops a database and ends its open sessions.
func dropDatabase(server, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), databaseLimit)
	defer cancel()
	return query(ctx, server, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		return err
	})
}

// databaseURL returns server's URL with another database.
func databaseURL(server, name string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%s must be a URL", EnvPostgres)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// query calls do with a connection, and closes it.
func query(ctx context.Context, url string, do func(conn *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}
