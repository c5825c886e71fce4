//go:build unix

package ephemeral

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Template prepares a database once for a server; the tests' own databases are
// copies of it, which takes some 30 ms whatever the preparation took.
type Template struct {
	// Name tells templates apart on one server. It should change with what
	// Prepare does, since a server may outlive a change (by a digest of the
	// migrations, say). Empty: an empty database, and Prepare is not used.
	Name string

	// Prepare fills the database at url, and leaves no connection to it.
	Prepare func(ctx context.Context, url string) error
}

const databaseLimit = time.Minute

// createDatabase makes a new database on server, from template, and returns
// its URL and what drops it.
func createDatabase(server string, template Template) (string, func() error, error) {
	ctx, cancel := context.WithTimeout(context.Background(), databaseLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", nil, fmt.Errorf("create database: %w", err)
	}
	defer conn.Close(ctx)
	source := "template0"
	if template.Name != "" {
		if source, err = template.ensure(ctx, conn, server); err != nil {
			return "", nil, fmt.Errorf("template %s: %w", template.Name, err)
		}
	}
	name := "test_" + strings.ToLower(rand.Text()[:16])
	if err := create(ctx, conn, name, source); err != nil {
		return "", nil, err
	}
	u, err := databaseURL(server, name)
	if err != nil {
		return "", nil, err
	}
	return u, func() error { return dropDatabase(server, name) }, nil
}

// ensure makes the template database unless it is there, and returns its name.
// Test processes share a server, hence the lock; the final name is given last,
// so that it never belongs to a database that is half prepared.
func (t Template) ensure(ctx context.Context, conn *pgx.Conn, server string) (name string, err error) {
	name = "template_" + t.Name
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext($1))", name); err != nil {
		return "", err
	}
	defer func() {
		_, unlock := conn.Exec(ctx, "SELECT pg_advisory_unlock(hashtext($1))", name)
		err = errors.Join(err, unlock)
	}()
	var exists bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists)
	if err != nil || exists {
		return name, err
	}
	draft := name + "_draft"
	if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+quoted(draft)); err != nil {
		return "", err
	}
	if err := create(ctx, conn, draft, "template0"); err != nil {
		return "", err
	}
	u, err := databaseURL(server, draft)
	if err != nil {
		return "", err
	}
	if err := t.Prepare(ctx, u); err != nil {
		return "", fmt.Errorf("prepare: %w", err)
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+quoted(draft)+" RENAME TO "+quoted(name))
	return name, err
}

func create(ctx context.Context, conn *pgx.Conn, name, source string) error {
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+quoted(name)+" TEMPLATE "+quoted(source)); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// dropDatabase ends the sessions that a test left open, too.
func dropDatabase(server, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), databaseLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "DROP DATABASE "+quoted(name)+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// databaseURL is server's URL with another database.
func databaseURL(server, name string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%s must be a URL", EnvPostgres)
	}
	u.Path = "/" + name
	return u.String(), nil
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
