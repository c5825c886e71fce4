//go:build unix

package ephemeral

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/migrations"
)

// Migrated is Postgres with the service's schema, and no rows.
func Migrated(tb testing.TB) string {
	tb.Helper()
	return PostgresFrom(tb, Template{Name: "migrated_" + migrations.Digest(), Prepare: Migrate})
}

// Migrate gives the database at url the service's schema.
func Migrate(ctx context.Context, url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	migrator, err := migrations.Open(config)
	if err != nil {
		return err
	}
	defer migrator.Close()
	_, err = migrator.Up(ctx)
	return err
}
