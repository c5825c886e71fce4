package history

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/subscriptions/recorded"
)

// foldSQL folds the states that are older than $1 into the newest of them, for up to $2
// subscriptions. If that says that the subscription was deleted, and it does not exist again, it
// goes, too. Readers of events that have not seen those of the states must be refused, so the last one is kept.
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
			coalesce(bool_or(was_bearing OR bears_revenue(status)), false) AS was_bearing,
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
	raised AS (
		INSERT INTO folded_states AS known
		SELECT DISTINCT ON (store_id) store_id, l.recorded_in, l.number, pg_current_xact_id()
		FROM locked l JOIN folds USING (store_id, subscription_id)
		WHERE NOT l.first -- no event, and may be of another server
		ORDER BY store_id, l.recorded_in DESC, l.number DESC
		ON CONFLICT (store_id) DO UPDATE SET folded_in = excluded.folded_in,
			(recorded_in, number) = (SELECT * FROM (VALUES (known.recorded_in, known.number), (excluded.recorded_in, excluded.number)) folded (r, n)
				ORDER BY r DESC, n DESC LIMIT 1)
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
// events and metrics stay the same. It returns the number of subscriptions, also with an error: recorded.ErrNone
// if the database has no histories. It is safe to repeat, and to run several at the same time. The pool must be
// able to write.
func Fold(ctx context.Context, db *pgxpool.Pool) (folded int64, err error) {
	return recorded.InBatches(ctx, db, "fold states", foldSQL, KeepStates)
}
