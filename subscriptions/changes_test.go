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
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
)

// follow reads all changes of a store after a cursor, limit at a time.
func follow(t *testing.T, s subscriptions.Source, store int64, after subscriptions.Cursor, limit int) (changed, deleted []int64, next subscriptions.Cursor) {
	t.Helper()
	for {
		c := must(s.Changes(t.Context(), store, subscriptions.ChangesQuery{After: after, Limit: limit, Language: locale.En}))(t)
		if n := len(c.Changed) + len(c.Deleted); n > limit || c.More && n < limit {
			t.Fatalf("%d changes, more: %v, with limit %d", n, c.More, limit)
		}
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
		if err != nil || len(c.Changed) == 0 {
			t.Fatal(len(c.Changed), err)
		}
		for _, changed := range c.Changed {
			got := must(b.source.Get(t.Context(), 1, changed.ID, locale.En))(t)
			if diff := cmp.Diff(*got, changed); diff != "" {
				t.Fatalf("subscription %d (-get +changes):\n%s", changed.ID, diff)
			}
		}
	})
}

func TestChanges_OfAnotherSourceExpireTheCursor(t *testing.T) {
	t.Parallel()
	onEach(t, sampleData(), func(t *testing.T, b bundle) {
		_, _, next := follow(t, subscriptions.NewMemory(nil, sampleData().all), 1, subscriptions.Cursor{}, 10)
		_, err := b.source.Changes(t.Context(), 1, subscriptions.ChangesQuery{After: next, Limit: 10})
		if !errors.Is(err, subscriptions.ErrCursorExpired) {
			t.Error(err)
		}
	})
}

func TestSource_NeedsOnlyTheRightsOfTheServicesRole(t *testing.T) {
	t.Parallel()
	owner := ephemeral.StartPostgres(t).URL // roles belong to a whole server
	noError(t, ephemeral.Migrate(t.Context(), owner))
	pool := ephemeral.OpenPool(t, owner, connect.PostgresConfig{Writable: true})
	fill(t, pool, sampleData())
	script := must(os.ReadFile("../deploy/postgres/roles.sql"))(t)
	exec(t, pool, string(script))
	noError(t, ephemeral.Grant(t.Context(), owner, "commerce_service"))
	service := must(url.Parse(owner))(t)
	service.User = url.User("commerce_service")
	b := newBundle(postgres.New(postgres.Config{
		Pool: ephemeral.OpenPool(t, service.String(), connect.PostgresConfig{}), Budget: 10 * time.Second,
	}), stores()...)
	for _, path := range []string{"/subscriptions", "/subscriptions/5001", "/subscriptions/changes", "/subscriptions/summary"} {
		if w := b.do(path, 1, "en"); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
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
	if got := b.refused(t, "/subscriptions", 1); got.Code != "unavailable" || got.Text != "read the keys of page links: connection refused" {
		t.Errorf("got %+v", got)
	}
}
