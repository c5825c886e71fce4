package recorded

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
)

// Lineage is what a database knows about its past when changes are read. A cursor is valid
// only in a database that has everything that its reader has seen.
//
// The timeline of the write-ahead log changes when a replica is promoted, or a backup is recovered
// up to some time: the part of the log after the fork is lost there. The service records each
// timeline with the position of its fork, before it reads changes on it (subscription_timelines).
type Lineage struct {
	Database Database
	Ended    uint64 // all transactions below have ended, and what they changed is read
	Log      uint64 // position of the log before which everything that is read was committed, perhaps not on disk yet

	Flushed uint64 // up to where the log of a primary was on disk soon afterwards

	Replica  bool
	Replayed uint64 // position up to which a replica has the log

	Latest Timeline // that was recorded; number 0: none yet
	Ours   bool     // it was recorded in this database, not in the original of a copy

	Current int64 // the timeline of the log, 0 on a replica

	// CursorTimeline is the timeline of the cursor, 0 if this database never had it. Later is the
	// number of recorded timelines after it, and LaterFork the first fork after it, 0 if unknown.
	CursorTimeline int64
	Later          int64
	LaterFork      uint64

	// Pruned is the last record of the store that is no longer known; zero for none. Readers that started after
	// transaction PrunedIn do not miss it.
	Pruned   Change
	PrunedIn uint64
}

// Timeline is a timeline that was recorded.
type Timeline struct {
	Number int64 // from 1
	Mark   int64 // random, so that copies that were promoted separately differ
}

// Errors for a database from which no changes can be read.
const ErrOtherDatabase = postgres.Blameless("the database is a copy: run `commerce migrate up`, which restarts the changes")

var ErrUnmarked = errors.New("the server was promoted, and its timeline is not recorded yet")

// Ahead reports whether a replica may lack something that a reader has seen, so that it
// cannot decide whether the cursor is valid. If check accepts the cursor, this does not
// matter: the replica shows no change before all transactions up to the cursor's have ended.
func (h *Lineage) Ahead(c Cursor) bool {
	return h.Replica && c.Database == h.Database && h.Replayed < c.Log
}

// Next returns the cursor after records that follow a cursor, the last of which is last, zero for none. The error
// says why they cannot be used. A replica that is behind the cursor returns the same one: its records must not be used yet.
func (h *Lineage) Next(after Cursor, last Change) (Cursor, error) {
	switch err := h.check(after); {
	case errors.Is(err, ErrCursorExpired) && h.Ahead(after):
		return after, nil
	case err != nil:
		return Cursor{}, err
	}
	if (after == Cursor{}) { // the reader starts now
		after = Cursor{Database: h.Database, Timeline: h.Latest.Mark, Since: h.Ended}
	}
	if (last != Change{}) {
		if (after.Change == Change{}) { // nothing was seen before. Since may be of a timeline that lost transactions
			after.Since = h.Ended
		}
		after.Change, after.Timeline, after.Log = last, h.Latest.Mark, max(after.Log, h.Log)
	}
	return after, nil
}

// check returns ErrCursorExpired if the database may lack something that the reader has
// seen, or a deletion that it has not seen.
func (h *Lineage) check(c Cursor) error {
	switch {
	case h.Latest.Number != 0 && !h.Ours:
		return subscriptions.Unavailable(ErrOtherDatabase)
	case !h.Replica && h.Current > h.Latest.Number:
		return subscriptions.Unavailable(ErrUnmarked)
	case c == Cursor{}:
		return nil
	case c.Database != h.Database, !h.has(c):
		return ErrCursorExpired
	// A record after the cursor is no longer known. Deletions from before the reader started do
	// not matter: it has not seen those subscriptions.
	case h.Pruned.Compare(c.Change) > 0 && h.PrunedIn >= c.Since:
		return ErrCursorExpired
	}
	return nil
}

