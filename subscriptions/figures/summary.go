package figures

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"time"

	"commerce/auth/problem"
	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/subscriptions"
	"commerce/subscriptions/history"
)

// Total adds up a store's subscriptions of one status, currency and duration.
type Total struct {
	Status   subscriptions.Status
	Currency string // ISO 4217
	Duration period.Duration

	Count  int64
	Ending int64    // those with CancelAtPeriodEnd
	Prices *big.Int // sum of the prices, in minor units of Currency
}

type Summary struct {
	AsOf     time.Time                      // when reading the source began
	ByStatus map[subscriptions.Status]int64 // has every status
	Ending   int64                          // on trial or active, and canceled at the period's end
	MRR      []Revenue                      // by currency
}

// Revenue is the monthly recurring revenue in one currency: the sum of each active or past
// due subscription's price, divided by the months of its duration.
type Revenue struct {
	Currency      string       // ISO 4217, a known one
	Amount        money.Amount // rounded once, half away from zero
	Subscriptions int64
}

// Summarize makes the summary of a store's totals, which were read at a time. A figure that cannot be
// shown is an error: there is no summary that leaves it out.
func Summarize(totals []Total, asOf time.Time) (*Summary, error) {
	s := &Summary{AsOf: asOf, ByStatus: make(map[subscriptions.Status]int64, len(subscriptions.Statuses))}
	for _, status := range subscriptions.Statuses {
		s.ByStatus[status] = 0
	}
	recurring := map[string][]Total{} // by currency
	for _, t := range totals {
		if _, known := s.ByStatus[t.Status]; !known {
			return nil, subscriptions.Unavailable(fmt.Errorf("unknown status %q", t.Status))
		}
		s.ByStatus[t.Status] += t.Count
		if t.Status == subscriptions.Trialing || t.Status == subscriptions.Active {
			s.Ending += t.Ending
		}
		if history.Bears(t.Status) {
			recurring[t.Currency] = append(recurring[t.Currency], t)
		}
	}
	for _, currency := range slices.Sorted(maps.Keys(recurring)) {
		revenue, err := monthly(currency, recurring[currency])
		if err != nil {
			return nil, err
		}
		s.MRR = append(s.MRR, revenue)
	}
	return s, nil
}

func monthly(currency string, totals []Total) (Revenue, error) {
	if !money.Known(currency) {
		return Revenue{}, problem.UnknownCurrency("monthly revenue", currency)
	}
	r := Revenue{Currency: currency}
	sum := new(big.Rat)
	for _, t := range totals {
		months := t.Duration.Months()
		if months == 0 {
			return Revenue{}, subscriptions.Unavailable(fmt.Errorf("unknown duration %q", t.Duration))
		}
		sum.Add(sum, new(big.Rat).SetFrac(t.Prices, big.NewInt(int64(months))))
		r.Subscriptions += t.Count
	}
	var err error
	r.Amount, err = rounded(currency, sum)
	return r, err
}

// rounded rounds an amount half away from zero.
func rounded(currency string, sum *big.Rat) (money.Amount, error) {
	// ParseInt refuses what an Amount cannot hold.
	amount, err := strconv.ParseInt(sum.FloatString(0), 10, 64)
	if err != nil {
		return 0, subscriptions.Unavailable(fmt.Errorf("monthly revenue in %s: %w", currency, err))
	}
	return money.Amount(amount), nil
}
