package subscriptions_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
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
			if diff := cmp.Diff(want, changed); diff != "" || len(deleted) != 0 {
				t.Errorf("limit %d: deleted %v, changed (-want +got):\n%s", limit, deleted, diff)
			}
			if again, _, at := follow(t, b.source, 1, next, limit); len(again) != 0 || at != next {
				t.Errorf("limit %d: after the end: %v, cursor %v, want %v", limit, again, at, next)
			}
		}
	})
}

func TestChanges_AreCompleteSubscriptions(t *testing.T) {
	t.Parallel()
	onEach(t, sampleData(), func(t *testing.T, b bundle) {
		c, err := b.source.Changes(t.Context(), 1, subscriptions.ChangesQuery{Limit: 1000, Language: locale.En})
		assert.Require(t, err == nil && len(c.Changed) != 0, "%v %v", len(c.Changed), err)
		for _, changed := range c.Changed {
			diff := cmp.Diff(*assert.Must(b.source.Get(t.Context(), 1, changed.ID, locale.En))(t), changed)
			assert.Require(t, diff == "", "subscription %d (-get +changes):\n%s", changed.ID, diff)
		}
	})
}

func TestChanges_OfAnotherSourceExpireTheCursor(t *testing.T) {
	t.Parallel()
	onEach(t, sampleData(), func(t *testing.T, b bundle) {
		_, _, next := follow(t, subscriptions.NewMemory(nil, sampleData().all), 1, subscriptions.Cursor{}, 10)
		_, err := b.source.Changes(t.Context(), 1, subscriptions.ChangesQuery{After: next, Limit: 10})
		assert.That(t, errors.Is(err, subscriptions.ErrCursorExpired), "%v", err)
	})
}

func TestSource_NeedsOnlyTheRightsOfTheServicesRole(t *testing.T) {
	t.Parallel()
	owner := ephemeral.StartPostgres(t).URL // roles belong to a whole server
	assert.NoError(t, ephemeral.Migrate(t.Context(), owner))
	pool := ephemeral.OpenPool(t, owner, connect.PostgresConfig{Writable: true})
	fill(t, pool, sampleData())
	exec(t, pool, string(assert.Must(os.ReadFile("../deploy/postgres/roles.sql"))(t)))
	assert.NoError(t, ephemeral.Grant(t.Context(), owner, "commerce_service"))
	service := assert.Must(url.Parse(owner))(t)
	service.User = url.User("commerce_service")
	b := newBundle(postgres.New(postgres.Config{
		Pool: ephemeral.OpenPool(t, service.String(), connect.PostgresConfig{}), Budget: 10 * time.Second,
	}), stores()...)
	for _, path := range []string{"/subscriptions", "/subscriptions/5001", "/subscriptions/changes", "/subscriptions/summary"} {
		w := b.do(path, 1, "en")
		assert.That(t, w.Code == http.StatusOK, "%s: %d %s", path, w.Code, w.Body)
	}
}

// downSource is a source that fails.
type downSource struct {
	subscriptions.Source
	err error
}

func (d downSource) LinkKeys(context.Context, bool) ([][]byte, error) { return nil, d.err }

func TestError_LogsTheFailedCall(t *testing.T) {
	t.Parallel()
	b := newBundle(downSource{err: subscriptions.Unavailable(errors.New("connection refused"))}, stores()...)
	got := b.refused(t, "/subscriptions", 1)
	assert.That(t, got.Code == "unavailable" && got.Text == "read the keys of page links: connection refused", "got %+v", got)
}
