package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/connect"
	"commerce/deploy/migrations"
)

// databaseSettings are what commands that use Postgres have in common.
type databaseSettings struct {
	URL string `name:"database-url" env:"DATABASE_URL" secret:"" help:"Postgres, as libpq has it: postgres://user:password@host/database, or key=value pairs."`
}

// reach is how long Postgres has to answer before a command gives up on it.
const reach = 5 * time.Second

// open returns a pool for a Postgres that answered just now. The caller closes it.
func (d databaseSettings) open(ctx context.Context, config connect.PostgresConfig) (*pgxpool.Pool, error) {
	if d.URL == "" {
		return nil, &badSetting{"DATABASE_URL", errors.New("is required")}
	}
	db, err := connect.Postgres(ctx, d.URL, config)
	if err != nil {
		return nil, &badSetting{"DATABASE_URL", err}
	}
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	if err := db.Ping(ctx); err != nil {
		db.Close()
		return nil, &badSetting{"DATABASE_URL", err}
	}
	return db, nil
}

// openMigrated is open for a database whose schema is the one this program was
// built for.
func (d databaseSettings) openMigrated(ctx context.Context, config connect.PostgresConfig) (*pgxpool.Pool, error) {
	db, err := d.open(ctx, config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	if err := migrations.Check(ctx, db); err != nil {
		db.Close()
		return nil, &badSetting{"DATABASE_URL", err}
	}
	return db, nil
}
