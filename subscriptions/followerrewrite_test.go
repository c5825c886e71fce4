package subscriptions_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/auth/locale"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
)

// A rewrite of a table gives its rows to no snapshot that is older. A reader that waits for it must
// take its snapshot afterwards.
func TestFollower_MissesNothingWhileATableIsRewritten(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	for _, table := range []string{"products", "plans", "subscriptions", "saved_cards", "deleted_subscriptions", "subscription_timelines"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			h, f := newSetting(t), newFollower(1, 1)
			readAll(t, f, h.source)
			if _, err := h.writes.Exec(t.Context(), insertOne, 900, 7); err != nil {
				t.Fatal(err)
			}
			rewrite := begin(t, h, pgx.ReadCommitted)
			do(t, rewrite, "ALTER TABLE "+table+" ADD COLUMN rewritten_at timestamptz DEFAULT clock_timestamp()")
			read := make(chan error, 1)
			go func() { read <- f.finish(t.Context(), h.source) }()
			waitForLock(t, h)
			commit(t, rewrite)
			if err := <-read; err != nil {
				t.Error(err)
			}
			wantComplete(t, h, f)
		})
	}
}

func TestFollower_MissesNothingWhileTablesAreCompacted(t *testing.T) {
	t.Parallel()
	h, f := newSetting(t), newFollower(1, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 10 {
			for _, statement := range []string{"VACUUM FULL subscriptions", "CLUSTER subscriptions USING subscriptions_by_change", "VACUUM FULL products, plans"} {
				_, _ = h.writes.Exec(t.Context(), statement) // fails if a reader holds a lock for long
			}
			_, _ = h.writes.Exec(t.Context(), insertOne, 900+i, i)
		}
	}()
	for running := true; running; {
		if _, err := f.read(t.Context(), h.source); err != nil && !isUnavailable(err) {
			t.Error(err)
		}
		select {
		case <-done:
			running = false
		default:
		}
	}
	wantComplete(t, h, f)
}

// With logical replication, a subscription may arrive before its product. Its change must not be
// lost behind the cursor.
func TestFollower_WaitsForAProductThatIsLate(t *testing.T) {
	t.Parallel()
	h, f := newSetting(t), newFollower(1, 1)
	readAll(t, f, h.source)
	subscriber := begin(t, h, pgx.ReadCommitted)
	do(t, subscriber, "SET LOCAL session_replication_role = replica")
	do(t, subscriber, "UPDATE subscriptions SET product_id = 999 WHERE store_id = 1 AND id = (SELECT min(id) FROM subscriptions WHERE store_id = 1)")
	commit(t, subscriber)
	before := f.cursor
	q := subscriptions.ChangesQuery{After: before, Limit: 10, Language: locale.En}
	if page, err := h.source.Changes(t.Context(), 1, q); !isUnavailable(err) {
		t.Errorf("without the product: %+v, %v", page, err)
	}
	product := begin(t, h, pgx.ReadCommitted)
	do(t, product, "INSERT INTO products SELECT (jsonb_populate_record(p, '{\"id\": 999, \"slug\": \"late\"}')).* FROM products p WHERE store_id = 1 AND id = 4")
	commit(t, product)
	wantComplete(t, h, f)
	if f.expired > 0 {
		t.Error("the cursor expired")
	}
}

// A table that stays locked makes a request fail before its time is over, and keeps the connection.
func TestChanges_FailWhileATableIsLocked(t *testing.T) {
	t.Parallel()
	h := newSetting(t)
	brief := postgres.New(postgres.Config{Pool: h.writes, Budget: 400 * time.Millisecond})
	lock := begin(t, h, pgx.ReadCommitted)
	do(t, lock, "LOCK TABLE products IN ACCESS EXCLUSIVE MODE")
	if page, err := brief.Changes(t.Context(), 1, subscriptions.ChangesQuery{Limit: 10, Language: locale.En}); !isUnavailable(err) {
		t.Errorf("locked: %+v, %v", page, err)
	}
	opened := h.writes.Stat().NewConnsCount()
	commit(t, lock)
	if page, err := brief.Changes(t.Context(), 1, subscriptions.ChangesQuery{Limit: 10, Language: locale.En}); err != nil || len(page.Changed) == 0 {
		t.Errorf("afterwards: %+v, %v", page, err)
	}
	if n := h.writes.Stat().NewConnsCount(); n != opened {
		t.Errorf("%d connections were opened again", n-opened)
	}
}
