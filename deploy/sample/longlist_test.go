package sample_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/deploy/sample"
	"commerce/subscriptions"
)

func TestLongList_HasConsistentDatesOnAnyDay(t *testing.T) {
	t.Parallel()
	epoch := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		now := epoch.Add(time.Duration(rapid.Int64Range(0, 5*365*24*60).Draw(t, "minutes")) * time.Minute)
		n := rapid.IntRange(1, 500).Draw(t, "n")
		wantConsistentDates(t, slices.Collect(sample.LongList(n, now)), now)
	})
}

func TestLongList_LooksLikeAStore(t *testing.T) {
	t.Parallel()
	const n = 20_000
	all := slices.Collect(sample.LongList(n, time.Now()))
	known := map[int64]int{}
	for _, c := range sample.LongListCustomers(n) {
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
	if len(ids) != n || len(states) != 6 || states[subscriptions.Active] < n/3 {
		t.Errorf("%d ids, in states %v", len(ids), states)
	}
	for id, count := range known {
		if count != 4 {
			t.Errorf("customer %d has %d", id, count)
		}
	}
}
