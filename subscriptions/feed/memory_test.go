package feed_test

import (
	"slices"
	"sync"
	"testing"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/subscriptions"
	"commerce/subscriptions/feed"
	"commerce/subscriptions/figures"
	"commerce/subscriptions/recorded"
	"commerce/subscriptions/suite"
)

func TestMemory_ShowsAChangedSubscriptionEverywhere(t *testing.T) {
	t.Parallel()
	m := suite.NewMemory(nil, suite.SampleData().All)
	b, before := suite.NewBundle(m), counts(t, m)
	_, _, read := follow(t, m, 1, recorded.Cursor{}, 10)
	m.Delete(1, 404, suite.Now) // does nothing
	s := assert.Must(m.Get(t.Context(), 1, 5020, locale.En))(t)
	old := s.Status
	s.Status = subscriptions.Expired
	m.Put(*s)

	changed, deleted, _ := follow(t, m, 1, read, 10)
	assert.That(t, slices.Equal(changed, []int64{5020}) && deleted == nil, "changed %v, deleted %v", changed, deleted)
	other, _, _ := follow(t, m, 2, recorded.Cursor{}, 100)
	assert.That(t, !slices.Contains(other, 5020), "another store has %v", other)
	got, err := m.Get(t.Context(), 1, 5020, locale.En)
	assert.That(t, err == nil && got.Status == subscriptions.Expired, "%+v, %v", got, err)
	ids := b.List(t, "http://shop.test/subscriptions?status=expired&per_page=100", 1).IDs()
	assert.That(t, slices.Contains(ids, 5020), "the expired ones are %v", ids)
	before[subscriptions.Expired]++
	before[old]--
	assert.Equal(t, counts(t, m), before, "subscriptions by status")
}

// counts returns how many subscriptions store 1 has, by status.
func counts(t *testing.T, of figures.Source) map[subscriptions.Status]int64 {
	t.Helper()
	n := map[subscriptions.Status]int64{}
	for _, total := range assert.Must(of.Totals(t.Context(), 1))(t) {
		n[total.Status] += total.Count
	}
	return n
}

func TestMemory_MayChangeWhileItIsRead(t *testing.T) {
	t.Parallel()
	m := suite.NewMemory(nil, suite.Many(50))
	var running sync.WaitGroup
	for writer := range int64(4) {
		running.Go(func() {
			for i := range int64(50) {
				m.Put(subscriptions.Subscription{ID: 100 + 50*writer + i, StoreID: 1})
				m.Delete(1, 1+i, suite.Now)
			}
		})
		running.Go(func() {
			for range 50 {
				_, _ = m.List(t.Context(), 1, subscriptions.Query{Limit: 10, Skip: 20})
				_, _ = m.Totals(t.Context(), 1)
				_, _ = m.Changes(t.Context(), 1, feed.Query{Limit: 100})
			}
		})
	}
	running.Wait()
	rows, _ := m.List(t.Context(), 1, subscriptions.Query{Limit: 1000})
	assert.That(t, len(rows) == 200, "%d subscriptions, want those that were put", len(rows))
}
