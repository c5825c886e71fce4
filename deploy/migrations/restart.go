package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// restartChanges stamps all subscriptions again if the database was restored from a dump or
// upgraded by pg_upgrade: its changed_in then has transaction IDs of another server.
//
// Everything is one transaction. Meanwhile the subscriptions can be read, and instances
// refuse to read changes.
func restartChanges(ctx context.Context, db *sql.DB) (restarted bool, stamped int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, 0, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if restarted, err = isCopy(ctx, tx); err != nil || !restarted {
		return false, 0, err
	}
	for _, statement := range []string{
		"DELETE FROM subscription_timelines",
		"DELETE FROM deleted_subscriptions",
		"DELETE FROM pruned_deletions",
		"SELECT mark_timeline()",
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return false, 0, fmt.Errorf("%s: %w", statement, err)
		}
	}
	result, err := tx.ExecContext(ctx, "UPDATE subscriptions SET id = id") // a trigger stamps them
	if err != nil {
		return false, 0, fmt.Errorf("stamp subscriptions: %w", err)
	}
	if stamped, err = result.RowsAffected(); err != nil {
		return false, 0, err
	}
	return true, stamped, tx.Commit()
}

// isCopy reports whether the latest timeline was recorded in another database. It locks the
// timelines until tx ends, so only one Migrator at a time restarts the changes.
func isCopy(ctx context.Context, tx *sql.Tx) (copied bool, err error) {
	if _, err := tx.ExecContext(ctx, "LOCK subscription_timelines IN SHARE ROW EXCLUSIVE MODE"); err != nil {
		return false, fmt.Errorf("lock subscription_timelines: %w", err)
	}
	err = tx.QueryRowContext(ctx, `
		SELECT (t.system_identifier, t.database_oid, t.table_oid) <> (here.system_identifier, here.database_oid, here.table_oid)
		FROM subscription_timelines t, database_identity() here ORDER BY t.timeline DESC LIMIT 1`).Scan(&copied)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil // nothing has changed in this database yet
	}
	return copied, err
}
