package feed

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/recorded"
)

// Postgres reads changes from the servers of a source of subscriptions.
type Postgres struct {
	rows *postgres.Source
	*recorded.Follower
}

// NewPostgres returns the changes of a source. timeline is that of recorded.NewFollower.
func NewPostgres(rows *postgres.Source, timeline func() int64) *Postgres {
	return &Postgres{rows, recorded.NewFollower(rows, timeline)}
}

func (p *Postgres) Changes(ctx context.Context, store int64, q Query) (found Changes, err error) {
	var changed []int64
	found.Next, found.More, err = p.Follow(ctx, store, q.After, recorded.Reading{
		Tables: "pruned_deletions, ONLY deleted_subscriptions, ONLY subscriptions, ONLY products, ONLY plans, ONLY saved_cards",
		Page: func(ctx context.Context, conn *pgxpool.Conn, system int64) (*recorded.Lineage, recorded.Change, bool, error) {
			var r changesRow
			r.Database.System = system
			args := []any{store, q.After.Transaction, q.After.ID, q.Limit + 1, q.After.Timeline, system}
			err := conn.QueryRow(ctx, changesSQL(q.Limit), args...).Scan(r.into()...)
			var last recorded.Change
			found, changed, last = r.changes(q.Limit)
			return &r.Lineage, last, found.More, err
		},
		Rest: func(ctx context.Context, conn *pgxpool.Conn) (err error) {
			if len(changed) > 0 {
				found.Changed, err = p.changed(ctx, conn, store, changed, q.Language)
			}
			return err
		},
	})
	if err != nil {
		return Changes{}, err
	}
	if found.Next == q.After {
		return Changes{Next: q.After}, nil
	}
	return found, nil
}

// News implements Source.
func (p *Postgres) News(ctx context.Context, after map[int64]recorded.Change) (map[int64]recorded.Change, error) {
	return p.Latest(ctx, latestSQL, after)
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
