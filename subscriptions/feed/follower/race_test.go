package follower_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions/feed"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/suite"
)

// A subscription gets a card while another transaction changes the card's digits.
func TestFollower_SeesACardThatChangesWhileItIsAssigned(t *testing.T) {
	t.Parallel()
	h, f := suite.NewSetting(t), newFollower(1, 1)
	assigns, changes := begin(t, h, pgx.ReadCommitted), begin(t, h, pgx.ReadCommitted)
	suite.Exec(t, assigns, "UPDATE subscriptions SET saved_card_id = 2 WHERE store_id = 1 AND id = 6")
	changed := make(chan error, 1)
	go func() {
		_, err := changes.Exec(context.Background(), "UPDATE saved_cards SET last_four = '7777' WHERE store_id = 1 AND id = 2")
		changed <- err
	}()
	waitForLock(t, h)
	commit(t, assigns)
	readAll(t, f, h.Source)
	assert.NoError(t, <-changed)
	commit(t, changes)
	wantComplete(t, h, f)
}

// A follower that waits hears of a change as soon as it can be read, on the primary and on a standby.
func TestFollower_HearsOfEachKindOfChange(t *testing.T) {
	t.Parallel()
	h := suite.NewSetting(t, "max_prepared_transactions=1")
	standby := h.AddStandby("max_prepared_transactions=1")
	change := func(id int) string {
		return fmt.Sprintf("UPDATE subscriptions SET order_id = 777 WHERE store_id = 1 AND id = %d", id)
	}
	runs := func(sql string) func() { return func() { suite.Exec(t, h.Writes, sql) } }
	prepare := func(id int) {
		tx := begin(t, h, pgx.ReadCommitted)
		suite.Exec(t, tx, change(id))
		suite.Exec(t, tx, "PREPARE TRANSACTION 'open'")
	}
	for _, tc := range []struct {
		name string
		open func() (end func()) // end makes something readable
	}{
		{"an update", func() func() { return runs(change(1)) }},
		{"a deletion", func() func() { return runs("DELETE FROM subscriptions WHERE store_id = 1 AND id = 2") }},
		{"a prepared transaction", func() func() { prepare(3); return runs("COMMIT PREPARED 'open'") }},
		{"what a prepared transaction held back", func() func() {
			prepare(4)
			suite.Exec(t, h.Writes, change(5))
			return runs("ROLLBACK PREPARED 'open'")
		}},
		{"what another transaction held back", func() func() {
			tx := begin(t, h, pgx.ReadCommitted)
			suite.Exec(t, h.Writes, change(6))
			return func() { commit(t, tx) }
		}},
	} {
		assert.NoError(t, h.Settle(t.Context()))
		followers := map[suite.Source]*follower{h.Source: newFollower(1, 1), standby: newFollower(1, 2)}
		for source, f := range followers {
			readAll(t, f, source)
		}
		end := tc.open()
		heard := make(chan time.Time, len(followers))
		for source, f := range followers {
			go func() {
				assert.That(t, f.wait(t.Context(), source, suite.SettleLimit), "%s: no news", tc.name)
				heard <- time.Now()
			}()
		}
		time.Sleep(newsLimit / 2)
		ended := time.Now()
		end()
		for _, f := range followers {
			took := (<-heard).Sub(ended)
			assert.That(t, 0 < took && took < newsLimit, "%s: heard after %v", tc.name, took)
			before := f.cursor
			wantComplete(t, h, f)
			assert.That(t, f.cursor != before, "%s: nothing followed", tc.name)
		}
	}
}

// A transaction with an old snapshot does not see the subscriptions that its statement
// concerns, so it must not run it.
func TestFollower_MissesNothingOfATransactionWithAnOldSnapshot(t *testing.T) {
	t.Parallel()
	for statement, code := range map[string]string{
		"TRUNCATE subscriptions": notSupported,
		"UPDATE saved_cards SET last_four = '7777' WHERE store_id = 1 AND id = 1": "40001", // it can be repeated
		"UPDATE saved_cards SET last_four = '7777' WHERE store_id = 1 AND id = 2": "",
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			h, f := suite.NewSetting(t), newFollower(1, 1)
			suite.Exec(t, h.Writes, "UPDATE subscriptions SET saved_card_id = 2 WHERE store_id = 1 AND id = 6")
			readAll(t, f, h.Source)
			old := begin(t, h, pgx.RepeatableRead)
			suite.Exec(t, h.Writes, suite.InsertOne, 20, 2) // with card 1
			_, err := old.Exec(t.Context(), statement)
			refused, _ := errors.AsType[*pgconn.PgError](err)
			assert.That(t, refused == nil && code == "" || refused != nil && refused.Code == code, "error %v, want %q", err, code)
			_ = old.Commit(t.Context())
			wantComplete(t, h, f)
		})
	}
}

// begin begins a transaction that is rolled back when the test ends, and gives it a number
// and a snapshot.
func begin(t *testing.T, h *suite.Setting, level pgx.TxIsoLevel) pgx.Tx {
	t.Helper()
	tx := assert.Must(h.Writes.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level}))(t)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	suite.Exec(t, tx, "SELECT pg_current_xact_id()")
	suite.Exec(t, tx, "SET LOCAL lock_timeout = 0")
	return tx
}

func commit(t *testing.T, tx pgx.Tx) { t.Helper(); assert.NoError(t, tx.Commit(t.Context())) }

// waitForLock waits until a transaction waits for another one.
func waitForLock(t *testing.T, h *suite.Setting) {
	t.Helper()
	ephemeral.Eventually(t, "a transaction waits", func() (waits bool) {
		assert.NoError(t, h.Writes.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)").Scan(&waits))
		return waits
	})
}

