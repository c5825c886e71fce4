package sample

import (
	"cmp"
	"slices"
	"time"

	"commerce/subscriptions"
)

// Event is what the billing of a store did to one subscription.
type Event string

// All events. They come early, so that a visitor of the demo does not wait for them. A
// customer without a saved card pays as well.
const (
	Started   Event = "started"   // a customer began a trial
	Activated Event = "activated" // the first payment after a trial
	Renewed   Event = "renewed"   // the next period was paid
	Failed    Event = "failed"    // the card could not be charged for the next period
	Paid      Event = "paid"      // the failed payment of a subscription that was past due succeeded
	Paused    Event = "paused"    // the customer paused
	Resumed   Event = "resumed"   // the customer resumed, with the rest of the period
	Canceled  Event = "canceled"  // the customer canceled; access ends with the period
	Expired   Event = "expired"   // the period of a canceled one ended
	Deleted   Event = "deleted"   // an expired one was deleted
)

// rule is what an event does to a subscription. Started and Deleted change none.
type rule struct {
	event  Event
	from   subscriptions.Status // which the event fits
	change change
}

type change func(s *subscriptions.Subscription, now time.Time)

// rules are those of all events, in the order in which they take turns. Each status gains as many
// subscriptions as it loses, so a store keeps some in every status.
var rules = []rule{
	{Renewed, subscriptions.Active, func(s *subscriptions.Subscription, now time.Time) {
		pay(s, now, s.PeriodEnd) // early, so the rest of the period is not lost
	}},
	{Failed, subscriptions.Active, func(s *subscriptions.Subscription, now time.Time) {
		end(s, subscriptions.PastDue, now)
		s.NextRetryAt, s.GraceEndsAt = now.AddDate(0, 0, 1), now.AddDate(0, 0, 3)
	}},
	{Activated, subscriptions.Trialing, func(s *subscriptions.Subscription, now time.Time) {
		s.TrialEndsAt = now
		pay(s, now, now)
	}},
	{Canceled, subscriptions.Active, cancel},
	{Paid, subscriptions.PastDue, func(s *subscriptions.Subscription, now time.Time) { pay(s, now, now) }},
	{Paused, subscriptions.Active, pause},
	{Started, "", nil},
	{Deleted, subscriptions.Expired, nil},
	{Resumed, subscriptions.Paused, func(s *subscriptions.Subscription, now time.Time) {
		s.PeriodEnd = now.AddDate(0, 0, max(s.PausedRemainingDays, 1))
		s.EndsAt = s.PeriodEnd
		s.Status, s.PausedAt, s.PausedRemainingDays, s.UpdatedAt = subscriptions.Active, time.Time{}, 0, now
	}},
	{Expired, subscriptions.Canceled, func(s *subscriptions.Subscription, now time.Time) {
		end(s, subscriptions.Expired, now)
	}},
}

// documentedCustomer has the subscriptions that the documentation shows. They never change.
const documentedCustomer = 1001

// Bill returns what the billing of a store does after its last event, "" for none: the next
// event that fits a subscription, and that subscription as it is afterwards. all are the
// store's subscriptions. Some must be of other customers than 1001.
func Bill(all []subscriptions.Subscription, last Event, now time.Time) (Event, subscriptions.Subscription) {
	now = now.UTC().Truncate(time.Second)
	for next := slices.IndexFunc(rules, func(r rule) bool { return r.event == last }) + 1; ; next++ { // ends at Started, which fits all
		r := rules[next%len(rules)]
		s, found := r.oldest(all)
		switch {
		case !found:
			continue
		case r.event == Started:
			newest := slices.MaxFunc(all, func(a, b subscriptions.Subscription) int { return cmp.Compare(a.ID, b.ID) })
			s = offer{s.StoreID, s.Currency, s.Product, s.Variant}.trialing(newest.ID+1, s.CustomerID, now)
		case r.change != nil:
			r.change(&s, now)
		}
		return r.event, s
	}
}

// oldest returns the subscription that an event fits and that has not changed for the
// longest time. Only a card can fail.
func (r rule) oldest(all []subscriptions.Subscription) (found subscriptions.Subscription, ok bool) {
	for i := range all {
		s := &all[i]
		fits := r.from == "" || s.Status == r.from && (r.event != Failed || s.Card != nil)
		if s.CustomerID != documentedCustomer && fits && (!ok || s.UpdatedAt.Before(found.UpdatedAt)) {
			found, ok = *s, true
		}
	}
	return found, ok
}

// pay begins a period now that ends one duration after from. A scheduled variant takes over.
func pay(s *subscriptions.Subscription, now, from time.Time) {
	if s.Scheduled != nil {
		s.Variant, s.Duration, s.Price = *s.Scheduled, s.Scheduled.Duration, s.Scheduled.Price
		s.Scheduled = nil
	}
	s.Status, s.NextRetryAt, s.GraceEndsAt = subscriptions.Active, time.Time{}, time.Time{}
	s.PeriodStart, s.PeriodEnd = now, from.AddDate(0, s.Duration.Months(), 0)
	s.EndsAt, s.UpdatedAt = s.PeriodEnd, now
}
