package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"
)

// leftOut are the migrations that a sharded database does not have: the changes of
// subscriptions, whose triggers Citus refuses.
var leftOut = [...]int64{102}

// ErrHasChanges is for a database that cannot become a sharded one, because it has the
// migrations that such a database leaves out.
var ErrHasChanges = errors.New("the database has 00102_changes.sql: run `commerce migrate down` until `commerce migrate status` lists it as pending")

// UpSharded applies the pending migrations for a database that Citus shards by store (see
// docs/citus.md). It leaves out the changes of subscriptions. From then on, Up does so too. It
// returns ErrHasChanges if the database has them.
func (m *Migrator) UpSharded(ctx context.Context) (Result, error) {
	has, _, err := m.applied(ctx)
	if err != nil {
		return Result{}, err
	}
	if has {
		return Result{}, ErrHasChanges
	}
	return up(ctx, m.sharded)
}

// provider returns the migrations of the database: those of sharded if UpSharded has left
// something out, otherwise all.
func (m *Migrator) provider(ctx context.Context) (*goose.Provider, error) {
	changes, later, err := m.applied(ctx)
	if later && !changes {
		return m.sharded, err
	}
	return m.all, err
}

// applied reports whether the first migration of leftOut is applied, and any later one.
func (m *Migrator) applied(ctx context.Context) (changes, later bool, err error) {
	if err = m.db.QueryRowContext(ctx, "SELECT to_regclass('goose_db_version') IS NOT NULL").Scan(&later); err == nil && later {
		err = m.db.QueryRowContext(ctx, `SELECT coalesce(bool_or(version_id = $1), false), coalesce(bool_or(version_id > $1), false)
			FROM goose_db_version WHERE is_applied`, leftOut[0]).Scan(&changes, &later)
	}
	if err != nil {
		return false, false, fmt.Errorf("read schema version: %w", err)
	}
	return changes, later, nil
}
