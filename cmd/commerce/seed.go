package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/connect"
	"commerce/deploy/sample"
)

type seedCommand struct {
	Database      databaseSettings `embed:""`
	Subscriptions int              `help:"Synthetic subscriptions to add to the sample's own."`
}

// seedLock is the advisory lock under which the database is seeded.
const seedLock = 0x5EED

// Run writes the sample data. Rows of the sample that are there become as they
// were; of two runs at once one waits for the other.
func (c *seedCommand) Run(ctx context.Context, out output) error {
	if c.Subscriptions < 0 {
		return &badSetting{"--subscriptions", fmt.Errorf("%d is less than 0", c.Subscriptions)}
	}
	db, err := c.Database.openMigrated(ctx, connect.PostgresConfig{Writable: true, ApplicationName: "commerce seed", StatementTimeout: -1})
	if err != nil {
		return err
	}
	defer db.Close()
	return alone(ctx, db, func() error { return c.write(ctx, db, out) })
}

func (c *seedCommand) write(ctx context.Context, db *pgxpool.Pool, out output) error {
	now := time.Now()
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		return sample.WriteShops(ctx, tx, sample.Stores(), sample.Products(), sample.Coupons(now))
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "wrote the sample's stores, products and coupons")
	return seedSubscriptions(ctx, db, out, now, c.Subscriptions)
}

// alone runs work while no other process does so on this database.
func alone(ctx context.Context, db *pgxpool.Pool, work func() error) error {
	lock, err := db.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer lock.Release()
	if _, err := lock.Exec(ctx, "SELECT pg_advisory_lock($1)", seedLock); err != nil {
		return fmt.Errorf("wait for another seed: %w", err)
	}
	err = work()
	_, unlock := lock.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", seedLock)
	return errors.Join(err, unlock)
}
