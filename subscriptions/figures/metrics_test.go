package figures

import (
	"math"
	"strings"
	"testing"
	"time"

	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/deploy/assert"
	"commerce/subscriptions"
	"commerce/subscriptions/history"
)

// measure makes the metrics of 2025-11 from subscriptions' states.
func measure(t *testing.T, lives ...[]history.State) (*Metrics, error) {
	t.Helper()
	all := assert.Must(Movements(lives))(t)
	return Measure(all, time.Date(2025, 11, 30, 0, 0, 0, 0, time.UTC))
}

// since returns a monthly subscription's state since the beginning of a month.
func since(month string, status subscriptions.Status, currency string, price money.Amount) history.State {
	at, err := time.Parse("2006-01", month)
	if err != nil {
		panic(err)
	}
	return history.State{At: at, Status: status, Currency: currency, Price: price, Duration: period.Monthly}
}

func TestMeasure_KeepsThreeYearsUntilTheRunningMonth(t *testing.T) {
	t.Parallel()
	m, err := measure(t, []history.State{
		since("2021-01", subscriptions.Active, "SAR", 100), since("2022-11", subscriptions.Active, "SAR", 300), since("2022-12", subscriptions.Active, "SAR", 200),
		since("2025-11", subscriptions.Canceled, "SAR", 200), since("2027-01", subscriptions.PastDue, "SAR", 1000), // by another clock
	}, []history.State{
		since("2021-01", subscriptions.Active, "XYZ", 100), since("2022-11", subscriptions.Expired, "XYZ", 100), // forgotten
	}, []history.State{
		since("2025-06", subscriptions.Trialing, "SAR", 0), since("2025-10", subscriptions.Active, "XYZ", 100), since("2025-11", subscriptions.Trialing, "SAR", 0), // corrected
	})
	assert.Require(t, err == nil && len(m.Series) == 1 && m.Last-m.First == MaxMonths-1, "%+v, %v", m, err)
	assert.That(t, m.First.String() == "2022-12" && m.Last.String() == "2025-11", "from %s to %s", m.First, m.Last)
	for month := time.Month(1); month <= 48; month++ {
		end := time.Date(2025, month+1, 1, 0, 0, 0, -1, time.UTC)
		first := time.Date(2025, month-MaxMonths+1, 1, 0, 0, 0, 0, time.UTC)
		assert.That(t, end.Sub(first) < history.KeepStates, "at %s, states of %s may be folded", end, first)
	}
	months := m.Series[0].Months
	assert.Equal(t, months[0], Figures{MRR: 200, Subscriptions: 1, Contraction: 100}, "first")
	assert.Equal(t, months[MaxMonths-2], Figures{MRR: 200, Subscriptions: 1}, "before the last one")
	assert.Equal(t, months[MaxMonths-1], Figures{MRR: 1000, Subscriptions: 1, Reactivated: 1000, Churned: 200}, "last")
}

// Of 4/3 minor units, 1/3 and 2/3 are lost: each would round the other way.
func TestMeasure_MovementsAddUpToTheChange(t *testing.T) {
	t.Parallel()
	third := since("2025-10", subscriptions.Active, "JPY", 1)
	third.Duration = period.Quarterly
	two := third
	two.Price = 2
	paused := since("2025-11", subscriptions.Paused, "JPY", 0)
	m, err := measure(t, []history.State{third}, []history.State{since("2025-09", subscriptions.Trialing, "USD", 9), third, paused}, []history.State{two, paused})
	assert.NoError(t, err)
	assert.Equal(t, m.Series, []Series{{Currency: "JPY", Months: []Figures{
		{}, {MRR: 1, New: 1, Subscriptions: 3}, {MRR: 0, Churned: 1, Subscriptions: 1},
	}}}, "figures")
}

func TestMeasure_RefusesWhatItCannotShow(t *testing.T) {
	t.Parallel()
	huge := since("2025-10", subscriptions.Active, "SAR", math.MaxInt64)
	for want, life := range map[string][]history.State{
		`unknown currency "XYZ"`: {since("2025-10", subscriptions.Active, "XYZ", 1)},
		"monthly revenue in SAR": {huge},
	} {
		got, err := measure(t, life, []history.State{huge})
		assert.That(t, err != nil && strings.Contains(err.Error(), want), "%+v, %v; want %s", got, err, want)
	}
	huge.Duration = "weekly"
	_, err := Movements([][]history.State{{huge}})
	assert.That(t, err != nil && strings.Contains(err.Error(), `unknown duration "weekly"`), "%v", err)
}
