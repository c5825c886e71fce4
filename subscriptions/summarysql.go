package subscriptions

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"
)

// totalsSQL reads all of a store's rows from the index subscriptions_by_status, which has
// all of these columns. The sum is numeric, so it cannot overflow.
const totalsSQL = `/* summary */
	SELECT status, currency, duration, count(*), count(*) FILTER (WHERE cancel_at_period_end), sum(price_amount)::text
	FROM subscriptions WHERE store_id = $1 GROUP BY status, currency, duration`

// Totals implements Source.
func (p *Postgres) Totals(ctx context.Context, store int64) ([]Total, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.base, cancel)()
	var totals []Total
	err := p.servers.read(ctx, store, func(ctx context.Context, s *server) (err error) {
		totals, err = s.totals(ctx, store)
		return err
	})
	if err != nil {
		return nil, err
	}
	return totals, nil
}

func (s *server) totals(ctx context.Context, store int64) ([]Total, error) {
	began := time.Now()
	rows, err := s.summaryPool.Query(ctx, totalsSQL, store)
	if err != nil {
		return nil, describe(s.summaryPool, began, classify(err))
	}
	totals, err := pgx.CollectRows(rows, scanTotal)
	if err != nil {
		return nil, describe(s.summaryPool, began, classify(err))
	}
	return totals, nil
}

func scanTotal(row pgx.CollectableRow) (t Total, err error) {
	var prices string
	if err := row.Scan((*string)(&t.Status), &t.Currency, (*string)(&t.Duration), &t.Count, &t.Ending, &prices); err != nil {
		return Total{}, err
	}
	sum, ok := new(big.Int).SetString(prices, 10)
	if !ok {
		return Total{}, fmt.Errorf("sum of prices: %q is not a whole number", prices)
	}
	t.Prices = sum
	return t, nil
}
