package subscriptions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
)

// Changes implements Source. It returns ErrNoChanges if the database has no changes.
func (p *Postgres) Changes(ctx context.Context, store int64, q ChangesQuery) (Changes, error) {
	if since := p.noChanges.Load(); since != nil && p.now().Sub(*since) < noChangesFor {
		return Changes{}, ErrNoChanges
	}
	found, err := p.readChanges(ctx, store, q)
	if lacksChanges(err) {
		p.noChanges.Store(new(p.now()))
		return Changes{}, ErrNoChanges
	}
	return found, err
}

// noChangesFor is how long Changes remembers that the database has no changes. Postgres logs each
// statement that fails, so Changes should not repeat it for every request.
const noChangesFor = time.Minute

// lacksChanges reports whether a statement failed because the database does not have the
// migration of the changes: one that is sharded by store leaves it out.
func lacksChanges(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code == "42P01" || refused.Code == "42703") // undefined table or column
}

func (p *Postgres) readChanges(ctx context.Context, store int64, q ChangesQuery) (found Changes, err error) {
	err = p.read(ctx, store, func(ctx context.Context, on *server, conn *pgxpool.Conn) error {
		found = Changes{}
		if on.polls.good(q.After, p.now()) {
			news, err := hasNews(ctx, conn, store, q.After)
			if err != nil || !news {
				found.Next = q.After
				return err
			}
		}
		system, err := systemIdentifier(ctx, conn)
		if err != nil {
			return err
		}
		found, err = p.changes(ctx, on, conn, store, q, system)
		if errors.Is(err, errUnmarked) && on.replica == nil {
			if err = mark(ctx, conn); err == nil {
				found, err = p.changes(ctx, on, conn, store, q, system)
			}
		}
		if errors.Is(err, errOtherDatabase) {
			forgetSystem(conn) // a pooler may have changed the server behind the connection
		}
		return err
	})
	return found, err
}

// MarkTimeline records the timeline of the primary's log, if it is new. Changes does that too. Call
// it when a connection to the primary begins, so that a timeline is known before replicas show
// changes on it, and while the server still knows where the timeline before ended.
func (p *Postgres) MarkTimeline(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.budget)
	defer cancel()
	err := p.servers.primary.connected(ctx, noStore, p.wait, mark)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "42883" { // undefined function
		return nil // the database has no changes
	}
	return err
}

// mark records the timeline in a transaction of its own, so that no writer waits for it.
func mark(ctx context.Context, conn *pgxpool.Conn) error {
	if _, err := conn.Exec(ctx, "/* mark_timeline */ BEGIN READ WRITE; SELECT mark_timeline(); COMMIT"); err != nil {
		_, _ = conn.Exec(ctx, rollback)
		return classify(err)
	}
	return nil
}

const rollback = "/* end_changes */ ROLLBACK"

// begin begins a transaction with one snapshot for all its statements, also on a pooler that
// spreads transactions over several servers. First it locks the tables: a snapshot that is older
// than a rewrite of a table, as by ALTER TABLE, sees none of its rows. Partitions need no locks,
// since only their table can be rewritten so. It fails before ctx ends if a lock is not free.
func begin(ctx context.Context, conn *pgxpool.Conn) error {
	patience := time.Second
	if ends, bounded := ctx.Deadline(); bounded {
		patience = time.Until(ends) * 3 / 4
	}
	_, err := conn.Exec(ctx, fmt.Sprintf(`/* begin_changes */ BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
		SET LOCAL lock_timeout = %d;
		LOCK TABLE ONLY subscription_timelines, ONLY pruned_deletions, ONLY deleted_subscriptions, ONLY subscriptions,
			ONLY products, ONLY plans, ONLY saved_cards IN ACCESS SHARE MODE`, max(1, patience.Milliseconds())))
	return err
}

func (p *Postgres) changes(ctx context.Context, on *server, conn *pgxpool.Conn, store int64, q ChangesQuery, system int64) (Changes, error) {
	r := changesRow{history: history{database: database{system: system}}}
	c, err := p.oneSnapshot(ctx, on, conn, store, q, &r)
	if err != nil || c.Next == q.After {
		return c, err
	}
	// Only now, since a snapshot may see what is not on disk.
	if onDisk, err := flush(ctx, conn, &r.history); err != nil || !onDisk {
		return Changes{}, unavailable(cmp.Or(err, errNotOnDisk))
	}
	return c, nil
}

