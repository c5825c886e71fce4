package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
	"commerce/deploy/migrations"
	"commerce/deploy/sample"
)

func newMigrate() cli.Command {
	var db databaseSettings
	command := func(name, help string, work func(context.Context, *migrations.Migrator, cli.Output) error, more ...cli.Setting) cli.Command {
		return cli.Command{
			Name: name, Help: help, Settings: append([]cli.Setting{databaseSetting(&db.URL)}, more...),
			Run: func(ctx context.Context, out cli.Output) error {
				m, err := db.openMigrator(ctx)
				if err != nil {
					return err
				}
				defer m.Close()
				return work(ctx, m, out)
			},
		}
	}
	var up migrateUp
	return cli.Command{Name: "migrate", Help: "Migrate the database schema.", Commands: []cli.Command{
		command("up", "Apply all pending migrations. Also run it after you restore a dump or upgrade Postgres.", up.run,
			cli.Setting{
				Name: "SERVICE_ROLE", Hint: "ROLE", Value: cli.Text(&up.ServiceRole, nil),
				Help: "Role of commerce serve. It gets the rights that the service needs, on the tables of the schema alone. Default: none is granted.",
			},
			cli.Setting{
				Name: "PRUNE_ROLE", Hint: "ROLE", Value: cli.Text(&up.PruneRole, nil),
				Help: "Role of commerce subscriptions prune. It gets the rights to delete records of deletions and to shorten histories. Default: none is granted.",
			},
			cli.Setting{
				Name: "sharded", Value: cli.Switch(&up.Sharded),
				Help: "Create tables that Citus can shard by store. Such a database has no changes of subscriptions. See docs/scale.md.",
			}),
		command("down", "Roll back the latest migration and delete the data in the tables and columns that it added.", migrateDown),
		command("status", "List all migrations, applied or pending.", migrateStatus),
	}}
}

type migrateUp struct {
	Sharded     bool
	ServiceRole string // "": none
	PruneRole   string // "": none
}

// run applies the pending migrations. It is not an error if there are none, or if another process
// is applying them. It checks the roles before it changes anything.
func (c *migrateUp) run(ctx context.Context, m *migrations.Migrator, out cli.Output) error {
	type grant struct {
		setting, role, what string
		rights              []string
	}
	grants := slices.DeleteFunc([]grant{
		{"SERVICE_ROLE", c.ServiceRole, "the service's rights", migrations.ServiceRights()},
		{"PRUNE_ROLE", c.PruneRole, "the rights of commerce subscriptions prune", migrations.PruneRights()},
	}, func(g grant) bool { return g.role == "" })
	for _, g := range grants {
		switch err := m.CheckRole(ctx, g.role); {
		case errors.Is(err, migrations.ErrNoRole):
			return &cli.BadSetting{Name: g.setting, Err: err}
		case err != nil:
			return err
		}
	}
	up := m.Up
	if c.Sharded {
		up = m.UpSharded
	}
	end := startWaiting(out.Errors, "applying migrations")
	result, err := up(ctx)
	end()
	for _, s := range result.Applied {
		fmt.Fprintln(out, "applied", s.Name)
	}
	switch {
	case err != nil:
		return err
	case result.Restarted:
		fmt.Fprintf(out, "the database is a copy: stamped %d subscriptions again, so that readers of their changes start from the beginning\n", result.Stamped)
	case len(result.Applied) == 0:
		fmt.Fprintln(out, "nothing to do")
	}
	for _, g := range grants {
		if err := m.Grant(ctx, g.role, g.rights); err != nil {
			return err
		}
		fmt.Fprintln(out, "granted", g.what, "to", g.role)
	}
	return nil
}

func migrateDown(ctx context.Context, m *migrations.Migrator, out cli.Output) error {
	end := startWaiting(out.Errors, "rolling back")
	step, err := m.Down(ctx)
	end()
	switch {
	case err != nil:
		return err
	case step == nil:
		fmt.Fprintln(out, "nothing to do")
	default:
		fmt.Fprintln(out, "rolled back", step.Name)
	}
	return nil
}

func migrateStatus(ctx context.Context, m *migrations.Migrator, out cli.Output) error {
	steps, err := m.Status(ctx)
	for _, s := range steps {
		state := "pending"
		switch {
		case s.Applied:
			state = "applied"
		case s.LeftOut:
			state = "left out"
		}
		fmt.Fprintf(out, "%-8s %s\n", state, s.Name)
	}
	return err
}

// openMigrator sets no statement timeout, because a migration may take long.
func (d databaseSettings) openMigrator(ctx context.Context) (*migrations.Migrator, error) {
	config := connect.PostgresConfig{Writable: true, ApplicationName: "commerce migrate", StatementTimeout: -1}
	db, err := d.open(ctx, config, migrations.CheckMigratable)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return migrations.Open(db.Config().ConnConfig)
}

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
