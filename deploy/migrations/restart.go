package migrations

import (
	"context"
	"database/sql"
	"fmt"
)

// restartChanges stamps all subscriptions again if the database was restored from a dump or
// upgraded by pg_upgrade: its changed_in then has transaction IDs of another server.
//
// Histories stay, since their times are still right, and their events are stamped, too. Those of subscriptions that
// have none begin.
//
// Everything is one transaction. Meanwhile the subscriptions can be read, and instances
// refuse to read changes.
func restartChanges(ctx context.Context, db *sql.DB) (restarted bool, stamped int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, 0, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	// The lock lets only one Migrator at a time restart the changes.
	if _, err := tx.ExecContext(ctx, "LOCK subscription_timelines IN SHARE ROW EXCLUSIVE MODE"); err != nil {
		return false, 0, fmt.Errorf("lock subscription_timelines: %w", err)
	}
	// The latest timeline was recorded in another database. Without one, nothing has changed yet.
	err = tx.QueryRowContext(ctx, `SELECT coalesce((
		SELECT (t.system_identifier, t.database_oid, t.table_oid) <> (here.system_identifier, here.database_oid, here.table_oid)
		FROM subscription_timelines t, database_identity() here ORDER BY t.timeline DESC LIMIT 1), false)`).Scan(&restarted)
	if err != nil || !restarted {
		return false, 0, err
	}
	result, err := tx.ExecContext(ctx, `
		LOCK subscriptions IN SHARE ROW EXCLUSIVE MODE; -- before its rows: record_missed_states takes it, too
		DELETE FROM subscription_timelines;
		DELETE FROM deleted_subscriptions;
		DELETE FROM pruned_deletions;
		UPDATE subscription_states SET recorded_in = pg_current_xact_id();
		DELETE FROM folded_states; -- now that each fold has ended which had locked states
		SELECT mark_timeline();
		UPDATE subscriptions SET changed_in = pg_current_xact_id()`)
	if err != nil {
		return false, 0, fmt.Errorf("stamp subscriptions: %w", err)
	}
	if stamped, err = result.RowsAffected(); err != nil {
		return false, 0, err
	}
	if _, err := tx.ExecContext(ctx, "SELECT record_missed_states()"); err != nil {
		return false, 0, fmt.Errorf("begin histories: %w", err)
	}
	return true, stamped, tx.Commit()
}
