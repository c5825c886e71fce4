package recorded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
)

// Follower reads records after a cursor from the servers of a source of subscriptions.
type Follower struct {
	rows     *postgres.Source
	timeline func() int64
	records  Reads
}

// NewFollower returns a reader of the records of a source. timeline returns the latest timeline of the primary's log that is
// known, 0 for none: a replica on an earlier one is not read. nil: no replicas are read.
func NewFollower(rows *postgres.Source, timeline func() int64) *Follower {
	return &Follower{rows: rows, timeline: timeline}
}

// Reading is how one kind of records is read.
type Reading struct {
	// Tables are locked before the snapshot is taken: one that is older than a rewrite of a table, as by ALTER TABLE,
	// sees none of its rows. They are names with commas.
	Tables string

	// Page reads records after the cursor, and what the database of the system identifier knows about its past. It returns the
	// place of the last record, zero for none, and whether more follow.
	Page func(ctx context.Context, conn *pgxpool.Conn, system int64) (known *Lineage, last Change, more bool, err error)

	// Rest reads more of the page in the same snapshot, when Page was good. nil: there is no more.
	Rest func(ctx context.Context, conn *pgxpool.Conn) error
}

// Follow reads records of a store after a cursor from one of the servers that are fit. It returns the cursor after them. If that
// is the same one, there are none yet, whatever Page has read.
func (f *Follower) Follow(ctx context.Context, store int64, after Cursor, r Reading) (next Cursor, more bool, err error) {
	err = f.records.Do(func() error {
		return f.rows.Read(ctx, store, func(ctx context.Context, on *postgres.Server, conn *pgxpool.Conn) error {
			var err error
			next, more, err = f.readOn(ctx, on, conn, store, after, &r)
			return err
		})
	})
	return next, more && next != after, err
}

// readOn reads records from one server.
func (f *Follower) readOn(ctx context.Context, on *postgres.Server, conn *pgxpool.Conn, store int64, after Cursor, r *Reading) (next Cursor, more bool, err error) {
	next, more, err = f.read(ctx, on, conn, after, r)
	if errors.Is(err, ErrUnmarked) && !on.IsReplica {
		if err = mark(ctx, conn); err == nil {
			next, more, err = f.read(ctx, on, conn, after, r)
		}
	}
	if errors.Is(err, ErrOtherDatabase) {
		delete(conn.Conn().PgConn().CustomData(), systemKey) // a pooler may have changed the server behind the connection
	}
	return next, more, err
}

// Latest returns the latest record of each store that has one after the given one. It asks the server from which the
// store's records are read. The arguments of the statement are the stores, and the
// transactions and the IDs of their given records; its rows have a store, and the transaction and the ID of its latest record.
func (f *Follower) Latest(ctx context.Context, sql string, after map[int64]Change) (map[int64]Change, error) {
	ctx, cancel := context.WithTimeout(ctx, f.rows.Budget)
	defer cancel()
	byServer := map[*postgres.Server][]int64{}
	for store := range after {
		first := f.rows.Of(store)[0]
		byServer[first] = append(byServer[first], store)
	}
	latest, failed := map[int64]Change{}, error(nil)
	for _, stores := range byServer {
		failed = errors.Join(failed, postgres.Each(ctx, f.rows.Of(stores[0]), func(ctx context.Context, s *postgres.Server) error {
			return s.Connected(ctx, postgres.NoStore, func(ctx context.Context, conn *pgxpool.Conn) error {
				return readLatest(ctx, conn, sql, stores, after, latest)
			})
		}))
	}
	return latest, failed
}

// readLatest adds the latest records of stores to latest.
func readLatest(ctx context.Context, conn *pgxpool.Conn, sql string, stores []int64, after, latest map[int64]Change) error {
	var transactions []uint64
	var ids []int64
	for _, store := range stores {
		transactions, ids = append(transactions, after[store].Transaction), append(ids, after[store].ID)
	}
	rows, _ := conn.Query(ctx, sql, stores, transactions, ids) // the rows have the error
	var store int64
	var c Change
	_, err := pgx.ForEachRow(rows, []any{&store, &c.Transaction, &c.ID}, func() error {
		latest[store] = c
		return nil
	})
	return err
}

// MarkTimeline records the timeline of the primary's log, if it is new. Follow does that too. Call
// it when a connection to the primary begins, so that a timeline is known before replicas show
// changes on it, and while the server still knows where the timeline before ended.
func (f *Follower) MarkTimeline(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.rows.Budget)
	defer cancel()
	err := f.rows.Primary.Connected(ctx, postgres.NoStore, mark)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "42883" { // undefined function
		return nil // the database has no changes
	}
	return err
}

