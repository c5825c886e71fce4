package subscriptions

import "time"

// GrantsAccess reports whether the customer may use the product: on trial or paid, past due
// within the grace period, or canceled in a period that has not ended.
func (s *Subscription) GrantsAccess(now time.Time) bool {
	switch s.Status {
	case Trialing, Active:
		return true
	case PastDue:
		return now.Before(s.GraceEndsAt)
	case Canceled:
		return now.Before(s.PeriodEnd)
	}
	return false
}

// HasExpired reports whether the subscription has ended permanently.
func (s *Subscription) HasExpired(now time.Time) bool {
	return s.Status == Expired || s.Status == Canceled && !now.Before(s.PeriodEnd)
}

// DaysRemaining returns the whole days left in the current period, 0 after it. For a paused
// subscription it returns the days left when it was paused.
func (s *Subscription) DaysRemaining(now time.Time) int {
	if s.Status == Paused {
		return s.PausedRemainingDays
	}
	return max(wholeDays(now, s.PeriodEnd), 0)
}

// wholeDays uses seconds, since the maximum time.Duration is 292 years.
func wholeDays(from, to time.Time) int {
	const day = 24 * 60 * 60
	seconds := to.Unix() - from.Unix()
	if to.Nanosecond() < from.Nanosecond() {
		seconds--
	}
	return int(seconds / day)
}

// RenewsItself reports whether the saved card will be charged for the next period.
func (s *Subscription) RenewsItself() bool {
	switch s.Status {
	case Trialing, Active, PastDue, Paused:
		return s.Card != nil && !s.CancelAtPeriodEnd && s.CanceledAt.IsZero()
	}
	return false
}

// PaymentMethod returns the card that renewals are charged to, nil if there will be no
// renewal.
func (s *Subscription) PaymentMethod() *Card {
	if !s.RenewsItself() {
		return nil
	}
	return s.Card
}
