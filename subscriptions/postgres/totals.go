package postgres

import (
	"context"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/auth/pgread"
	"commerce/subscriptions"
)

// totalsSQL reads all of a store's rows from the index subscriptions_by_status, which has
// all of these columns. The sum is numeric, so it cannot overflow.
const totalsSQL = `/* summary */
	SELECT status, currency, duration, count(*), count(*) FILTER (WHERE cancel_at_period_end), sum(price_amount)::text
	FROM subscriptions WHERE store_id = $1 GROUP BY status, currency, duration`

func (p *Source) Totals(ctx context.Context, store int64) ([]subscriptions.Total, error) {
	return addUp(ctx, p, store, scanTotal, totalsSQL)
}

// addUp runs a statement that reads all rows of a store. It ends with the source.
func addUp[T any](ctx context.Context, p *Source, store int64, scan pgx.RowToFunc[T], sql string) (sums []T, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.base, cancel)()
	err = p.onServers(ctx, store, func(ctx context.Context, s *server) (err error) {
		began := time.Now()
		sums, err = pgread.Rows(ctx, s.summaryPool, scan, sql, store)
		return failure(s.summaryPool, began, err)
	})
	return sums, err
}

func scanTotal(row pgx.CollectableRow) (t subscriptions.Total, err error) {
	var prices []byte
	if err := row.Scan((*string)(&t.Status), &t.Currency, (*string)(&t.Duration), &t.Count, &t.Ending, &prices); err != nil {
		return t, err
	}
	t.Prices = new(big.Int)
	return t, t.Prices.UnmarshalText(prices)
}
