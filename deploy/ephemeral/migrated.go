//go:build unix

package ephemeral

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/migrations"
)

// Migrated is like Postgres, but the database has the service's schema. It has no rows.
func Migrated(tb testing.TB) string {
	tb.Helper()
	return PostgresFrom(tb, Template{Name: "migrated_" + migrations.Digest(), Prepare: Migrate})
}

// Migrate applies all migrations to the database at url.
func Migrate(ctx context.Context, url string) error {
	return migrate(ctx, url, (*migrations.Migrator).Up)
}

// Grant gives a role the rights of the service.
func Grant(ctx context.Context, url, role string) error {
	return withMigrator(url, func(m *migrations.Migrator) error { return m.Grant(ctx, role) })
}

func migrate(ctx context.Context, url string, up func(*migrations.Migrator, context.Context) (migrations.Result, error)) error {
	return withMigrator(url, func(m *migrations.Migrator) error {
		_, err := up(m, ctx)
		return err
	})
}

func withMigrator(url string, work func(*migrations.Migrator) error) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	migrator, err := migrations.Open(config)
	if err != nil {
		return err
	}
	defer migrator.Close()
	return work(migrator)
}
