package subscriptions

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
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
		if errors.Is(err, errOtherDatabase) {
			forgetSystem(conn) // a pooler may have changed the server behind the connection
		}
		return err
	})
	return found, err
}

// oneSnapshot lets both statements see the same, also on a pooler that spreads transactions
// over several servers.
var oneSnapshot = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

func (p *Postgres) changes(ctx context.Context, on *server, conn *pgxpool.Conn, store int64, q ChangesQuery, system int64) (Changes, error) {
	tx, err := conn.BeginTx(ctx, oneSnapshot)
	if err != nil {
		return Changes{}, classify(err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // it wrote nothing; if this fails, the connection is closed
	r := changesRow{history: history{database: database{system: system}}}
	args := []any{store, q.After.transaction, q.After.id, q.Limit + 1, q.After.timeline, system}
	if err := readRows(ctx, tx, changesSQL(q.Limit), args, r.into(), func() {}); err != nil {
		return Changes{}, err
	}
	c, changed, last := r.changes(q.Limit)
	if c, err = r.result(q.After, c, last); err != nil {
		return Changes{}, err
	}
	if on.replica != nil && !c.More && r.ahead(q.After) {
		return Changes{}, errBehind
	}
	on.polls.remember(&r.history, p.now())
	if c.Next == q.After {
		return c, nil
	}
	c.Changed, err = p.changed(ctx, tx, store, changed, q.Language)
	return c, err
}

// changed returns subscriptions in the order of ids.
func (p *Postgres) changed(ctx context.Context, tx pgx.Tx, store int64, ids []int64, l locale.Locale) ([]Subscription, error) {
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
	err := readRows(ctx, tx, changedSQL, []any{store, string(l), ids}, append(r.into(), scheduled.into()...), func() {
		found = append(found, r.Subscription)
		s := &found[len(found)-1]
		p.complete(s, &r)
		s.Scheduled = scheduled.variant()
	})
	slices.SortFunc(found, func(a, b Subscription) int { return cmp.Compare(order[a.ID], order[b.ID]) })
	return found, err
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
