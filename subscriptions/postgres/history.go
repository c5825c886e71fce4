package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/subscriptions"
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
		coalesce(page.card_scheme, older.card_scheme, ''), page.card_last_four IS NOT NULL
	FROM page LEFT JOIN older ON true ORDER BY number DESC`

// History implements subscriptions.Source. It returns ErrNoChanges if the database has no changes.
func (p *Source) History(ctx context.Context, store, id int64, q subscriptions.HistoryQuery) (found subscriptions.HistoryPage, err error) {
	err = p.readRecorded(ctx, store, func(ctx context.Context, on *server, conn *pgxpool.Conn) error {
		// Almost every state has an event. If too few of these have one, all are read again, since
		// they may be folded in the meantime.
		for rows := q.Limit + 2; ; rows *= 8 {
			states, err := states(ctx, conn, store, id, q.Newest(), rows)
			switch {
			case err != nil:
				return err
			case len(states) == 0 && q.After == subscriptions.Place{}: // else the older ones may be folded
				return subscriptions.ErrNotFound
			// A replica may not have the state of a place yet, nor older ones. Or it is folded.
			case on.replica != nil && q.After != subscriptions.Place{} && (len(states) == 0 || states[0].Number != q.After.State):
				return errBehind
			}
			var ok bool
			if found, ok = q.Page(states, len(states) < rows); ok {
				return nil
			}
		}
	})
	return found, err
}

// states returns the newest states of a subscription up to a number.
func states(ctx context.Context, conn *pgxpool.Conn, store, id, newest int64, limit int) ([]subscriptions.State, error) {
	var s subscriptions.State
	var card subscriptions.Card
	var own bool // the card is that of the row
	var owners []bool
	into := []any{
		&s.Number, (*instant)(&s.At), &s.Baseline, &s.WasBearing, &s.Deleted, (*text)(&s.Status), &s.VariantID,
		(*int64)(&s.Price), (*text)(&s.Currency), (*text)(&s.Duration), &s.CancelAtPeriodEnd,
		(*instant)(&s.PeriodStart), (*instant)(&s.PeriodEnd), &card.LastFour, &card.Scheme, &own,
	}
	var all []subscriptions.State
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
