package postgres

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/subscriptions"
)

// polls answers requests for changes when a server has no new ones, with a statement that costs
// half as much as changesSQL. The zero value is ready to use.
//
// That statement does not read the whole history of the database. It is enough that the
// latest timeline is the cursor's, and that such a cursor was good a moment ago. It is safe to
// answer that nothing has changed yet, with the same cursor, even to a reader whose cursor has
// expired since: it is refused a moment later.
type polls struct{ lately atomic.Pointer[goodCursors] }

// goodCursors are the cursors that are good at a time, except for deletions that were pruned.
type goodCursors struct {
	database subscriptions.Database
	timeline int64
	log      uint64 // up to this position
	at       time.Time
}

const goodFor = time.Second

func (p *polls) good(c subscriptions.Cursor, now time.Time) bool {
	g := p.lately.Load()
	return g != nil && c.Timeline != 0 && c.Timeline == g.timeline && c.Database == g.database && c.Log <= g.log && now.Sub(g.at) < goodFor
}

// remember notes which cursors are good by a history.
func (p *polls) remember(h *subscriptions.History, now time.Time) {
	if h.Recorded() {
		p.lately.Store(&goodCursors{h.Database, h.Latest.Mark, h.Shown(), now})
	}
}

// newsSQL reports whether there may be a change of a store after a cursor, or another history.
// The arguments are the store, the transaction and the ID of the cursor, and its timeline.
// The order makes the planner choose the indexes: it expects that any row is soon found.
const newsSQL = `/* changes_poll */
	SELECT NOT EXISTS (SELECT FROM subscription_timelines
			WHERE mark = $4 AND table_oid = to_regclass('subscriptions') AND timeline = (SELECT max(timeline) FROM subscription_timelines))
		OR (SELECT id ` + readableChanges + `
			ORDER BY changed_in, id LIMIT 1) IS NOT NULL
		OR (SELECT id ` + readableDeletions + `
			ORDER BY deleted_in, id LIMIT 1) IS NOT NULL
		OR EXISTS (SELECT FROM pruned_deletions WHERE store_id = $1 AND (deleted_in, id) > ($2, $3))`

func hasNews(ctx context.Context, conn *pgxpool.Conn, store int64, after subscriptions.Cursor) (news bool, err error) {
	err = conn.QueryRow(ctx, newsSQL, store, after.Transaction, after.ID, after.Timeline).Scan(&news)
	return news, err
}
