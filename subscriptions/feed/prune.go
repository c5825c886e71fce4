package feed

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/subscriptions/recorded"
)

// pruneSQL prunes up to $2 deletions that are older than $1. A statement is a transaction, so a
// reader sees either the deletion or the record that it was pruned. Pruning the deletion of a
// subscription that exists again expires no cursors, since no reader needs it.
//
// Rows that another transaction has locked are skipped: it prunes them, or deletes the subscription
// again. The order of the stores keeps two prunes from waiting for each other.
const pruneSQL = `/* prune */
	WITH old AS (
		SELECT store_id, id FROM deleted_subscriptions WHERE deleted_at < now() - $1::interval
		ORDER BY deleted_at LIMIT $2 FOR UPDATE SKIP LOCKED
	),
	pruned AS (
		DELETE FROM deleted_subscriptions d USING old WHERE d.store_id = old.store_id AND d.id = old.id
		RETURNING d.store_id, d.deleted_in, d.id
	),
	latest AS (
		SELECT DISTINCT ON (store_id) store_id, deleted_in, id FROM pruned p
		WHERE NOT EXISTS (SELECT FROM subscriptions s WHERE s.store_id = p.store_id AND s.id = p.id)
		ORDER BY store_id, deleted_in DESC, id DESC
	),
	raised AS (
		INSERT INTO pruned_deletions AS known SELECT store_id, deleted_in, id FROM latest ORDER BY store_id
		ON CONFLICT (store_id) DO UPDATE SET deleted_in = excluded.deleted_in, id = excluded.id
		WHERE (known.deleted_in, known.id) < (excluded.deleted_in, excluded.id)
	)
	SELECT count(*) FROM pruned`

// Prune deletes the records of deletions that are older than KeepDeletions by the clock of the
// database, and returns how many, also with an error: recorded.ErrNone if the database has none. The
// cursors of readers that have not seen one of them expire. It is safe to repeat, and to run several
// at the same time. The pool must be able to write.
func Prune(ctx context.Context, db *pgxpool.Pool) (deleted int64, err error) {
	return recorded.InBatches(ctx, db, "prune deletions", pruneSQL, KeepDeletions)
}
