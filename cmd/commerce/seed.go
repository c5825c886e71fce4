package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
	"commerce/deploy/sample"
)

// newSeed returns the command that writes the sample data. It restores sample rows that were
// changed. Two runs at the same time take turns.
func newSeed() cli.Command {
	var synthetic int
	return onMigrated("seed", "Write the sample data to the database. Safe to repeat.",
		connect.PostgresConfig{Writable: true, ApplicationName: "commerce seed", StatementTimeout: -1},
		func(ctx context.Context, db *pgxpool.Pool, out cli.Output) error {
			return alone(ctx, db, func() error { return writeSample(ctx, db, out, synthetic) })
		},
		cli.Setting{
			Name: "subscriptions", Default: "0", Help: "Number of synthetic subscriptions to add to the sample data.", Value: cli.Number(&synthetic, 0, 0),
		})
}

func writeSample(ctx context.Context, db *pgxpool.Pool, out cli.Output, synthetic int) error {
	now := time.Now()
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := sample.WriteStores(ctx, tx, sample.Stores(), sample.Products(), sample.Coupons(now)); err != nil {
			return err
		}
		return sample.WriteCouponUses(ctx, tx, sample.CouponUses())
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "wrote the sample's stores, products and coupons")
	customers, subscriptions := sample.Customers(), sample.Subscriptions(now)
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := sample.WriteSubscriptions(ctx, tx, customers, subscriptions); err != nil {
			return err
		}
		return sample.WritePast(ctx, tx, sample.Pasts(now))
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "wrote the sample's %d subscriptions of %d customers\n", len(subscriptions), len(customers))
	if synthetic == 0 {
		return nil
	}
	g := sample.NewGenerator(synthetic, now)
	bar := startProgress(out.Errors, "writing rows", g.Subscriptions)
	err = g.Write(ctx, db, func(n int) { _ = bar.Add(n) })
	bar.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "added %d synthetic subscriptions of %d customers in %d stores\n", g.Subscriptions, g.Customers, len(g.Stores))
	return nil
}

// seedLock is the Postgres advisory lock that a seed holds.
const seedLock = 0x5EED

// alone runs work while no other seed runs on this database. It waits for one that
// does.
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
