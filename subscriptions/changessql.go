package subscriptions

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// changesSQL reads the history and a page of changes in one statement, so that both are of
// one snapshot. The arguments are the store, the language, the transaction and the ID of the
// cursor, the maximum number of changes, and the cursor's timeline.
//
// Only transactions below the snapshot's xmin are read. All of those have ended, so no
// change can still appear among or before those that were read. A deletion does not count
// while a subscription has its ID again.
//
// The result has at least one row: without changes, one in which the columns after those of
// the history are null. The outer limit is a literal for the planner, as in listSQL.
func changesSQL(limit int) string {
	atMost := maxChanges + 1
	if limit <= defaultChanges {
		atMost = defaultChanges + 1
	}
	return `
	WITH latest AS (SELECT * FROM subscription_timelines ORDER BY timeline DESC LIMIT 1),
	reader AS (SELECT timeline FROM subscription_timelines WHERE mark = $6),
	later AS (
		SELECT count(*) AS number, CASE WHEN count(*) = count(forked_at) THEN min(forked_at) END AS fork
		FROM subscription_timelines WHERE timeline > (SELECT timeline FROM reader)
	),
	history AS MATERIALIZED (
		SELECT here.system_identifier, db.oid AS database_oid, pg_snapshot_xmin(pg_current_snapshot()) AS ended,
			(CASE WHEN server.replica THEN greatest(pg_last_wal_replay_lsn(), pg_last_wal_receive_lsn())
				ELSE pg_current_wal_flush_lsn() END - '0/0')::bigint AS log,
			server.replica, coalesce(pg_last_wal_replay_lsn() - '0/0', 0)::bigint AS replayed,
			coalesce(latest.timeline, 0) AS timeline, coalesce(latest.mark, 0) AS mark,
			coalesce((latest.system_identifier, latest.database_oid, latest.table_oid)
				= (here.system_identifier, db.oid, to_regclass('subscriptions')::oid), false) AS ours,
			CASE WHEN server.replica THEN 0
				ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint END AS current,
			CASE WHEN server.replica OR pg_last_xact_replay_timestamp() IS NULL THEN 0
				ELSE (pg_last_wal_replay_lsn() - '0/0')::bigint END AS fork,
			coalesce((SELECT timeline FROM reader), 0) AS cursor_timeline,
			later.number AS later, coalesce(later.fork - '0/0', 0)::bigint AS later_fork,
			coalesce(pruned.deleted_in, '0') AS pruned_in, coalesce(pruned.id, 0) AS pruned_id
		FROM pg_control_system() here
		JOIN pg_database db ON db.datname = current_database()
		CROSS JOIN (SELECT pg_is_in_recovery() AS replica OFFSET 0) server
		CROSS JOIN later
		LEFT JOIN latest ON true
		LEFT JOIN pruned_deletions pruned ON pruned.store_id = $1
	),
	page AS (
		SELECT * FROM (
			(SELECT changed_in AS transaction, id, NULL::timestamptz AS deleted_at FROM subscriptions
			WHERE store_id = $1 AND (changed_in, id) > ($3, $4) AND changed_in < pg_snapshot_xmin(pg_current_snapshot())
			ORDER BY changed_in, id LIMIT $5)
			UNION ALL
			(SELECT deleted_in, id, deleted_at FROM deleted_subscriptions d
			WHERE store_id = $1 AND (deleted_in, id) > ($3, $4) AND deleted_in < pg_snapshot_xmin(pg_current_snapshot())
				AND NOT EXISTS (SELECT FROM subscriptions s WHERE s.store_id = d.store_id AND s.id = d.id)
			ORDER BY deleted_in, id LIMIT $5)
			ORDER BY transaction, id LIMIT $5
		) merged LIMIT ` + strconv.Itoa(atMost) + `
	)
	SELECT history.*, coalesce(page.transaction, '0'), coalesce(page.id, 0), page.deleted_at,` + columns + `, n.id, n.duration, n.price
	FROM history
	LEFT JOIN page ON true
	LEFT JOIN (subscriptions s` + joins + `
		LEFT JOIN plans n ON n.store_id = s.store_id AND n.id = s.scheduled_variant_id
	) ON s.store_id = $1 AND s.id = page.id AND page.deleted_at IS NULL
	ORDER BY page.transaction, page.id`
}

// changeRow is the destination of a row: the history, a change, and the subscription.
type changeRow struct {
	history
	change            // zero: none
	deletedAt instant // zero: it is not a deletion
	row
	scheduled scheduledVariant
}

// historyColumns is the number of columns before those of the subscription.
const historyColumns = 19

// into returns the destinations of the columns, in their order.
func (r *changeRow) into() []any {
	h := &r.history
	into := []any{
		&h.database.system, &h.database.oid, &h.ended, &h.log, &h.replica, &h.replayed,
		&h.latest.number, &h.latest.mark, &h.ours, &h.current, &h.fork,
		&h.cursorTimeline, &h.later, &h.laterFork, &h.pruned.transaction, &h.pruned.id,
		&r.transaction, &r.change.id, &r.deletedAt,
	}
	return append(append(into, r.row.into()...), r.scheduled.into()...)
}

// Changes implements Source.
func (p *Postgres) Changes(ctx context.Context, store int64, q ChangesQuery) (Changes, error) {
	r := changeRow{row: row{Subscription: Subscription{StoreID: store}}}
	whole := r.into()
	short := append(slices.Clone(whole[:historyColumns]), make([]any, len(whole)-historyColumns)...)
	var c Changes
	var last change
	n := 0
	args := []any{store, string(q.Language), q.After.transaction, q.After.id, q.Limit + 1, q.After.timeline}
	err := p.query(ctx, store, changesSQL(q.Limit), args, func(rows pgx.Rows) error {
		into := whole
		if rows.RawValues()[historyColumns] == nil {
			into = short // without a subscription
		}
		if err := rows.Scan(into...); err != nil || r.transaction == 0 {
			return err
		}
		if n++; n > q.Limit {
			c.More = true
			return nil
		}
		last = r.change
		p.add(&c, &r)
		return nil
	})
	if err != nil {
		return Changes{}, err
	}
	return r.history.judge(q.After, c, last)
}

// add appends the change of a row.
func (p *Postgres) add(c *Changes, r *changeRow) {
	if at := time.Time(r.deletedAt); !at.IsZero() {
		c.Deleted = append(c.Deleted, Deletion{ID: r.change.id, At: at})
		return
	}
	c.Changed = append(c.Changed, r.Subscription)
	s := &c.Changed[len(c.Changed)-1]
	p.complete(s, &r.row)
	s.Scheduled = r.scheduled.variant()
}
