package subscriptions_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
)

// settle runs a statement, and waits until its changes can be read.
func settle(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	ephemeral.Settle(t, pool)
}

// prune expects a number of pruned deletions.
func prune(t *testing.T, pool *pgxpool.Pool, want int64) {
	t.Helper()
	if n, err := postgres.Prune(t.Context(), pool); err != nil || n != want {
		t.Fatalf("pruned %d, %v; want %d", n, err, want)
	}
}

// age makes the deletions of a store older than they may become.
func age(t *testing.T, pool *pgxpool.Pool, store int64) {
	t.Helper()
	settle(t, pool, "UPDATE deleted_subscriptions SET deleted_at = now() - interval '90 days 1 minute' WHERE store_id = $1", store)
}

func expired(t *testing.T, s subscriptions.Source, store int64, after subscriptions.Cursor) bool {
	t.Helper()
	_, err := s.Changes(t.Context(), store, subscriptions.ChangesQuery{After: after, Limit: 10, Language: locale.En})
	if err != nil && !errors.Is(err, subscriptions.ErrCursorExpired) {
		t.Fatal(err)
	}
	return err != nil
}

func pruning(t *testing.T) (*postgres.Source, *pgxpool.Pool) {
	t.Helper()
	pool := filled(t, sampleData())
	return patient(pool), pool
}

func TestPrune_ExpiresOnlyCursorsBeforeAPrunedDeletion(t *testing.T) {
	t.Parallel()
	source, pool := pruning(t)
	_, _, before := follow(t, source, 1, subscriptions.Cursor{}, 1000)
	_, _, others := follow(t, source, 2, subscriptions.Cursor{}, 1000)
	settle(t, pool, "DELETE FROM subscriptions WHERE store_id = 1 AND id = 5001")
	_, deleted, after := follow(t, source, 1, before, 1000)
	if len(deleted) != 1 {
		t.Fatalf("deleted %v", deleted)
	}
	prune(t, pool, 0)
	if expired(t, source, 1, before) {
		t.Error("a cursor expires without a pruned deletion")
	}
	age(t, pool, 1)
	prune(t, pool, 1)
	prune(t, pool, 0)
	if !expired(t, source, 1, before) {
		t.Error("a cursor before the deletion does not expire")
	}
	if expired(t, source, 1, after) {
		t.Error("a cursor after the deletion expires")
	}
	if expired(t, source, 2, others) {
		t.Error("a cursor of another store expires")
	}
}

// It has not seen the subscription that was deleted, so it does not have to delete it.
func TestPrune_LeavesTheCursorOfAFirstCopyThatBeganAfterTheDeletion(t *testing.T) {
	t.Parallel()
	source, pool := pruning(t)
	settle(t, pool, "UPDATE subscriptions SET order_id = order_id WHERE store_id = 1 AND id > 5005") // after the others
	settle(t, pool, "DELETE FROM subscriptions WHERE store_id = 1 AND id = 5048")
	first, err := source.Changes(t.Context(), 1, subscriptions.ChangesQuery{Limit: 3, Language: locale.En})
	if err != nil || len(first.Changed) != 3 || !first.More {
		t.Fatal(first, err)
	}
	age(t, pool, 1)
	prune(t, pool, 1)
	changed, deleted, _ := follow(t, source, 1, first.Next, 3)
	if len(changed) != 48-1-3 || len(deleted) != 0 {
		t.Errorf("the rest of the copy has %d subscriptions and %d deletions, want 44 and 0", len(changed), len(deleted))
	}
}

func TestPrune_KeepsYoungDeletions(t *testing.T) {
	t.Parallel()
	source, pool := pruning(t)
	_, _, before := follow(t, source, 1, subscriptions.Cursor{}, 1000)
	settle(t, pool, "DELETE FROM subscriptions WHERE store_id = 1 AND id IN (5001, 5002)")
	settle(t, pool, "UPDATE deleted_subscriptions SET deleted_at = now() - interval '89 days 23 hours'")
	prune(t, pool, 0)
	if _, deleted, _ := follow(t, source, 1, before, 1000); len(deleted) != 2 {
		t.Errorf("deleted %v, want two", deleted)
	}
}

func TestPrune_ExpiresNothingForASubscriptionThatExistsAgain(t *testing.T) {
	t.Parallel()
	source, pool := pruning(t)
	_, _, before := follow(t, source, 1, subscriptions.Cursor{}, 1000)
	settle(t, pool, "CREATE TABLE copy AS SELECT * FROM subscriptions WHERE store_id = 1 AND id = 5001")
	settle(t, pool, "DELETE FROM subscriptions WHERE store_id = 1 AND id = 5001")
	settle(t, pool, "INSERT INTO subscriptions SELECT * FROM copy")
	age(t, pool, 1)
	prune(t, pool, 1)
	changed, deleted, _ := follow(t, source, 1, before, 1000)
	if len(changed) != 1 || len(deleted) != 0 {
		t.Errorf("changed %v, deleted %v; want 5001 changed", changed, deleted)
	}
}

// The last pruned deletion of a store is the greatest one, even if an earlier prune had a
// later one.
func TestPrune_NeverLowersTheLastPrunedDeletion(t *testing.T) {
	t.Parallel()
	source, pool := pruning(t)
	settle(t, pool, "DELETE FROM subscriptions WHERE store_id = 1 AND id = 5001")
	_, _, between := follow(t, source, 1, subscriptions.Cursor{}, 1000)
	settle(t, pool, "DELETE FROM subscriptions WHERE store_id = 1 AND id = 5002")
	settle(t, pool, "UPDATE deleted_subscriptions SET deleted_at = now() - interval '91 days' WHERE id = 5002")
	prune(t, pool, 1)
	age(t, pool, 1)
	prune(t, pool, 1)
	if !expired(t, source, 1, between) {
		t.Error("the cursor before the later deletion does not expire")
	}
}

// Two prunes beside writers delete every old deletion once, and no young one.
func TestPrune_RunsConcurrently(t *testing.T) {
	t.Parallel()
	_, pool := pruning(t)
	settle(t, pool, `INSERT INTO deleted_subscriptions
		SELECT 1 + i % 4, 100000 + i, pg_current_xact_id(), now() - interval '91 days' FROM generate_series(1, 25000) i`)
	var all sync.WaitGroup
	var counts [2]int64
	for i := range counts {
		all.Go(func() {
			var err error
			if counts[i], err = postgres.Prune(t.Context(), pool); err != nil {
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		for id := 5001; id <= 5020; id++ {
			if _, err := pool.Exec(t.Context(), "DELETE FROM subscriptions WHERE store_id = 1 AND id = $1", id); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	if counts[0]+counts[1] != 25000 {
		t.Errorf("pruned %d and %d, want 25000 together", counts[0], counts[1])
	}
	var left, stores int
	err := pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM deleted_subscriptions), (SELECT count(*) FROM pruned_deletions WHERE id > 124990)").Scan(&left, &stores)
	if err != nil || left != 20 || stores != 4 {
		t.Errorf("%d deletions are left, and %d stores have their last one, %v; want 20 and 4", left, stores, err)
	}
}
