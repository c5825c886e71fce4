package sample_test

import (
	"slices"
	"testing"
	"time"

	"commerce/cart/period"
	"commerce/deploy/assert"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

var events = []sample.Event{
	sample.Renewed, sample.Failed, sample.Activated, sample.Canceled, sample.Paid,
	sample.Paused, sample.Started, sample.Deleted, sample.Resumed, sample.Expired,
}

func apply(all []subscriptions.Subscription, event sample.Event, s subscriptions.Subscription) []subscriptions.Subscription {
	at := slices.IndexFunc(all, func(old subscriptions.Subscription) bool { return old.ID == s.ID })
	switch {
	case event == sample.Deleted:
		return slices.Delete(all, at, at+1)
	case event == sample.Started:
		return append(all, s)
	}
	all[at] = s
	return all
}

func ofStore(id int64, all []subscriptions.Subscription) []subscriptions.Subscription {
	return slices.DeleteFunc(all, func(s subscriptions.Subscription) bool { return s.StoreID != id })
}

func TestBill_GoesOnAndLeavesTheDocumentedCustomerAlone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	for store, kinds := range map[int64]int{1: 6, 2: 1} { // the statuses at first
		all := ofStore(store, sample.Subscriptions(now))
		sara := func() (hers []subscriptions.Subscription) {
			for _, s := range all {
				if s.CustomerID == 1001 {
					hers = append(hers, s)
				}
			}
			return hers
		}
		before, count, seen := sara(), len(all), map[sample.Event]int{}
		var event sample.Event
		for turn := range 1000 {
			var s subscriptions.Subscription
			event, s = sample.Bill(all, event, now)
			exists := slices.ContainsFunc(all, func(old subscriptions.Subscription) bool { return old.ID == s.ID })
			assert.Require(t, exists != (event == sample.Started) && s.StoreID == store, "turn %d: %s %+v", turn, event, s)
			all = apply(all, event, s)
			wantConsistentDates(t, all, now)
			seen[event]++
			now = now.Add(time.Second)
		}
		assert.Equal(t, sara(), before, "customer 1001 (-before +after)")
		for _, event := range events {
			assert.That(t, seen[event] >= 90, "store %d: never %s", store, event)
		}
		statuses, perCustomer := map[subscriptions.Status]int{}, map[int64]int{}
		for _, s := range all {
			statuses[s.Status]++
			perCustomer[s.CustomerID]++
		}
		assert.That(t, len(all) >= count-1 && len(all) <= count+1 && len(statuses) >= kinds,
			"store %d: from %d subscriptions to %d of %v, by %v", store, count, len(all), statuses, seen)
		for customer, n := range perCustomer {
			assert.That(t, n <= 2*count/3, "store %d: customer %d has %d of %d subscriptions", store, customer, n, len(all))
		}
	}
}

func TestBill_ChangesWhatAnEventChangesInReality(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	card := &subscriptions.Card{LastFour: "4242", Scheme: "visa"}
	of := func(status subscriptions.Status) subscriptions.Subscription {
		return subscriptions.Subscription{
			ID: 7, StoreID: 1, CustomerID: 1002, Status: status, Duration: period.Monthly, Price: 2000, Card: card,
			Variant:     subscriptions.Variant{ID: 41, Duration: period.Monthly, Price: 2000},
			PeriodStart: now.AddDate(0, 0, -20), PeriodEnd: now.AddDate(0, 0, 8),
		}
	}
	billed := func(s subscriptions.Subscription, want sample.Event) subscriptions.Subscription {
		t.Helper()
		var last sample.Event
		if before := slices.Index(events, want) - 1; before >= 0 {
			last = events[before]
		}
		event, got := sample.Bill([]subscriptions.Subscription{s}, last, now)
		assert.Require(t, event == want, "%s, want %s", event, want)
		return got
	}

	yearly := subscriptions.Variant{ID: 42, Duration: period.Annually, Price: 20000}
	switching := of(subscriptions.Active)
	switching.Scheduled = &yearly
	got := billed(switching, sample.Renewed)
	if got.Variant != yearly || got.Price != 20000 || got.Scheduled != nil || !got.PeriodStart.Equal(now) || !got.PeriodEnd.Equal(switching.PeriodEnd.AddDate(1, 0, 0)) || !got.EndsAt.Equal(got.PeriodEnd) {
		t.Errorf("renewed with another plan: %+v", got)
	}
	due := of(subscriptions.PastDue)
	due.NextRetryAt, due.GraceEndsAt = now, now
	if got := billed(due, sample.Paid); got.Status != subscriptions.Active || !got.PeriodEnd.Equal(now.AddDate(0, 1, 0)) || !got.NextRetryAt.IsZero() || !got.GraceEndsAt.IsZero() || !got.UpdatedAt.Equal(now) {
		t.Errorf("paid: %+v", got)
	}
	if got := billed(of(subscriptions.Trialing), sample.Activated); got.Status != subscriptions.Active || !got.TrialEndsAt.Equal(now) {
		t.Errorf("activated: %+v", got)
	}
	if got := billed(of(subscriptions.Active), sample.Canceled); !got.CancelAtPeriodEnd || !got.GrantsAccess(now) || !got.PeriodEnd.Equal(now.AddDate(0, 0, 8)) {
		t.Errorf("canceled: %+v", got)
	}
	if got := billed(of(subscriptions.Active), sample.Started); got.ID != 8 || got.CustomerID != 1002 || got.Status != subscriptions.Trialing || !got.PeriodEnd.Equal(got.TrialEndsAt) {
		t.Errorf("started: %+v", got)
	}
	if got := billed(of(subscriptions.Active), sample.Failed); got.Status != subscriptions.PastDue || !got.GrantsAccess(now) || !got.PeriodEnd.Equal(now) || !got.EndsAt.Equal(now) || !got.NextRetryAt.After(now) {
		t.Errorf("failed: %+v", got)
	}
	paused := billed(of(subscriptions.Active), sample.Paused)
	assert.That(t, paused.Status == subscriptions.Paused && paused.PausedRemainingDays == 8 && paused.PausedAt.Equal(now),
		"paused: %+v", paused)
	now = now.AddDate(0, 0, 30)
	if got := billed(paused, sample.Resumed); got.Status != subscriptions.Active || got.DaysRemaining(now) != 8 || !got.PausedAt.IsZero() || got.PausedRemainingDays != 0 {
		t.Errorf("resumed: %+v", got)
	}
	canceled := of(subscriptions.Canceled)
	canceled.PeriodStart, canceled.PeriodEnd = now, now.AddDate(0, 1, 0)
	now = now.AddDate(0, 0, 7)
	if got := billed(canceled, sample.Expired); got.Status != subscriptions.Expired || !got.PeriodEnd.Equal(now) || !got.EndsAt.Equal(now) {
		t.Errorf("expired: %+v", got)
	}
}
