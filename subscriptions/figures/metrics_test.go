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
	assert.Equal(t, months[0], Figures{MRR: 200, Subscriptions: 1, Moves: Moves{Contraction: {100, 1}}}, "first")
	assert.Equal(t, months[MaxMonths-2], Figures{MRR: 200, Subscriptions: 1}, "before the last one")
	assert.Equal(t, months[MaxMonths-1], Figures{MRR: 1000, Subscriptions: 1, Moves: Moves{Reactivated: {1000, 1}, Churned: {200, 1}}}, "last")
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
		{}, {MRR: 1, Subscriptions: 3, Moves: Moves{New: {1, 3}}}, {MRR: 0, Subscriptions: 1, Moves: Moves{Paused: {1, 2}}},
	}}}, "figures")
}

// What docs/subscriptions.md says about each word.
func TestMeasure_SaysWhyRevenueMoved(t *testing.T) {
	t.Parallel()
	const active, pastDue, paused, canceled, trialing = subscriptions.Active, subscriptions.PastDue, subscriptions.Paused, subscriptions.Canceled, subscriptions.Trialing
	was := func(status subscriptions.Status, price money.Amount) history.State {
		return since("2025-10", status, "SAR", price)
	}
	is := func(status subscriptions.Status, price money.Amount) history.State {
		return since("2025-11", status, "SAR", price)
	}
	imported := func(s history.State) history.State {
		s.WasBearing = s.Status != trialing
		return s
	}
	begun := func(s history.State) history.State {
		s.Baseline = true
		return imported(s)
	}
	dollars, deleted := since("2025-11", pastDue, "USD", 70), history.State{At: is("", 0).At, Deleted: true}
	for name, tc := range map[string]struct {
		life   []history.State
		sar    Moves
		usd    Moves
		sarMRR money.Amount
	}{
		"new":                             {life: []history.State{is(active, 50)}, sar: Moves{New: {50, 1}}, sarMRR: 50},
		"new, free of charge":             {life: []history.State{is(active, 0)}, sar: Moves{New: {0, 1}}},
		"a trial that converts":           {life: []history.State{was(trialing, 50), is(active, 50)}, sar: Moves{New: {50, 1}}, sarMRR: 50},
		"there when recording began":      {life: []history.State{begun(is(active, 50))}, sarMRR: 50},
		"loaded":                          {life: []history.State{imported(is(pastDue, 50))}, sar: Moves{Imported: {50, 1}}, sarMRR: 50},
		"loaded, then raised":             {life: []history.State{imported(is(active, 50)), is(active, 60)}, sar: Moves{Imported: {50, 1}, Expansion: {10, 1}}, sarMRR: 60},
		"loaded paused, then resumed":     {life: []history.State{imported(was(paused, 50)), is(active, 50)}, sar: Moves{Reactivated: {50, 1}}, sarMRR: 50},
		"loaded on trial, then converted": {life: []history.State{imported(was(trialing, 50)), is(active, 50)}, sar: Moves{New: {50, 1}}, sarMRR: 50},
		"loaded again after its deletion": {life: []history.State{was(active, 50), deleted, imported(is(active, 60))}, sar: Moves{Imported: {60, 1}, Churned: {50, 1}}, sarMRR: 60},
		"past due":                        {life: []history.State{was(active, 50), is(pastDue, 50)}, sarMRR: 50},
		"paused":                          {life: []history.State{was(active, 50), is(paused, 50)}, sar: Moves{Paused: {50, 1}}},
		"past due, then paused":           {life: []history.State{was(pastDue, 50), is(paused, 50)}, sar: Moves{Paused: {50, 1}}},
		"canceled during a pause":         {life: []history.State{was(active, 50), was(paused, 50), is(canceled, 50)}},
		"paused after the cancellation":   {life: []history.State{was(active, 50), was(canceled, 50), is(paused, 50)}},
		"resumed":                         {life: []history.State{was(active, 50), was(paused, 50), is(active, 40)}, sar: Moves{Reactivated: {40, 1}}, sarMRR: 40},
		"paused twice":                    {life: []history.State{was(active, 50), is(paused, 50), is(active, 50), is(paused, 50)}, sar: Moves{Reactivated: {50, 1}, Paused: {100, 2}}},
		"canceled":                        {life: []history.State{was(active, 50), is(canceled, 50)}, sar: Moves{Churned: {50, 1}}},
		"back on trial":                   {life: []history.State{was(active, 50), is(trialing, 50)}, sar: Moves{Churned: {50, 1}}},
		"deleted":                         {life: []history.State{was(active, 50), deleted}, sar: Moves{Churned: {50, 1}}},
		"raised and lowered":              {life: []history.State{was(active, 50), is(active, 60), is(pastDue, 30)}, sar: Moves{Expansion: {10, 1}, Contraction: {30, 1}}, sarMRR: 30},
		"another currency":                {life: []history.State{was(active, 50), dollars}, sar: Moves{Contraction: {50, 1}}, usd: Moves{Expansion: {70, 1}}},
		"another currency after a pause":  {life: []history.State{was(active, 50), is(paused, 50), dollars}, sar: Moves{Paused: {50, 1}}, usd: Moves{Reactivated: {70, 1}}},
	} {
		m, err := measure(t, tc.life)
		assert.NoError(t, err)
		got := map[string]Figures{}
		for _, s := range m.Series {
			got[s.Currency] = s.Months[len(s.Months)-1]
		}
		assert.Equal(t, got["SAR"].Moves, tc.sar, "%s: moves in SAR", name)
		assert.Equal(t, got["USD"].Moves, tc.usd, "%s: moves in USD", name)
		assert.Equal(t, got["SAR"].MRR, tc.sarMRR, "%s: MRR in SAR", name)
	}
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
