package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/subscriptions"
)

// pruneBatch is about how many rows one transaction prunes, so that writers never wait long.
const pruneBatch = 10_000

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
// database, and returns how many, also with an error: ErrNoChanges if the database has none. The
// cursors of readers that have not seen one of them expire. It is safe to repeat, and to run several
// at the same time. The pool must be able to write.
func Prune(ctx context.Context, db *pgxpool.Pool) (deleted int64, err error) {
	return inBatches(ctx, db, "prune deletions", pruneSQL, subscriptions.KeepDeletions)
}

// inBatches repeats a statement about what is older than keep until it finds nothing, and returns how much it
// found in all.
func inBatches(ctx context.Context, db *pgxpool.Pool, doing, sql string, keep time.Duration) (all int64, err error) {
	for {
		var n int64
		err := db.QueryRow(ctx, sql, keep, pruneBatch).Scan(&n)
		switch {
		case lacksChanges(err):
			return all, subscriptions.ErrNoChanges
		case err != nil:
			return all, fmt.Errorf("%s: %w", doing, err)
		case n == 0:
			return all, nil
		}
		all += n
	}
}

// foldSQL folds the states that are older than $1 into the newest of them, for up to $2
// subscriptions. If that says that the subscription was deleted, and it does not exist again, it
// goes, too.
//
// A subscription with a state that another transaction has locked is skipped, so that nobody waits
// for a prune that waits: that transaction is another prune, or deletes the subscription.
const foldSQL = `/* fold */
	WITH picked AS MATERIALIZED (
		SELECT DISTINCT store_id, subscription_id FROM (
			SELECT store_id, subscription_id FROM subscription_states WHERE NOT first AND recorded_at < now() - $1::interval LIMIT $2
		) old
	),
	locked AS MATERIALIZED (
		SELECT s.* FROM picked JOIN subscription_states s USING (store_id, subscription_id)
		WHERE s.recorded_at < now() - $1::interval FOR UPDATE OF s SKIP LOCKED
	),
	newest AS (
		SELECT store_id, subscription_id, max(number) AS number, (array_agg(status ORDER BY number DESC))[1] IS NULL AS deleted,
			coalesce(bool_or(was_bearing OR status IN ('active', 'past_due')), false) AS was_bearing,
			(array_agg(card_last_four ORDER BY number DESC) FILTER (WHERE card_last_four IS NOT NULL))[1] AS card_last_four,
			(array_agg(card_scheme ORDER BY number DESC) FILTER (WHERE card_last_four IS NOT NULL))[1] AS card_scheme
		FROM locked l GROUP BY store_id, subscription_id
		HAVING count(*) = (SELECT count(*) FROM subscription_states s
			WHERE s.store_id = l.store_id AND s.subscription_id = l.subscription_id AND s.recorded_at < now() - $1::interval)
	),
	folds AS MATERIALIZED (
		SELECT n.*, n.deleted AND NOT EXISTS (SELECT FROM subscription_states s
			WHERE s.store_id = n.store_id AND s.subscription_id = n.subscription_id AND s.number > n.number) AS gone
		FROM newest n
	),
	removed AS (
		DELETE FROM subscription_states s USING folds f
		WHERE s.store_id = f.store_id AND s.subscription_id = f.subscription_id AND s.recorded_at < now() - $1::interval
			AND (s.number < f.number OR f.gone)
	),
	kept AS (
		UPDATE subscription_states s
		SET first = true, was_bearing = f.was_bearing, card_last_four = f.card_last_four, card_scheme = f.card_scheme
		FROM folds f WHERE s.store_id = f.store_id AND s.subscription_id = f.subscription_id AND s.number = f.number AND NOT f.gone
	)
	SELECT count(*) FROM folds`

// Fold folds the states of each subscription that are older than KeepStates into one, so that newer
// events and metrics stay the same. It returns the number of subscriptions. Otherwise it is like
// Prune.
func Fold(ctx context.Context, db *pgxpool.Pool) (folded int64, err error) {
	return inBatches(ctx, db, "fold states", foldSQL, subscriptions.KeepStates)
}
