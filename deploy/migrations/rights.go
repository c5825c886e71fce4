package migrations

import (
	"context"
	"errors"
	"fmt"
)

// Tables returns the names of the tables of the migrations, sorted. The service reads all of them. The
// schema may have other tables, of a newer release or of somebody else, which the service does not use.
func Tables() []string {
	return []string{
		"api_tokens", "coupon_products", "coupon_uses", "coupons", "customers", "deleted_subscriptions", "field_options", "fields", "folded_states",
		"goose_db_version", "page_link_key", "payment_methods", "plans", "products", "pruned_deletions", "publishable_keys",
		"saved_cards", "stores", "subscription_states", "subscription_timelines", "subscriptions", "tax_rates",
	}
}

// Writes returns what the service writes, each as a table and a right. No request waits for it, so
// an instance is also ready without it.
func Writes() []string { return []string{"api_tokens UPDATE (last_used_at)"} }

// ServiceRights returns the rights that the service needs, like Writes.
func ServiceRights() []string {
	rights := Writes()
	for _, table := range Tables() {
		rights = append(rights, table+" SELECT")
	}
	return rights
}

// PruneRights returns the rights that `commerce subscriptions prune` needs, like Writes. Locking a row
// needs the right to update one of its columns.
func PruneRights() []string {
	return []string{
		"goose_db_version SELECT", "subscriptions SELECT (store_id, id)",
		"deleted_subscriptions SELECT, DELETE, UPDATE (deleted_at)", "pruned_deletions SELECT, INSERT, UPDATE",
		"folded_states SELECT, INSERT, UPDATE", "subscription_states SELECT, DELETE, UPDATE (first, was_bearing, card_last_four, card_scheme)",
	}
}

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

// grantsSQL returns the statements that give a role, $1, the rights $2 on those tables that exist (a
// sharded database lacks some). It leaves out a right on the schema that the role has, since the owner
// of the tables need not own the schema.
const grantsSQL = `
	SELECT CASE WHEN has_schema_privilege($1, current_schema(), 'USAGE') THEN ''
			ELSE format('GRANT USAGE ON SCHEMA %I TO %I;', current_schema(), $1::text) END
		|| string_agg(format('GRANT %s ON %I.%I TO %I;', regexp_replace(may, '^\S+ ', ''), current_schema(), relname, $1), '')
	FROM unnest($2::text[]) may JOIN pg_class ON relname = split_part(may, ' ', 1)
	WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')`

// Grant gives a role rights, which are like Writes. Safe to repeat.
func (m *Migrator) Grant(ctx context.Context, role string, rights []string) error {
	var grants string
	err := m.db.QueryRowContext(ctx, grantsSQL, role, rights).Scan(&grants)
	if err == nil {
		// Statements in one text are one transaction. Two grants on a table at the same time would fail.
		_, err = m.db.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtext('commerce grant'));"+grants)
	}
	if err != nil {
		return fmt.Errorf("grant rights to %s: %w", role, err)
	}
	return nil
}
