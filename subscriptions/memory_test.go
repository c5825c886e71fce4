package subscriptions_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/subscriptions"
)

func TestMemory_ShowsAChangedSubscriptionEverywhere(t *testing.T) {
	t.Parallel()
	m := subscriptions.NewMemory(nil, sampleData().all)
	b := newBundle(m, stores()...)
	before := b.summary(t, 1)
	_, _, read := follow(t, m, 1, subscriptions.Cursor{}, 10)
	m.Delete(1, 404, now) // does nothing
	s := assert.Must(m.Get(t.Context(), 1, 5020, locale.En))(t)
	old := s.Status
	s.Status = subscriptions.Expired
	m.Put(*s)

	changed, deleted, _ := follow(t, m, 1, read, 10)
	assert.That(t, slices.Equal(changed, []int64{5020}) && deleted == nil, "changed %v, deleted %v", changed, deleted)
	other, _, _ := follow(t, m, 2, subscriptions.Cursor{}, 100)
	assert.That(t, !slices.Contains(other, 5020), "another store has %v", other)
	got, err := m.Get(t.Context(), 1, 5020, locale.En)
	assert.That(t, err == nil && got.Status == subscriptions.Expired, "%+v, %v", got, err)
	ids := b.list(t, "http://shop.test/subscriptions?status=expired&per_page=100", 1).ids()
	assert.That(t, slices.Contains(ids, 5020), "the expired ones are %v", ids)
	after := newBundle(m, stores()...).summary(t, 1) // a new API has cached none
	before.ByStatus["expired"]++
	before.ByStatus[string(old)]--
	assert.Equal(t, after.ByStatus, before.ByStatus, "after.ByStatus")
}

// Whatever changes, and however slowly a reader follows, its copy becomes the store.
func TestMemory_ChangesKeepACopyComplete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m, f := subscriptions.NewMemory(nil, many(5)), newFollower(1, rapid.Uint64().Draw(rt, "seed"))
		for step := range rapid.IntRange(0, 30).Draw(rt, "steps") {
			id := rapid.Int64Range(1, 8).Draw(rt, "id")
			switch rapid.IntRange(0, 2).Draw(rt, "step") {
			case 0:
				m.Put(subscriptions.Subscription{ID: id, StoreID: 1, ExternalCustomerID: fmt.Sprint(step)})
			case 1:
				m.Delete(1, id, now)
			case 2:
				_, err := f.read(t.Context(), m)
				assert.NoError(t, err)
			}
		}
		readAll(t, f, m)
		want := map[int64]subscriptions.Subscription{}
		for _, s := range assert.Must(m.List(t.Context(), 1, subscriptions.Query{Limit: 100}))(t) {
			want[s.ID] = *assert.Must(m.Get(t.Context(), 1, s.ID, locale.En))(t)
		}
		if diff := cmp.Diff(want, f.rows); diff != "" || f.expired > 0 {
			rt.Fatalf("%d cursors expired; the copy (-store +copy):\n%s", f.expired, diff)
		}
	})
}

func TestMemory_MayChangeWhileItIsRead(t *testing.T) {
	t.Parallel()
	m := subscriptions.NewMemory(nil, many(50))
	var running sync.WaitGroup
	for writer := range int64(4) {
		running.Go(func() {
			for i := range int64(50) {
				m.Put(subscriptions.Subscription{ID: 100 + 50*writer + i, StoreID: 1})
				m.Delete(1, 1+i, now)
			}
		})
		running.Go(func() {
			for range 50 {
				_, _ = m.List(t.Context(), 1, subscriptions.Query{Limit: 10, Skip: 20})
				_, _ = m.Totals(t.Context(), 1)
				_, _ = m.Changes(t.Context(), 1, subscriptions.ChangesQuery{Limit: 100})
			}
		})
	}
	running.Wait()
	rows, _ := m.List(t.Context(), 1, subscriptions.Query{Limit: 1000})
	assert.That(t, len(rows) == 200, "%d subscriptions, want those that were put", len(rows))
}
