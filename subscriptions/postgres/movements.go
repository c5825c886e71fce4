package postgres

import (
	"context"
	"errors"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/subscriptions"
)

// movementsSQL reads the states of a store that can move revenue from the index
// subscription_states_by_revenue, which has all of these columns in the order of the window. It is one
// window, since each takes a pass over the rows. Sums are numeric, so they cannot overflow.
// No state is of an earlier month than one before, even if a clock was set back.
const movementsSQL = `/* metrics */
	WITH states AS (
		SELECT subscription_id, number, recorded_at, first, was_bearing,
			CASE WHEN status IN ('active', 'past_due') THEN currency END AS currency,
			CASE WHEN status IN ('active', 'past_due') THEN price_amount::numeric * CASE duration
				WHEN 'monthly' THEN 120 WHEN 'quarterly' THEN 40 WHEN 'semiAnnual' THEN 20 WHEN 'annually' THEN 10
				WHEN 'biennial' THEN 5 WHEN 'quinquennial' THEN 2 WHEN 'decennial' THEN 1 END
			END AS price
		FROM subscription_states WHERE store_id = $1 AND (first OR moves_revenue)
	), steps AS (
		SELECT date_trunc('month', greatest(recorded_at, max(recorded_at) OVER before) AT TIME ZONE 'UTC') AS month,
			last_value(currency) OVER before AS was_in, currency, last_value(price) OVER before AS was, price,
			first AND count(*) OVER before = 0 AS opening,
			count(*) FILTER (WHERE was_bearing OR currency IS NOT NULL) OVER before > 0 AS again
		FROM states
		WINDOW before AS (PARTITION BY subscription_id ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
	)
	SELECT month, coalesce(was_in, ''), coalesce(currency, ''), opening, again, count(*),
		coalesce(sum(was), 0)::text, coalesce(sum(price), 0)::text, coalesce(sum(price - was) FILTER (WHERE price > was), 0)::text,
		count(currency) = count(price)
	FROM steps GROUP BY month, was_in, currency, opening, again`

// Movements implements subscriptions.Source. It returns ErrNoChanges if the database has no changes.
func (p *Source) Movements(ctx context.Context, store int64) (movements []subscriptions.Movement, err error) {
	err = p.recorded(func() error {
		movements, err = addUp(ctx, p, store, scanMovement, movementsSQL)
		return err
	})
	return movements, err
}

func scanMovement(row pgx.CollectableRow) (m subscriptions.Movement, err error) {
	var month time.Time
	var was, is, raised []byte
	var known bool
	if err := row.Scan(&month, &m.From, &m.To, &m.Opening, &m.Again, &m.Count, &was, &is, &raised, &known); err != nil {
		return m, err
	}
	if !known {
		return m, subscriptions.Unavailable(errors.New("the history has an unknown duration"))
	}
	m.Month = subscriptions.MonthOf(month)
	m.Was, m.Is, m.Raised = new(big.Int), new(big.Int), new(big.Int)
	return m, errors.Join(m.Was.UnmarshalText(was), m.Is.UnmarshalText(is), m.Raised.UnmarshalText(raised))
}
