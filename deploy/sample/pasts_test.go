package sample_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"commerce/cart/money"
	"commerce/deploy/assert"
	"commerce/deploy/sample"
	"commerce/subscriptions/figures"
	"commerce/subscriptions/history"
)

func TestPasts_LeadToThePresentOnAnyDay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := anyMinute(t)
		pasts, all := sample.Pasts(now), sample.Subscriptions(now)
		if len(pasts) != len(all) {
			t.Fatalf("%d pasts of %d subscriptions", len(pasts), len(all))
		}
		for i, s := range all {
			states := pasts[i].States
			if pasts[i].ID != s.ID || !states[0].At.Equal(s.CreatedAt) || !cmp.Equal(states[len(states)-1], history.StateOf(&all[i], s.UpdatedAt)) {
				t.Fatalf("at %v, the past of %+v: %+v", now, s, states)
			}
			for at, was := range states {
				if at > 0 && !was.At.After(states[at-1].At) || !was.PeriodStart.Before(was.PeriodEnd) || was.At.Before(was.PeriodStart) || was.Status == "" || was.Price == 0 {
					t.Fatalf("at %v, %d was %+v", now, s.ID, was)
				}
			}
		}
	})
}

// The revenue grows over 18 months, except in one, and moves for each reason that there is.
func TestPasts_AreOfAGrowingStoreWithABadMonth(t *testing.T) {
	t.Parallel()
	for day := range 28 {
		now := time.Date(2026, 11, 1+day, 12, 0, 0, 0, time.UTC)
		var states [][]history.State
		for _, past := range sample.Pasts(now) {
			if past.StoreID == 1 {
				states = append(states, past.States)
			}
		}
		m := assert.Must(figures.Measure(assert.Must(figures.Movements(states))(t), now))(t)
		months := m.Series[0].Months[len(m.Series[0].Months)-18:]
		worst, moved := 0, figures.Moves{}
		for at, f := range months {
			if net(f) < net(months[worst]) {
				worst = at
			}
			for kind, move := range f.Moves {
				moved[kind].Amount += move.Amount
			}
		}
		assert.That(t, months[17].MRR == 320_00 && months[0].MRR <= 100_00 && worst == 12 && net(months[worst]) < -50_00,
			"on %v: %+v", now, months)
		for kind, move := range moved {
			assert.That(t, move.Amount > 0, "on %v: nothing was %s", now, figures.Kinds[kind])
		}
	}
}

// net is what the revenue of a month grew.
func net(f figures.Figures) (grew money.Amount) {
	for kind, move := range f.Moves {
		if figures.Kind(kind) >= figures.Contraction {
			move.Amount = -move.Amount
		}
		grew += move.Amount
	}
	return grew
}
