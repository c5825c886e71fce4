package feed

import (
	"strconv"
	"time"

	"commerce/subscriptions/recorded"
)

// The changes of a store after a cursor that may be read. The arguments are the store, and the
// transaction and the ID of the cursor.
//
// Only transactions below the snapshot's xmin are read. All of those have ended, so no
// change can appear later before or between those that were read.
const (
	readableChanges = `FROM subscriptions
		WHERE store_id = $1 AND (changed_in, id) > ($2, $3) AND changed_in < pg_snapshot_xmin(pg_current_snapshot())`
	readableDeletions = `FROM deleted_subscriptions
		WHERE store_id = $1 AND (deleted_in, id) > ($2, $3) AND deleted_in < pg_snapshot_xmin(pg_current_snapshot())`
)

// prunedDeletions is the last deletion that was pruned. Readers that started later have not seen the subscription.
const prunedDeletions = "SELECT deleted_in AS transaction, id, deleted_in AS pruned_in FROM pruned_deletions WHERE store_id = $1"

// changesSQL reads the history and which subscriptions changed, in one statement, so that
// both are of one snapshot. The arguments are the store, the transaction and the ID of the
// cursor, the maximum number of changes, the cursor's timeline, and the system identifier.
//
// A deletion is void if a new subscription has the same ID. It still counts as a change, so that a
// page reads few rows after all of a store was deleted and inserted again. If both are of one
// transaction, the subscription comes first: a page may end between the two.
//
// The result is one row with arrays. The outer limit is a literal for the planner, as in listSQL.
func changesSQL(limit int) string {
	return `/* changes */
	` + recorded.LineageSQL(prunedDeletions, "$5", "$6") + `,
	page AS (
		SELECT * FROM (
			(SELECT changed_in AS transaction, id, NULL::timestamptz AS deleted_at ` + readableChanges + `
			ORDER BY changed_in, id LIMIT $4)
			UNION ALL
			(SELECT deleted_in, id, deleted_at ` + readableDeletions + `
			ORDER BY deleted_in, id LIMIT $4)
			ORDER BY transaction, id, deleted_at NULLS FIRST LIMIT $4
		) merged LIMIT ` + strconv.Itoa(recorded.RowsFor(limit)) + `
	)
	SELECT history.*, changes.* FROM history CROSS JOIN (
		SELECT array_agg(transaction), array_agg(id), array_agg(deleted_at), array_agg(void) FROM (
			SELECT page.transaction, page.id, page.deleted_at, again.id IS NOT NULL AS void FROM page
			LEFT JOIN LATERAL (
				SELECT s.id FROM subscriptions s WHERE page.deleted_at IS NOT NULL AND s.store_id = $1 AND s.id = page.id LIMIT 1
			) again ON true
			ORDER BY page.transaction, page.id, page.deleted_at NULLS FIRST
		) ordered
	) changes`
}

// changesRow is the destination of the row of changesSQL. Its slices have an element for
// each change.
type changesRow struct {
	recorded.Lineage
	transactions []uint64
	ids          []int64
	deletedAt    []*time.Time // nil: it is not a deletion
	void         []bool       // a deletion of an ID that a subscription has again
}

// into returns the destinations of the columns, in their order.
func (r *changesRow) into() []any {
	return append(r.Lineage.Into(), &r.transactions, &r.ids, &r.deletedAt, &r.void)
}

// changes returns the first changes, at most limit, without the subscriptions that changed;
// their IDs; and the place of the last change, zero for none.
func (r *changesRow) changes(limit int) (c Changes, changed []int64, last recorded.Change) {
	n := min(len(r.ids), limit)
	c.More = len(r.ids) > limit
	for i, id := range r.ids[:n] {
		switch at := r.deletedAt[i]; {
		case at == nil:
			changed = append(changed, id)
		case !r.void[i]:
			c.Deleted = append(c.Deleted, Deletion{ID: id, At: *at})
		}
	}
	if n > 0 {
		last = recorded.Change{Transaction: r.transactions[n-1], ID: r.ids[n-1]}
	}
	return c, changed, last
}

// latestSQL returns the latest change of each store that has one after a change. The arguments are
// the stores, and the transactions and the IDs of the changes. From the change on, no index
// has entries of rows that were deleted long ago, which the scan would have to skip.
const latestSQL = `/* changes_latest */
	SELECT reader.store_id, latest.transaction, latest.id
	FROM unnest($1::bigint[], $2::xid8[], $3::bigint[]) reader (store_id, transaction, id)
	CROSS JOIN LATERAL (
		SELECT * FROM (
			(SELECT s.changed_in AS transaction, s.id FROM subscriptions s
			WHERE s.store_id = reader.store_id AND (s.changed_in, s.id) > (reader.transaction, reader.id)
				AND s.changed_in < pg_snapshot_xmin(pg_current_snapshot())
			ORDER BY s.changed_in DESC, s.id DESC LIMIT 1)
			UNION ALL
			(SELECT d.deleted_in, d.id FROM deleted_subscriptions d
			WHERE d.store_id = reader.store_id AND (d.deleted_in, d.id) > (reader.transaction, reader.id)
				AND d.deleted_in < pg_snapshot_xmin(pg_current_snapshot())
			ORDER BY d.deleted_in DESC, d.id DESC LIMIT 1)
		) each_latest ORDER BY transaction DESC, id DESC LIMIT 1
	) latest`
