package subscriptions

import (
	"testing"
	"time"

	"commerce/deploy/assert"
)

var noon = time.Date(2025, 11, 20, 12, 0, 0, 0, time.UTC)

func TestStatus_AccessAndExpiry(t *testing.T) {
	t.Parallel()
	before, after := noon.Add(-time.Microsecond), noon.Add(time.Microsecond)
	for _, tt := range []struct {
		name            string
		s               Subscription
		active, expired bool
	}{
		{"trialing", Subscription{Status: Trialing, PeriodEnd: after}, true, false},
		{"trialing, period over", Subscription{Status: Trialing, PeriodEnd: before}, true, false},
		{"active", Subscription{Status: Active, PeriodEnd: after}, true, false},
		{"active, period over", Subscription{Status: Active, PeriodEnd: before}, true, false},
		{"past due, no grace", Subscription{Status: PastDue, PeriodEnd: after}, false, false},
		{"past due, in grace", Subscription{Status: PastDue, PeriodEnd: before, GraceEndsAt: after}, true, false},
		{"past due, grace ends now", Subscription{Status: PastDue, GraceEndsAt: noon}, false, false},
		{"past due, grace over", Subscription{Status: PastDue, GraceEndsAt: before}, false, false},
		{"paused", Subscription{Status: Paused, PeriodEnd: after}, false, false},
		{"canceled", Subscription{Status: Canceled, PeriodEnd: after}, true, false},
		{"canceled, period ends now", Subscription{Status: Canceled, PeriodEnd: noon}, false, true},
		{"canceled, period over", Subscription{Status: Canceled, PeriodEnd: before}, false, true},
		{"expired", Subscription{Status: Expired, PeriodEnd: after}, false, true},
		{"expired, period over", Subscription{Status: Expired, PeriodEnd: before}, false, true},
		{"none of the six", Subscription{Status: "unpaid", PeriodEnd: after}, false, false},
	} {
		assert.Equal(t, tt.s.GrantsAccess(noon), tt.active, "%s: active", tt.name)
		assert.Equal(t, tt.s.HasExpired(noon), tt.expired, "%s: expired", tt.name)
	}
	for _, status := range Statuses {
		s, want := Subscription{Status: status, GraceEndsAt: after}, time.Time{}
		if status == PastDue {
			want = after
		}
		assert.Equal(t, s.GraceEnd(), want, "%s: end of the grace period", status)
	}
}

func TestStatus_DaysRemaining(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		s    Subscription
		want int
	}{
		{"ten days", Subscription{Status: Active, PeriodEnd: noon.AddDate(0, 0, 10)}, 10},
		{"nearly ten days", Subscription{Status: Active, PeriodEnd: noon.AddDate(0, 0, 10).Add(-time.Microsecond)}, 9},
		{"a day", Subscription{Status: Trialing, PeriodEnd: noon.Add(24 * time.Hour)}, 1},
		{"nearly a day", Subscription{Status: Trialing, PeriodEnd: noon.Add(24*time.Hour - 1)}, 0},
		{"none", Subscription{Status: Active, PeriodEnd: noon}, 0},
		{"long over", Subscription{Status: Expired, PeriodEnd: noon.AddDate(-1, 0, 0)}, 0},
		{"thousands of years", Subscription{Status: Active, PeriodEnd: time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)}, 2_912_484},
		{"ten years", Subscription{Status: Active, PeriodEnd: noon.AddDate(10, 0, 0)}, 3652},
		{"paused", Subscription{Status: Paused, PeriodEnd: noon.AddDate(0, 0, 10), PausedRemainingDays: 3}, 3},
		{"paused, period over", Subscription{Status: Paused, PeriodEnd: noon.AddDate(0, 0, -10), PausedRemainingDays: 3}, 3},
		{"days of a pause that is over", Subscription{Status: Active, PeriodEnd: noon.AddDate(0, 0, 10), PausedRemainingDays: 3}, 10},
	} {
		assert.Equal(t, tt.s.DaysRemaining(noon), tt.want, "%s", tt.name)
	}
}

func TestStatus_ShowsTheCardOnlyIfItRenewsAutomatically(t *testing.T) {
	t.Parallel()
	card := &Card{LastFour: "4242", Scheme: "visa"}
	renewing := map[Status]bool{Trialing: true, Active: true, PastDue: true, Paused: true, Canceled: false, Expired: false}
	for status, renews := range renewing {
		for _, tt := range []struct {
			name string
			s    Subscription
			want bool
		}{
			{"with a card", Subscription{Status: status, Card: card}, renews},
			{"without", Subscription{Status: status}, false},
			{"to be canceled", Subscription{Status: status, Card: card, CancelAtPeriodEnd: true}, false},
			{"canceled", Subscription{Status: status, Card: card, CanceledAt: noon}, false},
		} {
			assert.Equal(t, tt.s.PaymentMethod() != nil, tt.want, "%s, %s: card shown", status, tt.name)
		}
	}
}
