package main

import (
	"context"
	"errors"
	"fmt"

	"commerce/deploy/connect"
	"commerce/deploy/migrations"
)

type migrateCommand struct {
	Up     migrateUpCommand     `cmd:"" help:"Bring the schema up to this program's."`
	Down   migrateDownCommand   `cmd:"" help:"Roll back the latest migration. Data in the tables and columns that it added is deleted."`
	Status migrateStatusCommand `cmd:"" help:"List the migrations and which of them are applied."`
}

type (
	migrateUpCommand struct {
		Database databaseSettings `embed:""`
	}
	migrateDownCommand struct {
		Database databaseSettings `embed:""`
	}
	migrateStatusCommand struct {
		Database databaseSettings `embed:""`
	}
)

// Run brings the schema up. A schema that is up already, or being brought up by
// another process, is no failure.
func (c *migrateUpCommand) Run(ctx context.Context, out output) error {
	return c.Database.migrate(ctx, func(m *migrations.Migrator) error {
		steps, err := m.Up(ctx)
		for _, s := range steps {
			fmt.Fprintln(out, "applied", s.Name)
		}
		if err == nil && len(steps) == 0 {
			fmt.Fprintln(out, "nothing to do")
		}
		return err
	})
}

// Run takes one migration back.
func (c *migrateDownCommand) Run(ctx context.Context, out output) error {
	return c.Database.migrate(ctx, func(m *migrations.Migrator) error {
		step, err := m.Down(ctx)
		switch {
		case err != nil:
			return err
		case step == nil:
			fmt.Fprintln(out, "nothing to do")
		default:
			fmt.Fprintln(out, "taken back", step.Name)
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
			if s.Applied {
				state = "applied"
			}
			fmt.Fprintf(out, "%-8s %s\n", state, s.Name)
		}
		return err
	})
}

// migrate works on the schema with connections of its own: a migration takes as
// long as it takes.
func (d databaseSettings) migrate(ctx context.Context, work func(*migrations.Migrator) error) error {
	db, err := d.open(ctx, connect.PostgresConfig{Writable: true, ApplicationName: "commerce migrate", StatementTimeout: -1})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := migrations.Check(ctx, db); errors.Is(err, migrations.ErrNewer) {
		return &badSetting{"DATABASE_URL", err} // what there is to undo, or to list, only that release knows
	}
	migrator, err := migrations.Open(db.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer migrator.Close()
	return work(migrator)
}
