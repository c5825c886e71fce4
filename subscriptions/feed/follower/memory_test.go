package follower_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/subscriptions"
	"commerce/subscriptions/suite"
)

// Whatever changes, and however slowly a reader follows, its copy becomes the store.
func TestMemory_ChangesKeepACopyComplete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m, f := suite.NewMemory(nil, suite.Many(5)), newFollower(1, rapid.Uint64().Draw(rt, "seed"))
		for step := range rapid.IntRange(0, 30).Draw(rt, "steps") {
			id := rapid.Int64Range(1, 8).Draw(rt, "id")
			switch rapid.IntRange(0, 2).Draw(rt, "step") {
			case 0:
				m.Put(subscriptions.Subscription{ID: id, StoreID: 1, ExternalCustomerID: fmt.Sprint(step)})
			case 1:
				m.Delete(1, id, suite.Now)
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
