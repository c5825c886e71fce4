package main

import (
	"context"
	"errors"
	"fmt"

	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
	"commerce/deploy/migrations"
)

type (
	migrateUpCommand struct {
		Database    databaseSettings
		Sharded     bool
		ServiceRole string
	}
	migrateDownCommand struct {
		Database databaseSettings
	}
	migrateStatusCommand struct {
		Database databaseSettings
	}
)

// Settings implements cli.Runnable.
func (c *migrateUpCommand) Settings() []cli.Setting {
	return append(c.Database.settings(true),
		cli.Setting{
			Name: "SERVICE_ROLE", Hint: "ROLE", Value: cli.Text(&c.ServiceRole, nil),
			Help: "Role of commerce serve. It gets the rights that the service needs, on the tables of the schema alone. Default: none is granted.",
		},
		cli.Setting{
			Name: "sharded", Value: cli.Switch(&c.Sharded),
			Help: "Create tables that Citus can shard by store. Such a database has no changes of subscriptions. See docs/citus.md.",
		})
}

// Settings implements cli.Runnable.
func (c *migrateDownCommand) Settings() []cli.Setting { return c.Database.settings(true) }

// Settings implements cli.Runnable.
func (c *migrateStatusCommand) Settings() []cli.Setting { return c.Database.settings(true) }

// Run applies the pending migrations. It is not an error if there are none, or if
// another process is applying them.
func (c *migrateUpCommand) Run(ctx context.Context, out cli.Output) error {
	return c.Database.migrate(ctx, func(m *migrations.Migrator) error {
		if err := c.checkRole(ctx, m); err != nil {
			return err
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
		return c.grant(ctx, m, out)
	})
}

// checkRole checks SERVICE_ROLE, before anything is changed.
func (c *migrateUpCommand) checkRole(ctx context.Context, m *migrations.Migrator) error {
	if c.ServiceRole == "" {
		return nil
	}
	err := m.CheckRole(ctx, c.ServiceRole)
	if errors.Is(err, migrations.ErrNoRole) {
		err = &cli.BadSetting{Name: "SERVICE_ROLE", Err: err}
	}
	return err
}

func (c *migrateUpCommand) grant(ctx context.Context, m *migrations.Migrator, out cli.Output) error {
	if c.ServiceRole == "" {
		return nil
	}
	if err := m.Grant(ctx, c.ServiceRole); err != nil {
		return err
	}
	fmt.Fprintln(out, "granted the service's rights to", c.ServiceRole)
	return nil
}

// Run rolls back one migration.
func (c *migrateDownCommand) Run(ctx context.Context, out cli.Output) error {
	return c.Database.migrate(ctx, func(m *migrations.Migrator) error {
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
	})
}

// Run lists the migrations.
func (c *migrateStatusCommand) Run(ctx context.Context, out cli.Output) error {
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
	if err := migrations.CheckMigratable(ctx, db); err != nil {
		if errors.Is(err, migrations.ErrNewer) || errors.Is(err, migrations.ErrEarly) {
			err = &cli.BadSetting{Name: "DATABASE_URL", Err: err}
		}
		return err
	}
	migrator, err := migrations.Open(db.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer migrator.Close()
	return work(migrator)
}
