package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// tables are those of the migrations, all of which the service reads. The schema may have other
// tables, of a newer release or of somebody else, which the service does not use.
var tables = []string{
	"api_tokens", "coupon_products", "coupon_uses", "coupons", "customers", "deleted_subscriptions", "field_options", "fields",
	"goose_db_version", "page_link_key", "payment_methods", "plans", "products", "pruned_deletions", "publishable_keys",
	"saved_cards", "stores", "subscription_timelines", "subscriptions",
}

// Tables returns the names of the tables of the migrations, sorted.
func Tables() []string { return slices.Clone(tables) }

// Writes returns what the service writes, each as a table and a right. No request waits for it, so
// an instance is also ready without it.
func Writes() []string { return []string{"api_tokens UPDATE (last_used_at)"} }

// ErrNoRole is for a role that does not exist.
var ErrNoRole = errors.New("the role does not exist: see deploy/postgres/roles.sql")

// CheckRole returns an error that wraps ErrNoRole if the server has no such role.
func (m *Migrator) CheckRole(ctx context.Context, role string) error {
	var exists bool
	err := m.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", role).Scan(&exists)
	switch {
	case err != nil:
		return fmt.Errorf("look up role %s: %w", role, err)
	case !exists:
		return fmt.Errorf("%s: %w", role, ErrNoRole)
	}
	return nil
}

// Grant gives a role the rights that the service needs, on the tables of the migrations alone. Safe
// to repeat.
func (m *Migrator) Grant(ctx context.Context, role string) error {
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("grant rights to %s: %w", role, err)
	}
	defer conn.Close()
	err = conn.Raw(func(driver any) error {
		return pgx.BeginFunc(ctx, driver.(*stdlib.Conn).Conn(), func(tx pgx.Tx) error { return grant(ctx, tx, role) })
	})
	if err != nil {
		return fmt.Errorf("grant rights to %s: %w", role, err)
	}
	return nil
}

func grant(ctx context.Context, tx pgx.Tx, role string) error {
	// Two grants on a table at the same time would fail.
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('commerce grant'))"); err != nil {
		return err
	}
	var schema string
	var usable bool
	if err := tx.QueryRow(ctx, "SELECT current_schema(), has_schema_privilege($1, current_schema(), 'USAGE')", role).Scan(&schema, &usable); err != nil {
		return err
	}
	to := " TO " + pgx.Identifier{role}.Sanitize()
	var script strings.Builder
	if !usable { // otherwise the owner of the tables need not own the schema
		fmt.Fprintf(&script, "GRANT USAGE ON SCHEMA %s%s;\n", pgx.Identifier{schema}.Sanitize(), to)
	}
	rows, _ := tx.Query(ctx, "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname = ANY($1)", tables)
	existing, err := pgx.CollectRows(rows, pgx.RowTo[string]) // a sharded database lacks some
	if err != nil {
		return err
	}
	rights := Writes()
	for _, table := range existing {
		rights = append(rights, table+" SELECT")
	}
	for _, right := range rights {
		table, does, _ := strings.Cut(right, " ")
		fmt.Fprintf(&script, "GRANT %s ON %s%s;\n", does, pgx.Identifier{schema, table}.Sanitize(), to)
	}
	_, err = tx.Conn().PgConn().Exec(ctx, script.String()).ReadAll()
	return err
}
