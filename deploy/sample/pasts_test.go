package sample_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/deploy/assert"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

func TestPasts_LeadToThePresentOnAnyDay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := anyMinute(t)
		was := map[int64]subscriptions.Subscription{}
		for _, s := range append(sample.Pasts(now), sample.Subscriptions(now)...) {
			before, known := was[s.ID]
			switch {
			case !known && !s.UpdatedAt.Equal(s.CreatedAt):
				t.Fatalf("at %v, %d begins at %v: %+v", now, s.ID, s.UpdatedAt, s)
			case known && (!before.UpdatedAt.Before(s.UpdatedAt) || !before.CreatedAt.Equal(s.CreatedAt)):
				t.Fatalf("at %v: %+v\nthen %+v", now, before, s)
			case !s.PeriodStart.Before(s.PeriodEnd), s.UpdatedAt.Before(s.PeriodStart), s.Status == "", s.Price == 0:
				t.Fatalf("at %v: %+v", now, s)
			}
			was[s.ID] = s
		}
	})
}

// The revenue grows over 18 months, except in one, and moves for each reason that there is.
func TestPasts_AreOfAGrowingStoreWithABadMonth(t *testing.T) {
	t.Parallel()
	for day := range 28 {
		now := time.Date(2026, 11, 1+day, 12, 0, 0, 0, time.UTC)
		first := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
		was, bore := map[int64]float64{}, map[int64]bool{}
		changes, reasons := map[int]float64{}, map[string]int{} // by month, -1 for those before the first
		for _, s := range append(sample.Pasts(now), sample.Subscriptions(now)...) {
			if s.StoreID != 1 {
				continue
			}
			before, after := was[s.ID], bearing(s)
			month := max(12*(s.UpdatedAt.Year()-first.Year())+int(s.UpdatedAt.Month()-first.Month()), -1)
			changes[month] += after - before
			was[s.ID] = after
			if month >= 0 && before != after {
				reasons[reasonOf(before, after, bore[s.ID])]++
			}
			bore[s.ID] = bore[s.ID] || after > 0
		}
		revenue, worst := changes[-1], 0
		for month := range 18 {
			revenue += changes[month]
			if changes[month] < changes[worst] {
				worst = month
			}
		}
		assert.That(t, worst == 12 && changes[worst] < -50 && changes[-1] < 100 && revenue > 319 && revenue < 321 && len(reasons) == 5,
			"on %v: from %.2f to %.2f, worst month %d (%.2f), %v", now, changes[-1], revenue, worst, changes[worst], reasons)
	}
}

func bearing(s subscriptions.Subscription) float64 {
	if s.Status != subscriptions.Active && s.Status != subscriptions.PastDue {
		return 0
	}
	return float64(s.Price) / 100 / float64(s.Duration.Months())
}

func reasonOf(before, after float64, bore bool) string {
	switch {
	case after == 0:
		return "churned"
	case before > after:
		return "contraction"
	case before > 0:
		return "expansion"
	case bore:
		return "reactivated"
	}
	return "new"
}
