package figures

import (
	"context"
	"errors"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/auth/pgread"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/recorded"
)

// Postgres reads figures from servers. They read all rows of a store, which takes longer than lists, so their pools
// should be others.
type Postgres struct {
	servers *postgres.Servers
	base    context.Context
	records recorded.Reads
}

// NewPostgres returns figures from servers. Their reads may outlive their requests: all end when base ends, and
// the pools can be closed only after that.
func NewPostgres(base context.Context, servers *postgres.Servers) *Postgres {
	return &Postgres{servers: servers, base: base}
}

// totalsSQL reads all of a store's rows from the index subscriptions_by_status, which has
// all of these columns. The sum is numeric, so it cannot overflow.
const totalsSQL = `/* summary */
	SELECT status, currency, duration, count(*), count(*) FILTER (WHERE cancel_at_period_end), sum(price_amount)::text
	FROM subscriptions WHERE store_id = $1 GROUP BY status, currency, duration`

func (p *Postgres) Totals(ctx context.Context, store int64) ([]Total, error) {
	return addUp(ctx, p, store, scanTotal, totalsSQL)
}

// movementsSQL reads the states of a store that can move revenue from the index
// subscription_states_by_revenue, which has all of these columns in the order of the window. It is one
// window, since each takes a pass over the rows. Sums are numeric, so they cannot overflow.
// No state is of an earlier month than one before, even if a clock was set back.
const movementsSQL = `/* metrics */
	WITH states AS (
		SELECT subscription_id, number, recorded_at, first, was_bearing, coalesce(status = 'paused', false) AS paused,
			CASE WHEN bears_revenue(status) THEN currency END AS currency,
			CASE WHEN bears_revenue(status) THEN price_amount::numeric * (120 / months_of(duration)) END AS price
		FROM subscription_states WHERE store_id = $1 AND (first OR moves_revenue)
	), steps AS (
		SELECT date_trunc('month', greatest(recorded_at, max(recorded_at) OVER before) AT TIME ZONE 'UTC') AS month,
			last_value(currency) OVER before AS was_in, currency, last_value(price) OVER before AS was, price,
			first AND count(*) OVER before = 0 AS opening, was_bearing AND NOT first AS imported,
			count(*) FILTER (WHERE was_bearing OR currency IS NOT NULL) OVER before > 0 AS again, paused
		FROM states
		WINDOW before AS (PARTITION BY subscription_id ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
	)
	SELECT month, coalesce(was_in, ''), coalesce(currency, ''), opening, imported, again, paused, count(*),
		coalesce(sum(was), 0)::text, coalesce(sum(price), 0)::text, count(*) FILTER (WHERE price > was), count(*) FILTER (WHERE price < was),
		coalesce(sum(price - was) FILTER (WHERE price > was), 0)::text, count(currency) = count(price)
	FROM steps GROUP BY month, was_in, currency, opening, imported, again, paused`

func (p *Postgres) Movements(ctx context.Context, store int64) (movements []Movement, err error) {
	err = p.records.Do(func() error {
		movements, err = addUp(ctx, p, store, scanMovement, movementsSQL)
		return err
	})
	return movements, err
}

// addUp runs a statement that reads all rows of a store.
func addUp[T any](ctx context.Context, p *Postgres, store int64, scan pgx.RowToFunc[T], sql string) (sums []T, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.base, cancel)()
	err = p.servers.On(ctx, store, func(ctx context.Context, s *postgres.Server) (err error) {
		began := time.Now()
		sums, err = pgread.Rows(ctx, s.Pool, scan, sql, store)
		return postgres.Failure(s.Pool, began, err)
	})
	return sums, err
}

func scanTotal(row pgx.CollectableRow) (t Total, err error) {
	var prices []byte
	if err := row.Scan((*string)(&t.Status), &t.Currency, (*string)(&t.Duration), &t.Count, &t.Ending, &prices); err != nil {
		return t, err
	}
	t.Prices = new(big.Int)
	return t, t.Prices.UnmarshalText(prices)
}

func scanMovement(row pgx.CollectableRow) (m Movement, err error) {
	var month time.Time
	var was, is, raised []byte
	var known bool
	if err := row.Scan(&month, &m.From, &m.To, &m.Opening, &m.Imported, &m.Again, &m.Paused, &m.Count,
		&was, &is, &m.Increased, &m.Decreased, &raised, &known); err != nil {
		return m, err
	}
	if !known {
		return m, subscriptions.Unavailable(errors.New("the history has an unknown duration"))
	}
	m.Month = MonthOf(month)
	m.Was, m.Is, m.Raised = new(big.Int), new(big.Int), new(big.Int)
	return m, errors.Join(m.Was.UnmarshalText(was), m.Is.UnmarshalText(is), m.Raised.UnmarshalText(raised))
}
