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

// createDatabase creates a database on server from template. It returns the database's
// URL and a function that drops it.
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

// ensure creates the template database unless it exists, and returns its name. It takes
// a lock, because test processes share a server. It renames the database last, so that
// the name never refers to a half-prepared one.
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

// dropDatabase drops a database and ends its open sessions.
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

// databaseURL returns server's URL with another database.
func databaseURL(server, name string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%s must be a URL", EnvPostgres)
	}
	u.Path = "/" + name
	return u.String(), nil
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