// mark records the timeline in a transaction of its own, so that no writer waits for it.
func mark(ctx context.Context, conn *pgxpool.Conn) error {
	_, err := conn.Exec(ctx, "/* mark_timeline */ BEGIN READ WRITE; SELECT mark_timeline(); COMMIT")
	if err != nil {
		_, _ = conn.Exec(ctx, rollback)
	}
	return err
}

const rollback = "/* end_changes */ ROLLBACK"

// begin begins a transaction with one snapshot for all its statements, also on a pooler that
// spreads transactions over several servers. First it locks the tables of a Reading. Partitions need no locks,
// since only their table can be rewritten so. It fails before ctx ends if a lock is not free.
func begin(ctx context.Context, conn *pgxpool.Conn, tables string) error {
	patience := postgres.Remaining(ctx) * 3 / 4
	_, err := conn.Exec(ctx, fmt.Sprintf(`/* begin_changes */ BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
		SET LOCAL lock_timeout = %d;
		LOCK TABLE ONLY subscription_timelines, ONLY %s IN ACCESS SHARE MODE`, max(1, patience.Milliseconds()), tables))
	return err
}

func (f *Follower) read(ctx context.Context, on *postgres.Server, conn *pgxpool.Conn, after Cursor, r *Reading) (next Cursor, more bool, err error) {
	system, err := systemIdentifier(ctx, conn)
	if err != nil {
		return next, false, err
	}
	known, next, more, err := f.oneSnapshot(ctx, on, conn, system, after, r)
	if err != nil || next == after {
		return next, more, err
	}
	// Only now, since a snapshot may see what is not on disk.
	if onDisk, err := flush(ctx, conn, known); err != nil || !onDisk {
		return Cursor{}, false, subscriptions.Unavailable(cmp.Or(err, errNotOnDisk))
	}
	return next, more, nil
}

// oneSnapshot reads records in one transaction.
func (f *Follower) oneSnapshot(
	ctx context.Context, on *postgres.Server, conn *pgxpool.Conn, system int64, after Cursor, r *Reading,
) (known *Lineage, next Cursor, more bool, err error) {
	defer func() { _, _ = conn.Exec(ctx, rollback) }() // it wrote nothing; if this fails, the connection is closed
	if err := begin(ctx, conn, r.Tables); err != nil {
		return nil, next, false, err
	}
	known, last, more, err := r.Page(ctx, conn, system)
	if err != nil {
		return nil, next, false, err
	}
	if next, err = known.Next(after, last); err != nil {
		return nil, next, false, err
	}
	if on.IsReplica && (!more && known.Ahead(after) || known.Latest.Number < f.timeline()) {
		return nil, next, false, postgres.ErrBehind
	}
	if next != after && r.Rest != nil {
		err = r.Rest(ctx, conn)
	}
	return known, next, more, err
}

var errNotOnDisk = errors.New("the latest changes are not on disk yet")

// flush makes sure that everything that was read is on disk: a transaction that committed with
// synchronous_commit = off is seen before it is, and a crash could give its ID to another one. A
// replica receives only what is on disk.
//
// The log may also be ahead of the disk for seconds without such a transaction. The commit of an
// empty message flushes it. Without the right to write one, flush waits for Postgres.
func flush(ctx context.Context, conn *pgxpool.Conn, h *Lineage) (onDisk bool, err error) {
	if h.Replica || h.Flushed >= h.Log {
		return true, nil
	}
	if _, err := conn.Exec(ctx, `/* flush */ BEGIN READ WRITE; SET LOCAL synchronous_commit = local;
		SELECT pg_logical_emit_message(true, 'commerce', ''); COMMIT`); err != nil {
		_, _ = conn.Exec(ctx, rollback)
	}
	for pause, gaveUp := time.Millisecond, time.Now().Add(postgres.Remaining(ctx)/2); ; pause = min(2*pause, 50*time.Millisecond) {
		err = conn.QueryRow(ctx, "/* flushed */ SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint >= $1", int64(h.Log)).Scan(&onDisk)
		if err != nil || onDisk || time.Now().After(gaveUp) {
			return onDisk, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

const systemKey = "commerce system identifier"

// systemIdentifier returns the identifier of the server of a connection. It reads it once
// for each connection, since it takes as long as the rest of changesSQL.
func systemIdentifier(ctx context.Context, conn *pgxpool.Conn) (int64, error) {
	known := conn.Conn().PgConn().CustomData()
	if id, ok := known[systemKey].(int64); ok {
		return id, nil
	}
	var id int64
	err := conn.QueryRow(ctx, "/* system_identifier */ SELECT system_identifier FROM pg_control_system()").Scan(&id)
	if err == nil {
		known[systemKey] = id
	}
	return id, err
}
