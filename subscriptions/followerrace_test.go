package subscriptions_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"commerce/auth/locale"
	"commerce/subscriptions"
)

// A subscription gets a card while another transaction changes the card's digits.
func TestFollower_SeesACardThatChangesWhileItIsAssigned(t *testing.T) {
	t.Parallel()
	h, f := newSetting(t), newFollower(1, 1)
	assigns, changes := begin(t, h, pgx.ReadCommitted), begin(t, h, pgx.ReadCommitted)
	do(t, assigns, "UPDATE subscriptions SET saved_card_id = 2 WHERE store_id = 1 AND id = 6")
	changed := make(chan error, 1)
	go func() {
		_, err := changes.Exec(context.Background(), "UPDATE saved_cards SET last_four = '7777' WHERE store_id = 1 AND id = 2")
		changed <- err
	}()
	waitForLock(t, h)
	commit(t, assigns)
	readAll(t, f, h.source)
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
	commit(t, changes)
	wantComplete(t, h, f)
}

// A transaction with an old snapshot does not see the subscriptions that its statement
// concerns, so it must not run it.
func TestFollower_MissesNothingOfATransactionWithAnOldSnapshot(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{
		"TRUNCATE subscriptions", "UPDATE saved_cards SET last_four = '7777' WHERE store_id = 1 AND id = 2",
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			h, f := newSetting(t), newFollower(1, 1)
			old := begin(t, h, pgx.RepeatableRead)
			if _, err := h.writes.Exec(t.Context(), insertOne, 20, 2); err != nil {
				t.Fatal(err)
			}
			_, err := old.Exec(t.Context(), statement)
			if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != notSupported {
				t.Errorf("error %v, want that the statement is refused", err)
			}
			_ = old.Commit(t.Context())
			wantComplete(t, h, f)
		})
	}
}

// begin begins a transaction that is rolled back when the test ends, and gives it a number
// and a snapshot.
func begin(t *testing.T, h *setting, level pgx.TxIsoLevel) pgx.Tx {
	t.Helper()
	tx, err := h.writes.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	do(t, tx, "SELECT pg_current_xact_id()")
	do(t, tx, "SET LOCAL lock_timeout = 0")
	return tx
}

func do(t *testing.T, tx pgx.Tx, sql string) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func commit(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// waitForLock waits until a transaction waits for another one.
func waitForLock(t *testing.T, h *setting) {
	t.Helper()
	for began, waits := time.Now(), false; !waits; time.Sleep(time.Millisecond) {
		err := h.writes.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)").Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(began) > settleLimit {
			t.Fatal("no transaction waits")
		}
	}
}

// readAll lets the follower read what can be read now.
func readAll(t *testing.T, f *follower, source subscriptions.Source) {
	t.Helper()
	if err := f.finish(t.Context(), source); err != nil {
		t.Fatal(err)
	}
}

// wantComplete lets the follower read what has been committed, and compares its copy.
func wantComplete(t *testing.T, h *setting, f *follower) {
	t.Helper()
	if err := h.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.check(t.Context(), f, h.source); err != nil {
		t.Error(err)
	}
}

// A transaction deletes a subscription and inserts it again, so both changes have the same
// place. A page may end between them.
func TestFollower_SeesASubscriptionThatWasReplaced(t *testing.T) {
	t.Parallel()
	h, f := newSetting(t), newFollower(1, 1)
	readAll(t, f, h.source)
	replaces := begin(t, h, pgx.ReadCommitted)
	do(t, replaces, "CREATE TEMPORARY TABLE before ON COMMIT DROP AS SELECT * FROM subscriptions WHERE store_id = 1")
	do(t, replaces, "DELETE FROM subscriptions WHERE store_id = 1")
	do(t, replaces, "INSERT INTO subscriptions SELECT * FROM before")
	do(t, replaces, "UPDATE subscriptions SET order_id = 777 WHERE store_id = 1")
	commit(t, replaces)
	if err := h.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		page, err := h.source.Changes(t.Context(), 1, subscriptions.ChangesQuery{After: f.cursor, Limit: 1, Language: locale.En})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.apply(page, 1); err != nil {
			t.Fatal(err)
		}
		more = page.More
	}
	wantComplete(t, h, f)
}
