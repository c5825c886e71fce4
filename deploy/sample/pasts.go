package sample

import (
	"slices"
	"time"

	"commerce/cart/period"
	"commerce/subscriptions"
	"commerce/subscriptions/history"
)

// Pasts returns the states that the subscriptions of Subscriptions(now) have had, with their present ones.
func Pasts(now time.Time) (pasts []history.Past) {
	now = now.UTC().Truncate(time.Second)
	fanClub := offersOf(Stores()[0], Products()[1])[2:]
	for _, s := range Subscriptions(now) {
		past := history.Past{StoreID: s.StoreID, ID: s.ID}
		for _, was := range append(pastOf(s, now, fanClub[0].variant, fanClub[1].variant), s) {
			past.States = append(past.States, history.StateOf(&was, was.UpdatedAt))
		}
		// The store has imported those that it sold elsewhere before.
		first := &past.States[0]
		first.WasBearing = s.Duration == period.Annually && len(past.States) > 1 && first.At.Before(now.AddDate(-1, 0, 0)) && history.Bears(first.Status)
		pasts = append(pasts, past)
	}
	return pasts
}

// badMonth is how many months ago customers paused, canceled or chose a cheaper plan. Some came back later.
const badMonth = 5

// pastOf returns how a subscription was before s, as it is now, each from its UpdatedAt on. That follows from its
// ID. The cheaper plans are a monthly and a yearly one.
func pastOf(s subscriptions.Subscription, now time.Time, cheapMonth, cheapYear subscriptions.Variant) (states []subscriptions.Subscription) {
	is := s // at the time of the loop
	is.CanceledAt, is.PausedAt, is.NextRetryAt, is.GraceEndsAt, is.PausedRemainingDays = time.Time{}, time.Time{}, time.Time{}, time.Time{}, 0
	become := func(status subscriptions.Status, at time.Time) {
		if at.Before(s.UpdatedAt) {
			is.Status, is.UpdatedAt = status, at
			states = append(states, is)
		}
	}
	begins := append(periodsOf(s), s.PeriodEnd)
	turn, long := s.ID/2, len(begins) > 6
	stays := s.Status == subscriptions.Active || s.Status == subscriptions.PastDue
	for n, begin := range begins[:len(begins)-1] {
		ago := monthsBetween(begin, now)
		away := n > 0 && (is.Status == subscriptions.Paused || is.Status == subscriptions.Expired)
		bad := stays && n > 1 && n < len(begins)-2 &&
			(ago == badMonth || ago < badMonth && ago > int(turn/2+1)%3 && (away || is.Variant == cheapMonth))
		switch {
		case bad && away:
			continue
		case bad && turn%4 == 0:
			become(subscriptions.Paused, begin)
			continue
		case bad && turn%4 == 2:
			is.CancelAtPeriodEnd, is.CancellationReason = true, reasons[turn%int64(len(reasons))]
			become(subscriptions.Canceled, begin.AddDate(0, 0, -6))
			become(subscriptions.Expired, begin)
			continue
		case n > 0 && !away && (int(turn)+ago)%6 == 0:
			become(subscriptions.PastDue, begin)
			begin = begin.AddDate(0, 0, 2) // when the card was charged again
		}
		is.Variant, is.Price, is.Card, is.CancelAtPeriodEnd, is.CancellationReason = s.Variant, s.Price, s.Card, false, ""
		is.PeriodStart, is.PeriodEnd = begins[n], begins[n+1]
		if s.Card != nil && long && n < 4 {
			is.Card = card(s.ID + 7) // an earlier card
		}
		switch {
		case n == 0 && s.Status == subscriptions.PastDue && begin.Before(s.PeriodStart):
			become(subscriptions.Trialing, begin)
			continue
		case n == 0 && s.Duration == period.Annually && turn%2 == 0 && begin.AddDate(0, 0, 45).Before(s.UpdatedAt):
			is.Variant, is.Price = cheapYear, cheapYear.Price
			become(subscriptions.Active, begin)
			is.Variant, is.Price = s.Variant, s.Price
			begin = begin.AddDate(0, 0, 45)
		case bad && turn%2 == 1:
			is.Variant, is.Price = cheapMonth, cheapMonth.Price
		case n < 3 && long && turn%4 == 3:
			is.Price = s.Price / 2 // an introductory price
		}
		become(subscriptions.Active, begin)
	}
	return states
}

// periodsOf returns when the periods of s until the present one began.
func periodsOf(s subscriptions.Subscription) []time.Time {
	begins := []time.Time{s.PeriodStart}
	for n := 1; begins[0].After(s.CreatedAt); n++ {
		begin := s.PeriodStart.AddDate(0, -n*s.Duration.Months(), 0)
		if begin.Before(s.CreatedAt) {
			begin = s.CreatedAt
		}
		begins = slices.Insert(begins, 0, begin)
	}
	return begins
}

func monthsBetween(from, to time.Time) int {
	return 12*(to.Year()-from.Year()) + int(to.Month()) - int(from.Month())
}
