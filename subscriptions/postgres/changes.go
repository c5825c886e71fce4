package postgres

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
)

// Changes implements subscriptions.Source. It returns ErrNoChanges if the database has no changes.
func (p *Source) Changes(ctx context.Context, store int64, q subscriptions.ChangesQuery) (found subscriptions.Changes, err error) {
	err = p.readRecorded(ctx, store, func(ctx context.Context, on *server, conn *pgxpool.Conn) error {
		if on.lately.Load().good(q.After) {
			var news bool
			err := conn.QueryRow(ctx, newsSQL, store, q.After.Transaction, q.After.ID, q.After.Timeline).Scan(&news)
			if err != nil || !news {
				found = subscriptions.Changes{Next: q.After}
				return err
			}
		}
		var err error
		found, err = p.changes(ctx, on, conn, store, q)
		if errors.Is(err, subscriptions.ErrUnmarked) && on.replica == nil {
			if err = mark(ctx, conn); err == nil {
				found, err = p.changes(ctx, on, conn, store, q)
			}
		}
		if errors.Is(err, subscriptions.ErrOtherDatabase) {
			delete(conn.Conn().PgConn().CustomData(), systemKey) // a pooler may have changed the server behind the connection
		}
		return err
	})
	return found, err
}

// News implements subscriptions.Source. It asks the server from which a store's changes are read.
func (p *Source) News(ctx context.Context, after map[int64]subscriptions.Change) (map[int64]subscriptions.Change, error) {
	ctx, cancel := context.WithTimeout(ctx, p.budget)
	defer cancel()
	byServer := map[*server][]int64{}
	for store := range after {
		first := append(p.fit(store), p.primary)[0]
		byServer[first] = append(byServer[first], store)
	}
	latest, failed := map[int64]subscriptions.Change{}, error(nil)
	for _, stores := range byServer {
		failed = errors.Join(failed, each(ctx, append(p.fit(stores[0]), p.primary), func(ctx context.Context, s *server) error {
			return s.connected(ctx, noStore, func(ctx context.Context, conn *pgxpool.Conn) error {
				return readLatest(ctx, conn, stores, after, latest)
			})
		}))
	}
	return latest, failed
}

// readLatest adds the latest changes of stores to latest.
func readLatest(ctx context.Context, conn *pgxpool.Conn, stores []int64, after, latest map[int64]subscriptions.Change) error {
	var transactions []uint64
	var ids []int64
	for _, store := range stores {
		transactions, ids = append(transactions, after[store].Transaction), append(ids, after[store].ID)
	}
	rows, _ := conn.Query(ctx, latestSQL, stores, transactions, ids) // the rows have the error
	var store int64
	var c subscriptions.Change
	_, err := pgx.ForEachRow(rows, []any{&store, &c.Transaction, &c.ID}, func() error {
		latest[store] = c
		return nil
	})
	return err
}

// readRecorded is read for what the database records when subscriptions change.
func (p *Source) readRecorded(ctx context.Context, store int64, try func(context.Context, *server, *pgxpool.Conn) error) error {
	return p.recorded(func() error { return p.read(ctx, store, try) })
}

// recorded calls read, which reads what the database records of changes. It returns ErrNoChanges if
// the database records none.
func (p *Source) recorded(read func() error) error {
	if since := p.noChanges.Load(); since != nil && time.Since(*since) < noChangesFor {
		return subscriptions.ErrNoChanges
	}
	err := read()
	if lacksChanges(err) {
		p.noChanges.Store(new(time.Now()))
		return subscriptions.ErrNoChanges
	}
	return err
}

// noChangesFor is how long recorded remembers that the database has no changes. Postgres logs each
// statement that fails, so it should not be repeated for every request.
const noChangesFor = time.Minute

// lacksChanges reports whether a statement failed because the database does not have the
// migration of the changes: one that is sharded by store leaves it out.
func lacksChanges(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code == "42P01" || refused.Code == "42703") // undefined table or column
}

// MarkTimeline records the timeline of the primary's log, if it is new. Changes does that too. Call
// it when a connection to the primary begins, so that a timeline is known before replicas show
// changes on it, and while the server still knows where the timeline before ended.
func (p *Source) MarkTimeline(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.budget)
	defer cancel()
	err := p.primary.connected(ctx, noStore, mark)
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
	patience := remaining(ctx) * 3 / 4
	_, err := conn.Exec(ctx, fmt.Sprintf(`/* begin_changes */ BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
		SET LOCAL lock_timeout = %d;
		LOCK TABLE ONLY subscription_timelines, ONLY pruned_deletions, ONLY deleted_subscriptions, ONLY subscriptions,
			ONLY products, ONLY plans, ONLY saved_cards IN ACCESS SHARE MODE`, max(1, patience.Milliseconds())))
	return err
}

func (p *Source) changes(ctx context.Context, on *server, conn *pgxpool.Conn, store int64, q subscriptions.ChangesQuery) (c subscriptions.Changes, err error) {
	var r changesRow
	if r.Database.System, err = systemIdentifier(ctx, conn); err != nil {
		return c, err
	}
	c, err = p.oneSnapshot(ctx, on, conn, store, q, &r)
	if err != nil || c.Next == q.After {
		return c, err
	}
	// Only now, since a snapshot may see what is not on disk.
	if onDisk, err := flush(ctx, conn, &r.History); err != nil || !onDisk {
		return subscriptions.Changes{}, subscriptions.Unavailable(cmp.Or(err, errNotOnDisk))
	}
	return c, nil
}

// oneSnapshot reads changes in one transaction.
func (p *Source) oneSnapshot(ctx context.Context, on *server, conn *pgxpool.Conn, store int64, q subscriptions.ChangesQuery, r *changesRow) (c subscriptions.Changes, err error) {
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
	if on.replica != nil && (!c.More && r.Ahead(q.After) || r.Latest.Number < p.watch.Timeline()) {
		return c, errBehind
	}
	on.lately.Store(&dated{r.History, time.Now()})
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
func flush(ctx context.Context, conn *pgxpool.Conn, h *subscriptions.History) (onDisk bool, err error) {
	if h.Replica || h.Flushed >= h.Log {
		return true, nil
	}
	if _, err := conn.Exec(ctx, `/* flush */ BEGIN READ WRITE; SET LOCAL synchronous_commit = local;
		SELECT pg_logical_emit_message(true, 'commerce', ''); COMMIT`); err != nil {
		_, _ = conn.Exec(ctx, rollback)
	}
	for pause, gaveUp := time.Millisecond, time.Now().Add(remaining(ctx)/2); ; pause = min(2*pause, 50*time.Millisecond) {
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
func (p *Source) changed(ctx context.Context, conn *pgxpool.Conn, store int64, ids []int64, l locale.Locale) ([]subscriptions.Subscription, error) {
	found, err := p.rows(ctx, conn, newRow(store).full(), len(ids), changedSQL, store, string(l), ids)
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