// readAll lets the follower read what can be read now.
func readAll(t *testing.T, f *follower, source suite.Source) {
	t.Helper()
	assert.NoError(t, f.finish(t.Context(), source))
}

// wantComplete lets the follower read what has been committed, and compares its copy.
func wantComplete(t *testing.T, h *suite.Setting, f *follower) {
	t.Helper()
	assert.NoError(t, h.Settle(t.Context()))
	assert.Succeeds(t, check(h, t.Context(), f, h.Source), "copy")
}

// A transaction deletes a subscription and inserts it again, so both changes have the same
// place. A page may end between them.
func TestFollower_SeesASubscriptionThatWasReplaced(t *testing.T) {
	t.Parallel()
	h, f := suite.NewSetting(t), newFollower(1, 1)
	readAll(t, f, h.Source)
	replaces := begin(t, h, pgx.ReadCommitted)
	suite.Exec(t, replaces, "CREATE TEMPORARY TABLE before ON COMMIT DROP AS SELECT * FROM subscriptions WHERE store_id = 1")
	suite.Exec(t, replaces, "DELETE FROM subscriptions WHERE store_id = 1")
	suite.Exec(t, replaces, "INSERT INTO subscriptions SELECT * FROM before")
	suite.Exec(t, replaces, "UPDATE subscriptions SET order_id = 777 WHERE store_id = 1")
	commit(t, replaces)
	assert.NoError(t, h.Settle(t.Context()))
	for more := true; more; {
		page := assert.Must(h.Source.Changes(t.Context(), 1, feed.Query{After: f.cursor, Limit: 1, Language: locale.En}))(t)
		assert.NoError(t, f.apply(page, 1))
		more = page.More
	}
	wantComplete(t, h, f)
}

// A rewrite of a table gives its rows to no snapshot that is older. A reader that waits for it must
// take its snapshot afterwards.
func TestFollower_MissesNothingWhileATableIsRewritten(t *testing.T) {
	suite.Slow(t)
	for _, table := range []string{"products", "plans", "subscriptions", "saved_cards", "deleted_subscriptions", "subscription_timelines"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			h, f := suite.NewSetting(t), newFollower(1, 1)
			readAll(t, f, h.Source)
			suite.Exec(t, h.Writes, suite.InsertOne, 900, 7)
			rewrite := begin(t, h, pgx.ReadCommitted)
			suite.Exec(t, rewrite, "ALTER TABLE "+table+" ADD COLUMN rewritten_at timestamptz DEFAULT clock_timestamp()")
			read := make(chan error, 1)
			go func() { read <- f.finish(t.Context(), h.Source) }()
			waitForLock(t, h)
			commit(t, rewrite)
			assert.NoError(t, <-read)
			wantComplete(t, h, f)
		})
	}
}

func TestFollower_MissesNothingWhileTablesAreCompacted(t *testing.T) {
	t.Parallel()
	h, f := suite.NewSetting(t), newFollower(1, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 10 {
			for _, statement := range []string{"VACUUM FULL subscriptions", "CLUSTER subscriptions USING subscriptions_by_change", "VACUUM FULL products, plans"} {
				_, _ = h.Writes.Exec(t.Context(), statement) // fails if a reader holds a lock for long
			}
			_, _ = h.Writes.Exec(t.Context(), suite.InsertOne, 900+i, i)
		}
	}()
	for running := true; running; {
		_, err := f.read(t.Context(), h.Source)
		assert.That(t, err == nil || suite.IsUnavailable(err), "%v", err)
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
	h, f := suite.NewSetting(t), newFollower(1, 1)
	readAll(t, f, h.Source)
	subscriber := begin(t, h, pgx.ReadCommitted)
	suite.Exec(t, subscriber, "SET LOCAL session_replication_role = replica")
	suite.Exec(t, subscriber, "UPDATE subscriptions SET product_id = 999 WHERE store_id = 1 AND id = (SELECT min(id) FROM subscriptions WHERE store_id = 1)")
	commit(t, subscriber)
	q := feed.Query{After: f.cursor, Limit: 10, Language: locale.En}
	page, err := h.Source.Changes(t.Context(), 1, q)
	assert.That(t, suite.IsUnavailable(err), "without the product: %+v, %v", page, err)
	product := begin(t, h, pgx.ReadCommitted)
	suite.Exec(t, product, "INSERT INTO products SELECT (jsonb_populate_record(p, '{\"id\": 999, \"slug\": \"late\"}')).* FROM products p WHERE store_id = 1 AND id = 4")
	commit(t, product)
	wantComplete(t, h, f)
	assert.That(t, f.expired == 0, "the cursor expired")
}

// A table that stays locked makes a request fail before its time is over, and keeps the connection.
func TestChanges_FailWhileATableIsLocked(t *testing.T) {
	t.Parallel()
	h := suite.NewSetting(t)
	brief := suite.NewPostgres(postgres.Config{Pool: h.Writes, Budget: ephemeral.Patience(time.Second), Wait: ephemeral.Patience(time.Second)})
	lock := begin(t, h, pgx.ReadCommitted)
	suite.Exec(t, lock, "LOCK TABLE products IN ACCESS EXCLUSIVE MODE")
	page, err := brief.Changes(t.Context(), 1, feed.Query{Limit: 10, Language: locale.En})
	assert.That(t, suite.IsUnavailable(err), "locked: %+v, %v", page, err)
	opened := h.Writes.Stat().NewConnsCount()
	commit(t, lock)
	page, err = brief.Changes(t.Context(), 1, feed.Query{Limit: 10, Language: locale.En})
	assert.That(t, err == nil && len(page.Changed) != 0, "afterwards: %+v, %v", page, err)
	assert.Equal(t, h.Writes.Stat().NewConnsCount(), opened, "connections that were opened")
}
