package subscriptions_test

import (
	"slices"
	"testing"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/subscriptions"
)

// follow reads all changes of a store after a cursor, limit at a time.
func follow(t *testing.T, s subscriptions.Source, store int64, after subscriptions.Cursor, limit int) (changed, deleted []int64, next subscriptions.Cursor) {
	t.Helper()
	for {
		c := assert.Must(s.Changes(t.Context(), store, subscriptions.ChangesQuery{After: after, Limit: limit, Language: locale.En}))(t)
		n := len(c.Changed) + len(c.Deleted)
		assert.Require(t, n <= limit && (!c.More || n >= limit), "%d changes, more: %v, with limit %d", n, c.More, limit)
		for _, s := range c.Changed {
			changed = append(changed, s.ID)
		}
		for _, d := range c.Deleted {
			deleted = append(deleted, d.ID)
		}
		if after = c.Next; !c.More {
			return changed, deleted, after
		}
	}
}

func TestChanges_FromTheBeginningAreAllSubscriptions(t *testing.T) {
	t.Parallel()
	d := sampleData()
	onEach(t, d, func(t *testing.T, b bundle) {
		for _, limit := range []int{1, 2, 100, 1000} {
			changed, deleted, next := follow(t, b.source, 1, subscriptions.Cursor{}, limit)
			slices.Sort(changed)
			want := idsOf(d.all, 1, nil)
			slices.Reverse(want)
			assert.Equal(t, changed, want, "limit %d: changed", limit)
			again, _, at := follow(t, b.source, 1, next, limit)
			assert.That(t, len(deleted)+len(again) == 0 && at == next, "limit %d: %v, then %v", limit, deleted, again)
		}
	})
}
