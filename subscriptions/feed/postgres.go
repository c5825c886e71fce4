package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/recorded"
)

// Postgres reads changes from the servers of a source of subscriptions.
type Postgres struct {
	rows     *postgres.Source
	timeline func() int64
	records  recorded.Reads
}

// NewPostgres returns the changes of a source. timeline returns the latest timeline of the primary's log that is
// known, 0 for none: a replica on an earlier one is not read. nil: no replicas are read.
func NewPostgres(rows *postgres.Source, timeline func() int64) *Postgres {
	return &Postgres{rows: rows, timeline: timeline}
}

func (p *Postgres) Changes(ctx context.Context, store int64, q Query) (found Changes, err error) {
	err = p.records.Do(func() error {
		return p.rows.Read(ctx, store, func(ctx context.Context, on *postgres.Server, conn *pgxpool.Conn) error {
			var err error
			found, err = p.readOn(ctx, on, conn, store, q)
			return err
		})
	})
	return found, err
}

// readOn reads changes from one server.
func (p *Postgres) readOn(ctx context.Context, on *postgres.Server, conn *pgxpool.Conn, store int64, q Query) (found Changes, err error) {
	found, err = p.changes(ctx, on, conn, store, q)
	if errors.Is(err, ErrUnmarked) && !on.IsReplica {
		if err = mark(ctx, conn); err == nil {
			found, err = p.changes(ctx, on, conn, store, q)
		}
	}
	if errors.Is(err, ErrOtherDatabase) {
		delete(conn.Conn().PgConn().CustomData(), systemKey) // a pooler may have changed the server behind the connection
	}
	return found, err
}

// News implements Source. It asks the server from which a store's changes are read.
func (p *Postgres) News(ctx context.Context, after map[int64]Change) (map[int64]Change, error) {
	ctx, cancel := context.WithTimeout(ctx, p.rows.Budget)
	defer cancel()
	byServer := map[*postgres.Server][]int64{}
	for store := range after {
		first := p.rows.Of(store)[0]
		byServer[first] = append(byServer[first], store)
	}
	latest, failed := map[int64]Change{}, error(nil)
	for _, stores := range byServer {
		failed = errors.Join(failed, postgres.Each(ctx, p.rows.Of(stores[0]), func(ctx context.Context, s *postgres.Server) error {
			return s.Connected(ctx, postgres.NoStore, func(ctx context.Context, conn *pgxpool.Conn) error {
				return readLatest(ctx, conn, stores, after, latest)
			})
		}))
	}
	return latest, failed
}

// readLatest adds the latest changes of stores to latest.
func readLatest(ctx context.Context, conn *pgxpool.Conn, stores []int64, after, latest map[int64]Change) error {
	var transactions []uint64
	var ids []int64
	for _, store := range stores {
		transactions, ids = append(transactions, after[store].Transaction), append(ids, after[store].ID)
	}
	rows, _ := conn.Query(ctx, latestSQL, stores, transactions, ids) // the rows have the error
	var store int64
	var c Change
	_, err := pgx.ForEachRow(rows, []any{&store, &c.Transaction, &c.ID}, func() error {
		latest[store] = c
		return nil
	})
	return err
}

// MarkTimeline records the timeline of the primary's log, if it is new. Changes does that too. Call
// it when a connection to the primary begins, so that a timeline is known before replicas show
// changes on it, and while the server still knows where the timeline before ended.
func (p *Postgres) MarkTimeline(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.rows.Budget)
	defer cancel()
	err := p.rows.Primary.Connected(ctx, postgres.NoStore, mark)
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
// spreads transactions over several servers. First it locks the tables: a snapshot that is older
// than a rewrite of a table, as by ALTER TABLE, sees none of its rows. Partitions need no locks,
// since only their table can be rewritten so. It fails before ctx ends if a lock is not free.
func begin(ctx context.Context, conn *pgxpool.Conn) error {
	patience := postgres.Remaining(ctx) * 3 / 4
	_, err := conn.Exec(ctx, fmt.Sprintf(`/* begin_changes */ BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
		SET LOCAL lock_timeout = %d;
		LOCK TABLE ONLY subscription_timelines, ONLY pruned_deletions, ONLY deleted_subscriptions, ONLY subscriptions,
			ONLY products, ONLY plans, ONLY saved_cards IN ACCESS SHARE MODE`, max(1, patience.Milliseconds())))
	return err
}

func (p *Postgres) changes(ctx context.Context, on *postgres.Server, conn *pgxpool.Conn, store int64, q Query) (c Changes, err error) {
	var r changesRow
	if r.Database.System, err = systemIdentifier(ctx, conn); err != nil {
		return c, err
	}
	c, err = p.oneSnapshot(ctx, on, conn, store, q, &r)
	if err != nil || c.Next == q.After {
		return c, err
	}
	// Only now, since a snapshot may see what is not on disk.
	if onDisk, err := flush(ctx, conn, &r.Lineage); err != nil || !onDisk {
		return Changes{}, subscriptions.Unavailable(cmp.Or(err, errNotOnDisk))
	}
	return c, nil
}

// oneSnapshot reads changes in one transaction.
func (p *Postgres) oneSnapshot(ctx context.Context, on *postgres.Server, conn *pgxpool.Conn, store int64, q Query, r *changesRow) (c Changes, err error) {
	defer func() { _, _ = conn.Exec(ctx, rollback) }() // it wrote nothing; if this fails, the connection is closed
	if err := begin(ctx, conn); err != nil {
		return c, err
	}
	args := []any{store, q.After.Transaction, q.After.ID, q.Limit + 1, q.After.Timeline, r.Database.System}
	if err := conn.QueryRow(ctx, changesSQL(q.Limit), args...).Scan(r.into()...); err != nil {
		return c, err
	}
	c, changed, last := r.changes(q.Limit)
	if c, err = r.Result(q.After, c, last); err != nil {
		return c, err
	}
	if on.IsReplica && (!c.More && r.Ahead(q.After) || r.Latest.Number < p.timeline()) {
		return c, postgres.ErrBehind
	}
	if len(changed) > 0 && c.Next != q.After {
		c.Changed, err = p.changed(ctx, conn, store, changed, q.Language)
	}
	return c, err
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

// changed returns subscriptions in the order of ids. A subscription whose product has not arrived
// yet, as with logical replication, fails: its change would be lost behind the cursor.
func (p *Postgres) changed(ctx context.Context, conn *pgxpool.Conn, store int64, ids []int64, l locale.Locale) ([]subscriptions.Subscription, error) {
	found, err := p.rows.InOrder(ctx, conn, store, ids, l)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if i == len(found) || found[i].ID != id {
			return nil, subscriptions.Unavailable(fmt.Errorf("subscription %d has changed, but its product or plan is missing", id))
		}
	}
	return found, nil
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
