package main

import (
	"context"
	"errors"
	"fmt"

	"commerce/deploy/connect"
	"commerce/deploy/migrations"
)

type migrateCommand struct {
	Up     migrateUpCommand     `cmd:"" help:"Apply all pending migrations. Also run it after you restore a dump or upgrade Postgres."`
	Down   migrateDownCommand   `cmd:"" help:"Roll back the latest migration and delete the data in the tables and columns that it added."`
	Status migrateStatusCommand `cmd:"" help:"List all migrations, applied or pending."`
}

type (
	migrateUpCommand struct {
		Database databaseSettings `embed:""`
		Sharded  bool             `help:"Create tables that Citus can shard by store. Such a database has no changes of subscriptions. See docs/scale.md."`
	}
	migrateDownCommand struct {
		Database databaseSettings `embed:""`
	}
	migrateStatusCommand struct {
		Database databaseSettings `embed:""`
	}
)

// Run applies the pending migrations. It is not an error if there are none, or if
// another process is applying them.
func (c *migrateUpCommand) Run(ctx context.Context, out output) error {
	return c.Database.migrate(ctx, func(m *migrations.Migrator) error {
		up := m.Up
		if c.Sharded {
			up = m.UpSharded
		}
		end := startWaiting(out.errors, "applying migrations")
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
		return nil
	})
}

// Run rolls back one migration.
func (c *migrateDownCommand) Run(ctx context.Context, out output) error {
	return c.Database.migrate(ctx, func(m *migrations.Migrator) error {
		end := startWaiting(out.errors, "rolling back")
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
	})
}

// Run lists the migrations.
func (c *migrateStatusCommand) Run(ctx context.Context, out output) error {
	return c.Database.migrate(ctx, func(m *migrations.Migrator) error {
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
	})
}

// migrate calls work with a migrator. Its connections have no statement timeout, because
// a migration may take long.
func (d databaseSettings) migrate(ctx context.Context, work func(*migrations.Migrator) error) error {
	db, err := d.open(ctx, connect.PostgresConfig{Writable: true, ApplicationName: "commerce migrate", StatementTimeout: -1})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := migrations.Check(ctx, db); errors.Is(err, migrations.ErrNewer) {
		return &badSetting{"DATABASE_URL", err} // only a newer release knows the latest migrations
	}
	migrator, err := migrations.Open(db.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer migrator.Close()
	return work(migrator)
}
