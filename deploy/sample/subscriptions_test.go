package sample_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/deploy/assert"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

func TestSubscriptions_HaveWhatTheDocumentationPromises(t *testing.T) {
	t.Parallel()
	perCustomer, perStore, states := map[int64]int{}, map[int64]int{}, map[subscriptions.Status]int{}
	ids := map[int64]bool{}
	for _, s := range sample.Subscriptions(time.Now()) {
		ids[s.ID] = true
		perStore[s.StoreID]++
		perCustomer[s.CustomerID]++
		if s.StoreID == 1 {
			states[s.Status]++
		}
		assert.That(t, s.Product.Name.Own != "" && s.Variant.ID != 0 && s.Currency != "",
			"subscription %d is to nothing that the sample stores sell: %+v", s.ID, s)
	}
	if perCustomer[1001] != 3 || perCustomer[1002] == 0 || perStore[1] < 40 || perStore[2] == 0 || len(states) != 6 || len(ids) != perStore[1]+perStore[2] {
		t.Errorf("of customers %v, of stores %v, in states %v, %d ids", perCustomer, perStore, states, len(ids))
	}
	sara, omar := sample.Customers()[0], sample.Customers()[1]
	want := (subscriptions.Customer{StoreID: 1, ID: 1001, Email: "Sara@Example.com", Phone: "501234567", CallingCode: "966"})
	assert.That(t, sara == want, "got %+v, want %+v", sara, want)
	want = (subscriptions.Customer{StoreID: 1, ID: 1002, Email: "omar@example.com", Phone: "509876543", CallingCode: "966"})
	assert.That(t, omar == want, "got %+v, want %+v", omar, want)
}

// The dates are consistent whenever the demo starts, also on January 31 and on a leap day.
func TestSubscriptions_HaveConsistentDatesOnAnyDay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := anyMinute(t)
		wantConsistentDates(t, sample.Subscriptions(now), now)
		n := rapid.IntRange(1, 500).Draw(t, "n")
		_, long := sample.LongList(n, now)
		wantConsistentDates(t, long, now)
	})
}

func anyMinute(t *rapid.T) time.Time {
	epoch := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	return epoch.Add(time.Duration(rapid.Int64Range(0, 5*365*24*60).Draw(t, "minutes")) * time.Minute)
}

func wantConsistentDates(t rapid.TB, all []subscriptions.Subscription, now time.Time) {
	t.Helper()
	for _, s := range all {
		active := s.GrantsAccess(now)
		switch {
		case s.EndsAt.Before(s.StartsAt), !s.PeriodStart.Before(s.PeriodEnd), s.CreatedAt.After(now), s.UpdatedAt.After(now):
			t.Fatalf("at %v: %+v", now, s)
		case (s.Status == subscriptions.Active || s.Status == subscriptions.Trialing) && !now.Before(s.PeriodEnd):
			t.Fatalf("at %v, %s after its period: %+v", now, s.Status, s)
		case s.Status == subscriptions.Expired && (active || s.PeriodEnd.After(now)):
			t.Fatalf("at %v, expired before its end: %+v", now, s)
		}
	}
}

func TestLongList_LooksLikeAStore(t *testing.T) {
	t.Parallel()
	const n = 20_000
	customers, all := sample.LongList(n, time.Now())
	known := map[int64]int{}
	for _, c := range customers {
		known[c.ID] = 0
	}
	ids, states := map[int64]bool{}, map[subscriptions.Status]int{}
	for i, s := range all {
		if _, has := known[s.CustomerID]; !has || s.StoreID != sample.LongListStore().ID || s.Product.Name.Own == "" || s.Variant.ID == 0 || s.Price == 0 {
			t.Fatalf("%+v", s)
		}
		if i > 0 && (s.ID <= all[i-1].ID || s.CreatedAt.Before(all[i-1].CreatedAt) && s.Status != subscriptions.PastDue && all[i-1].Status != subscriptions.PastDue) {
			t.Fatalf("%d was bought before %d: %v, %v", s.ID, all[i-1].ID, s.CreatedAt, all[i-1].CreatedAt)
		}
		ids[s.ID] = true
		known[s.CustomerID]++
		states[s.Status]++
	}
	assert.That(t, len(ids) == n && len(states) == 6 && states[subscriptions.Active] >= n/3,
		"%d ids, in states %v", len(ids), states)
	for id, count := range known {
		assert.Equal(t, count, 4, "customer %d", id)
	}
}
