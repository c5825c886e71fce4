package subscriptions

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
)

// Changes implements Source.
func (p *Postgres) Changes(ctx context.Context, store int64, q ChangesQuery) (found Changes, err error) {
	err = p.connected(ctx, store, func(ctx context.Context, conn *pgxpool.Conn) error {
		found, err = p.changes(ctx, conn, store, q)
		return err
	})
	return found, err
}

// changes reads on one connection. So it reads the subscriptions, which it reads last, at
// least as they were when it found that they had changed.
func (p *Postgres) changes(ctx context.Context, conn *pgxpool.Conn, store int64, q ChangesQuery) (Changes, error) {
	var r changeRow
	var err error
	if r.database.system, err = systemIdentifier(ctx, conn); err != nil {
		return Changes{}, err
	}
	var c Changes
	var changed, all []change
	args := []any{store, q.After.transaction, q.After.id, q.Limit + 1, q.After.timeline, r.database.system}
	err = readRows(ctx, conn, changesSQL(q.Limit), args, r.into(), func() {
		switch at := time.Time(r.deletedAt); {
		case r.change == change{}:
			return
		case len(all) == q.Limit:
			c.More = true
			return
		case at.IsZero():
			changed = append(changed, r.change)
		default:
			c.Deleted = append(c.Deleted, Deletion{ID: r.id, At: at})
		}
		all = append(all, r.change)
	})
	if err != nil {
		return Changes{}, err
	}
	var last change
	if len(all) > 0 {
		last = all[len(all)-1]
	}
	if c, err = r.judge(q.After, c, last); err != nil || c.Next == q.After {
		return c, err
	}
	c.Changed, err = p.changed(ctx, conn, store, changed, q.Language)
	return c, err
}

// changed returns subscriptions in the order of their changes, as those changes left them.
func (p *Postgres) changed(ctx context.Context, conn *pgxpool.Conn, store int64, changes []change, l locale.Locale) ([]Subscription, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	ids, transactions, order := make([]int64, len(changes)), make([]uint64, len(changes)), make(map[int64]int, len(changes))
	for i, c := range changes {
		ids[i], transactions[i], order[c.id] = c.id, c.transaction, i
	}
	r := row{Subscription: Subscription{StoreID: store}}
	var scheduled scheduledVariant
	found := make([]Subscription, 0, len(changes))
	err := readRows(ctx, conn, changedSQL, []any{store, string(l), ids, transactions}, append(r.into(), scheduled.into()...), func() {
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
	err := conn.QueryRow(ctx, "SELECT system_identifier FROM pg_control_system()").Scan(&id)
	if err != nil {
		return 0, classify(err)
	}
	known[systemKey] = id
	return id, nil
}