// has reports whether the database has everything that the reader has seen.
func (h *Lineage) has(c Cursor) bool {
	switch {
	case c.Timeline == 0:
		return h.Latest.Number == 0 || c.Transaction == 0
	case h.CursorTimeline == 0:
		return false
	case !h.Replica && h.Log < c.Log: // an earlier state, such as a snapshot of the disk
		return false
	case h.Later == 0:
		return true
	}
	// A timeline without a row may have begun and ended between two others.
	complete := h.Latest.Number == h.CursorTimeline+h.Later
	return complete && c.Log <= h.LaterFork
}

// LineageSQL returns the columns of a Lineage as history, with what it reads. $1 is the store. The other arguments are
// named: the cursor's timeline, and the system identifier. pruned selects the last record that is no longer known, and
// the transaction from which on readers must have started.
func LineageSQL(pruned, timeline, system string) string {
	return `WITH latest AS (SELECT * FROM subscription_timelines ORDER BY timeline DESC, mark LIMIT 1),
	reader AS (SELECT timeline FROM subscription_timelines WHERE mark = ` + timeline + `),
	later AS (
		SELECT count(*) AS number, CASE WHEN count(*) = count(forked_at) THEN min(forked_at) END AS fork
		FROM (
			SELECT max(forked_at) AS forked_at FROM subscription_timelines
			WHERE timeline > (SELECT timeline FROM reader) GROUP BY timeline
		) timelines
	),
	history AS MATERIALIZED (
		SELECT db.oid AS database_oid, pg_snapshot_xmin(pg_current_snapshot()) AS ended,
			(CASE WHEN server.replica THEN greatest(pg_last_wal_replay_lsn(), pg_last_wal_receive_lsn())
				ELSE pg_current_wal_insert_lsn() END - '0/0')::bigint AS log,
			CASE WHEN server.replica THEN 0 ELSE (pg_current_wal_flush_lsn() - '0/0')::bigint END AS flushed,
			server.replica, coalesce(pg_last_wal_replay_lsn() - '0/0', 0)::bigint AS replayed,
			coalesce(latest.timeline, 0) AS timeline, coalesce(latest.mark, 0) AS mark,
			coalesce((latest.system_identifier, latest.database_oid, latest.table_oid)
				= (` + system + `, db.oid, to_regclass('subscriptions')::oid), false) AS ours,
			CASE WHEN server.replica THEN 0
				ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint END AS current,
			coalesce((SELECT timeline FROM reader), 0) AS cursor_timeline,
			later.number AS later, coalesce(later.fork - '0/0', 0)::bigint AS later_fork,
			coalesce(pruned.transaction, '0') AS pruned, coalesce(pruned.id, 0) AS pruned_id, coalesce(pruned.pruned_in, '0') AS pruned_in
		FROM pg_database db
		CROSS JOIN (SELECT pg_is_in_recovery() AS replica OFFSET 0) server
		CROSS JOIN later
		LEFT JOIN latest ON true
		LEFT JOIN (` + pruned + `) pruned ON true
		WHERE db.datname = current_database()
	)`
}

// ReadLineage reads what a database knows about its past. pruned is that of LineageSQL, and timeline that of a cursor.
func ReadLineage(ctx context.Context, conn *pgxpool.Conn, pruned string, store, timeline, system int64) (*Lineage, error) {
	known := &Lineage{Database: Database{System: system}}
	sql := "/* lineage */ " + LineageSQL(pruned, "$2", "$3") + " SELECT * FROM history"
	return known, conn.QueryRow(ctx, sql, store, timeline, system).Scan(known.Into()...)
}

// Into returns the destinations of the columns of LineageSQL, in their order.
func (h *Lineage) Into() []any {
	return []any{
		&h.Database.OID, &h.Ended, &h.Log, &h.Flushed, &h.Replica, &h.Replayed,
		&h.Latest.Number, &h.Latest.Mark, &h.Ours, &h.Current,
		&h.CursorTimeline, &h.Later, &h.LaterFork, &h.Pruned.Transaction, &h.Pruned.ID, &h.PrunedIn,
	}
}
