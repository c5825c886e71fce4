package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
	"commerce/deploy/migrations"
)

// databaseSettings are the settings of commands that use Postgres.
type databaseSettings struct{ URL string }

// settings declares DATABASE_URL.
func (d *databaseSettings) settings(required bool) []cli.Setting {
	return []cli.Setting{{
		Name: "DATABASE_URL", Hint: "URL", Secret: true, Required: required,
		Help:  "Postgres URL, such as postgres://user@host/db, or libpq key=value pairs.",
		Value: cli.Text(&d.URL, checkDatabaseURL),
	}}
}

// checkDatabaseURL checks a URL, unless it is empty, without connecting.
func checkDatabaseURL(url string) error {
	if url == "" {
		return nil
	}
	db, err := connect.Postgres(context.Background(), url, connect.PostgresConfig{})
	if err == nil {
		db.Close()
	}
	return err
}

// refusedByPostgres reports whether Postgres refused the user, the password, the
// database's name or the user's permissions, or has an older schema. Waiting does not
// help with any of these.
func refusedByPostgres(err error) bool {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(refused.Code, "28") || refused.Code == "3D000" || refused.Code == "42501"
	}
	return lacksRights(err) || lacksSchema(err)
}

func lacksRights(err error) bool { return errors.Is(err, migrations.ErrRights) }

func lacksSchema(err error) bool {
	return errors.Is(err, migrations.ErrOlder) || errors.Is(err, migrations.ErrEarly)
}

// reach is how long a command waits for Postgres to respond.
const reach = 5 * time.Second

// open returns a pool for a Postgres that responds and passes a check. The caller closes it.
func (d databaseSettings) open(ctx context.Context, config connect.PostgresConfig, check func(context.Context, *pgxpool.Pool) error) (*pgxpool.Pool, error) {
	db, err := connect.Postgres(ctx, d.URL, config)
	if err != nil {
		return nil, &cli.BadSetting{Name: "DATABASE_URL", Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	if err = check(ctx, db); err == nil {
		return db, nil
	}
	db.Close()
	if refusedByPostgres(err) {
		return nil, &cli.BadSetting{Name: "DATABASE_URL", Err: err}
	}
	return nil, fmt.Errorf("DATABASE_URL: %w", err)
}

// openMigrated is open for a database that must have this program's schema.
func (d databaseSettings) openMigrated(ctx context.Context, config connect.PostgresConfig) (*pgxpool.Pool, error) {
	return d.open(ctx, config, func(ctx context.Context, db *pgxpool.Pool) error { return migrations.Check(ctx, db) })
}
