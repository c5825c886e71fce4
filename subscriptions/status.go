package subscriptions

import (
	"slices"
	"strings"
	"time"
)

type Status string

const (
	Trialing Status = "trialing"
	Active   Status = "active"
	PastDue  Status = "past_due"
	Paused   Status = "paused"
	Canceled Status = "canceled"
	Expired  Status = "expired"
)

// Statuses has every state once.
var Statuses = [...]Status{Trialing, Active, PastDue, Paused, Canceled, Expired}

// StatusSet is a set of states: one bit for each, in the order of Statuses.
type StatusSet uint8

const EveryStatus = StatusSet(1<<len(Statuses) - 1)

// ParseStatuses reads distinct states between commas, in any order.
func ParseStatuses(s string) (set StatusSet, ok bool) {
	for name := range strings.SplitSeq(s, ",") {
		one := SetOf(Status(name))
		if one == 0 || set&one != 0 {
			return 0, false
		}
		set |= one
	}
	return set, true
}

func SetOf(statuses ...Status) (set StatusSet) {
	for at, status := range Statuses {
		if slices.Contains(statuses, status) {
			set |= 1 << at
		}
	}
	return set
}

func (s StatusSet) Has(status Status) bool { return s&SetOf(status) != 0 }

// Names returns the states in the order of Statuses.
func (s StatusSet) Names() []string {
	var names []string
	for _, status := range Statuses {
		if s.Has(status) {
			names = append(names, string(status))
		}
	}
	return names
}

// String is the text that ParseStatuses reads, in the order of Statuses.
func (s StatusSet) String() string { return strings.Join(s.Names(), ",") }

// GrantsAccess reports whether the customer may use the product: on trial or paid, past due
// within the grace period, or canceled in a period that has not ended.
func (s *Subscription) GrantsAccess(now time.Time) bool {
	switch s.Status {
	case Trialing, Active:
		return true
	case PastDue:
		return now.Before(s.GraceEnd())
	case Canceled:
		return now.Before(s.PeriodEnd)
	}
	return false
}

// GraceEnd returns when a past-due subscription stops granting access. It is the zero time for one
// that has no grace period, and in every other state.
func (s *Subscription) GraceEnd() time.Time {
	if s.Status != PastDue {
		return time.Time{}
	}
	return s.GraceEndsAt
}

// HasExpired reports whether the subscription has ended permanently.
func (s *Subscription) HasExpired(now time.Time) bool {
	return s.Status == Expired || s.Status == Canceled && !now.Before(s.PeriodEnd)
}

// DaysRemaining returns the whole days left in the current period, as it is shown, 0 after it. For a paused
// subscription it returns the days left when it was paused.
func (s *Subscription) DaysRemaining(now time.Time) int {
	if s.Status == Paused {
		return s.PausedRemainingDays
	}
	const day = 24 * 60 * 60 // seconds, since the maximum time.Duration is 292 years
	end := Shown(s.PeriodEnd)
	seconds := end.Unix() - now.Unix()
	if end.Nanosecond() < now.Nanosecond() {
		seconds--
	}
	return max(int(seconds/day), 0)
}

// PaymentMethod returns the card that will be charged for the next period, nil if the subscription
// will not renew itself.
func (s *Subscription) PaymentMethod() *Card {
	switch s.Status {
	case Trialing, Active, PastDue, Paused:
		if !s.CancelAtPeriodEnd && s.CanceledAt.IsZero() {
			return s.Card
		}
	}
	return nil
}