// oneSnapshot reads changes in one transaction.
func (p *Postgres) oneSnapshot(ctx context.Context, on *server, conn *pgxpool.Conn, store int64, q ChangesQuery, r *changesRow) (Changes, error) {
	defer func() { _, _ = conn.Exec(ctx, rollback) }() // it wrote nothing; if this fails, the connection is closed
	if err := begin(ctx, conn); err != nil {
		return Changes{}, classify(err)
	}
	args := []any{store, q.After.transaction, q.After.id, q.Limit + 1, q.After.timeline, r.database.system}
	if err := readRows(ctx, conn, changesSQL(q.Limit), args, r.into(), func() {}); err != nil {
		return Changes{}, err
	}
	c, changed, last := r.changes(q.Limit)
	c, err := r.result(q.After, c, last)
	if err != nil {
		return Changes{}, err
	}
	if on.replica != nil && (!c.More && r.ahead(q.After) || r.latest.number < p.servers.watch.Timeline()) {
		return Changes{}, errBehind
	}
	on.polls.remember(&r.history, p.now())
	if c.Next == q.After {
		return c, nil
	}
	c.Changed, err = p.changed(ctx, conn, store, changed, q.Language)
	return c, err
}

var errNotOnDisk = errors.New("the latest changes are not on disk yet")

// flush makes sure that everything that was read is on disk: a transaction that committed with
// synchronous_commit = off is seen before it is, and a crash could give its ID to another one. A
// replica receives only what is on disk.
//
// The log may be ahead of the disk without such a transaction, for example after a cleanup of a
// page, and stay so for seconds. The commit of a message that nobody reads flushes it. Without
// the right to write one, flush waits for Postgres.
func flush(ctx context.Context, conn *pgxpool.Conn, h *history) (onDisk bool, err error) {
	if h.replica || h.flushed >= h.log {
		return true, nil
	}
	if _, err := conn.Exec(ctx, `/* flush */ BEGIN READ WRITE; SET LOCAL synchronous_commit = local;
		SELECT pg_logical_emit_message(true, 'commerce', ''); COMMIT`); err != nil {
		_, _ = conn.Exec(ctx, rollback)
	}
	patience := time.Second
	if ends, bounded := ctx.Deadline(); bounded {
		patience = time.Until(ends) / 2
	}
	for pause, gaveUp := time.Millisecond, time.Now().Add(patience); ; pause = min(2*pause, 50*time.Millisecond) {
		err = conn.QueryRow(ctx, "/* flushed */ SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint >= $1", int64(h.log)).Scan(&onDisk)
		if err != nil {
			return false, classify(err)
		}
		if onDisk || time.Now().After(gaveUp) {
			return onDisk, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// changed returns subscriptions in the order of ids. A subscription whose product has not arrived
// yet, as with logical replication, fails: its change would be lost behind the cursor.
func (p *Postgres) changed(ctx context.Context, on querier, store int64, ids []int64, l locale.Locale) ([]Subscription, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	order := make(map[int64]int, len(ids))
	for i, id := range ids {
		order[id] = i
	}
	r := row{Subscription: Subscription{StoreID: store}}
	var scheduled scheduledVariant
	found := make([]Subscription, 0, len(ids))
	err := readRows(ctx, on, changedSQL, []any{store, string(l), ids}, append(r.into(), scheduled.into()...), func() {
		found = append(found, r.Subscription)
		s := &found[len(found)-1]
		p.complete(s, &r)
		s.Scheduled = scheduled.variant()
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b Subscription) int { return cmp.Compare(order[a.ID], order[b.ID]) })
	for i, id := range ids {
		if i == len(found) || found[i].ID != id {
			return nil, unavailable(fmt.Errorf("subscription %d has changed, but its product or plan is missing", id))
		}
	}
	return found, nil
}

// systemKey is the key of the system identifier in a connection's custom data.
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
	if err != nil {
		return 0, classify(err)
	}
	known[systemKey] = id
	return id, nil
}

func forgetSystem(conn *pgxpool.Conn) { delete(conn.Conn().PgConn().CustomData(), systemKey) }
