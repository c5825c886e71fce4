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
const historySQL = `/* history */
	WITH page AS (
		SELECT * FROM subscription_states WHERE store_id = $1 AND subscription_id = $2 AND number <= $3
		ORDER BY number DESC LIMIT $4
	),
	older AS (
		SELECT card_last_four, card_scheme FROM subscription_states
		WHERE store_id = $1 AND subscription_id = $2 AND number < (SELECT min(number) FROM page) AND card_last_four IS NOT NULL
		ORDER BY number DESC LIMIT 1
	)
	SELECT number, recorded_at, first, was_bearing, status IS NULL, coalesce(status, ''), coalesce(variant_id, 0),
		coalesce(price_amount, 0), coalesce(currency, ''), coalesce(duration, ''), coalesce(cancel_at_period_end, false),
		period_start, period_end, coalesce(page.card_last_four, older.card_last_four, ''),
		coalesce(page.card_scheme, older.card_scheme, ''), page.card_last_four IS NOT NULL,
		coalesce(cancellation_reason, '')
	FROM page LEFT JOIN older ON true ORDER BY number DESC`

// Postgres reads histories from servers.
type Postgres struct {
	servers *postgres.Servers
	records recorded.Reads
}

func NewPostgres(servers *postgres.Servers) *Postgres { return &Postgres{servers: servers} }

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
	var s State
	var card subscriptions.Card
	var own bool // the card is that of the row
	var owners []bool
	into := []any{
		&s.Number, (*postgres.Instant)(&s.At), &s.Baseline, &s.WasBearing, &s.Deleted, (*postgres.Text)(&s.Status), &s.VariantID,
		(*int64)(&s.Price), (*postgres.Text)(&s.Currency), (*postgres.Text)(&s.Duration), &s.CancelAtPeriodEnd,
		(*postgres.Instant)(&s.PeriodStart), (*postgres.Instant)(&s.PeriodEnd), &card.LastFour, &card.Scheme, &own,
		(*postgres.Text)(&s.CancellationReason),
	}
	var all []State
	rows, _ := conn.Query(ctx, historySQL, store, id, newest, limit) // the rows have the error
	_, err := pgx.ForEachRow(rows, into, func() error {
		state := s
		if card.LastFour != "" {
			state.Card = new(card)
		}
		all, owners = append(all, state), append(owners, own)
		return nil
	})
	for i := len(all) - 2; i >= 0; i-- {
		if !owners[i] {
			all[i].Card = all[i+1].Card
		}
	}
	return all, err
}
