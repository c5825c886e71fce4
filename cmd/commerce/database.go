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

type databaseSettings struct{ URL string }

func databaseSetting(to *string) cli.Setting {
	return cli.Setting{
		Name: "DATABASE_URL", Hint: "URL", Secret: true, Required: true,
		Help:  "Postgres URL, such as postgres://user@host/db, or libpq key=value pairs.",
		Value: cli.Text(to, checkDatabaseURL),
	}
}

func checkDatabaseURL(url string) error {
	db, err := connect.Postgres(context.Background(), url, connect.PostgresConfig{})
	if err == nil {
		db.Close()
	}
	return err
}

// refusedByPostgres reports whether Postgres refused the user, the password, the
// database's name or the user's permissions, or has another schema. Or a pooler refused
// a parameter of the URL. Waiting does not help with any of these.
func refusedByPostgres(err error) bool {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(refused.Code, "28") || refused.Code == "3D000" || refused.Code == "42501" ||
			strings.HasPrefix(refused.Message, "unsupported startup parameter") // its code is that of PgBouncer's other errors
	}
	return lacksRights(err) || lacksSchema(err) || errors.Is(err, migrations.ErrNewer)
}

func lacksRights(err error) bool { return errors.Is(err, migrations.ErrRights) }

func lacksSchema(err error) bool {
	return errors.Is(err, migrations.ErrOlder) || errors.Is(err, migrations.ErrEarly)
}

// reach is how long a command waits for Postgres to respond.
const reach = 10 * time.Second

// open returns a pool for a Postgres that responds and passes a check. The caller closes it.
func (d databaseSettings) open(ctx context.Context, config connect.PostgresConfig, check func(context.Context, migrations.Querier) error) (*pgxpool.Pool, error) {
	config.ConnectTimeout = reach // a command may wait for a server that is busy
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

// onMigrated returns a command that works on a database with this program's schema.
func onMigrated(
	name, help string, config connect.PostgresConfig,
	work func(context.Context, *pgxpool.Pool, cli.Output) error, more ...cli.Setting,
) cli.Command {
	var db databaseSettings
	return cli.Command{
		Name: name, Help: help, Settings: append([]cli.Setting{databaseSetting(&db.URL)}, more...),
		Run: func(ctx context.Context, out cli.Output) error {
			pool, err := db.open(ctx, config, migrations.CheckVersion)
			if err != nil {
				return err
			}
			defer pool.Close()
			return work(ctx, pool, out)
		},
	}
}
