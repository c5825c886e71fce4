package history

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/recorded"
)

// historySQL reads the states of a subscription up to a number, the newest first. The arguments
// are the store, the ID, the number and the maximum number of rows. A row without a card has that
// of an older row, perhaps of one that is not in the result.
var historySQL = `/* history */
	WITH page AS (
		SELECT * FROM subscription_states WHERE store_id = $1 AND subscription_id = $2 AND number <= $3
		ORDER BY number DESC LIMIT $4
	),
	older AS (
		SELECT card_last_four, card_scheme FROM subscription_states
		WHERE store_id = $1 AND subscription_id = $2 AND number < (SELECT min(number) FROM page) AND card_last_four IS NOT NULL
		ORDER BY number DESC LIMIT 1
	)
	SELECT ` + columns("page", "known") + `, page.card_last_four IS NOT NULL
	FROM page LEFT JOIN older ON true
		CROSS JOIN LATERAL (SELECT coalesce(page.card_last_four, older.card_last_four) AS card_last_four,
			coalesce(page.card_scheme, older.card_scheme) AS card_scheme) known
	ORDER BY page.number DESC`

// Postgres reads histories from servers, and events of a store as a feed does.
type Postgres struct {
	servers  *postgres.Servers
	follower *recorded.Follower
	records  recorded.Reads
}

// NewPostgres returns the histories of a source. timeline is that of recorded.NewFollower.
func NewPostgres(rows *postgres.Source, timeline func() int64) *Postgres {
	return &Postgres{servers: rows.Servers, follower: recorded.NewFollower(rows, timeline)}
}

func (p *Postgres) History(ctx context.Context, store, id int64, q Query) (found Page, err error) {
	err = p.records.Do(func() error {
		return p.servers.Read(ctx, store, func(ctx context.Context, on *postgres.Server, conn *pgxpool.Conn) (err error) {
			found, err = page(ctx, on, conn, store, id, q)
			return err
		})
	})
	return found, err
}

// page reads a page from one server.
func page(ctx context.Context, on *postgres.Server, conn *pgxpool.Conn, store, id int64, q Query) (found Page, err error) {
	// Almost every state has an event. If too few of these have one, all are read again, since
	// they may be folded in the meantime.
	for rows := q.Limit + 2; ; rows *= 8 {
		states, err := states(ctx, conn, store, id, q.Newest(), rows)
		switch {
		case err != nil:
			return found, err
		case len(states) == 0 && q.After == Place{}: // else the older ones may be folded
			return found, subscriptions.ErrNotFound
		// A replica may not have the state of a place yet, nor older ones. Or it is folded.
		case on.IsReplica && q.After != Place{} && (len(states) == 0 || states[0].Number != q.After.State):
			return found, postgres.ErrBehind
		}
		var ok bool
		if found, ok = q.Page(states, len(states) < rows); ok {
			return found, nil
		}
	}
}

// states returns the newest states of a subscription up to a number.
func states(ctx context.Context, conn *pgxpool.Conn, store, id, newest int64, limit int) ([]State, error) {
	var s row
	var own bool // the card is that of the row
	var owners []bool
	var all []State
	rows, _ := conn.Query(ctx, historySQL, store, id, newest, limit) // the rows have the error
	_, err := pgx.ForEachRow(rows, append(s.into(), &own), func() error {
		all, owners = append(all, s.state()), append(owners, own)
		return nil
	})
	for i := len(all) - 2; i >= 0; i-- {
		if !owners[i] {
			all[i].Card = all[i+1].Card
		}
	}
	return all, err
}
