package feed_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions/feed"
	"commerce/subscriptions/recorded"
	"commerce/subscriptions/suite"
)

// settle runs a statement, and waits until its changes can be read.
func settle(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	suite.Exec(t, pool, sql, args...)
	ephemeral.Settle(t, pool)
}

// pruning is a database whose old deletions are pruned.
type pruning struct {
	t      *testing.T
	source suite.Postgres
	pool   *pgxpool.Pool
}

func newPruning(t *testing.T) pruning {
	t.Helper()
	pool := suite.Filled(t, suite.SampleData())
	return pruning{t, suite.Patient(pool), pool}
}

// all reads all changes of a store after a cursor.
func (p pruning) all(store int64, after recorded.Cursor) (changed, deleted []int64, next recorded.Cursor) {
	p.t.Helper()
	return follow(p.t, p.source, store, after, 1000)
}

func (p pruning) delete(ids ...int64) {
	p.t.Helper()
	settle(p.t, p.pool, "DELETE FROM subscriptions WHERE store_id = 1 AND id = ANY($1)", ids)
}

// age makes the deletions of store 1 as old as an interval of Postgres.
func (p pruning) age(interval string) {
	p.t.Helper()
	settle(p.t, p.pool, "UPDATE deleted_subscriptions SET deleted_at = now() - $1::interval WHERE store_id = 1", interval)
}

const tooOld = "90 days 1 minute"

// prune expects a number of pruned deletions.
func (p pruning) prune(want int64) {
	p.t.Helper()
	n, err := feed.Prune(p.t.Context(), p.pool)
	assert.Require(p.t, err == nil && n == want, "pruned %d, %v; want %d", n, err, want)
}

func (p pruning) wantExpired(name string, store int64, after recorded.Cursor, want bool) {
	p.t.Helper()
	_, err := p.source.Changes(p.t.Context(), store, feed.Query{After: after, Limit: 10, Language: locale.En})
	assert.That(p.t, errors.Is(err, recorded.ErrCursorExpired) == want && (err == nil || want),
		"the cursor %s: %v, want expired: %v", name, err, want)
}

func TestPrune_ExpiresOnlyCursorsBeforeAnOldDeletion(t *testing.T) {
	t.Parallel()
	p := newPruning(t)
	_, _, before := p.all(1, recorded.Cursor{})
	_, _, others := p.all(2, recorded.Cursor{})
	p.delete(5001)
	_, deleted, after := p.all(1, before)
	assert.Require(t, len(deleted) == 1, "deleted %v", deleted)
	p.age("89 days 23 hours")
	p.prune(0)
	p.wantExpired("without a pruned deletion", 1, before, false)
	p.age(tooOld)
	p.prune(1)
	p.prune(0)
	p.wantExpired("before the deletion", 1, before, true)
	p.wantExpired("after the deletion", 1, after, false)
	p.wantExpired("of another store", 2, others, false)
}

// It has not seen the subscription that was deleted, so it does not have to delete it.
func TestPrune_LeavesTheCursorOfAFirstCopyThatBeganAfterTheDeletion(t *testing.T) {
	t.Parallel()
	p := newPruning(t)
	settle(t, p.pool, "UPDATE subscriptions SET order_id = order_id WHERE store_id = 1 AND id > 5005") // after the others
	p.delete(5048)
	first := assert.Must(p.source.Changes(t.Context(), 1, feed.Query{Limit: 3, Language: locale.En}))(t)
	assert.Require(t, len(first.Changed) == 3 && first.More, "%v", first)
	p.age(tooOld)
	p.prune(1)
	changed, deleted, _ := follow(t, p.source, 1, first.Next, 3)
	assert.That(t, len(changed) == 48-1-3 && len(deleted) == 0,
		"the rest of the copy has %d subscriptions and %d deletions, want 44 and 0", len(changed), len(deleted))
}

func TestPrune_ExpiresNothingForASubscriptionThatExistsAgain(t *testing.T) {
	t.Parallel()
	p := newPruning(t)
	_, _, before := p.all(1, recorded.Cursor{})
	settle(t, p.pool, "CREATE TABLE copy AS SELECT * FROM subscriptions WHERE store_id = 1 AND id = 5001")
	p.delete(5001)
	settle(t, p.pool, "INSERT INTO subscriptions SELECT * FROM copy")
	p.age(tooOld)
	p.prune(1)
	changed, deleted, _ := p.all(1, before)
	assert.That(t, len(changed) == 1 && len(deleted) == 0, "changed %v, deleted %v; want 5001 changed", changed, deleted)
}

// The last pruned deletion of a store is the greatest one, even if an earlier prune had a
// later one.
func TestPrune_NeverLowersTheLastPrunedDeletion(t *testing.T) {
	t.Parallel()
	p := newPruning(t)
	p.delete(5001)
	_, _, between := p.all(1, recorded.Cursor{})
	p.delete(5002)
	settle(t, p.pool, "UPDATE deleted_subscriptions SET deleted_at = now() - interval '91 days' WHERE id = 5002")
	p.prune(1)
	p.age(tooOld)
	p.prune(1)
	p.wantExpired("before the later deletion", 1, between, true)
}

// Two prunes beside writers delete every old deletion once, and no young one.
func TestPrune_RunsConcurrently(t *testing.T) {
	t.Parallel()
	pool := newPruning(t).pool
	settle(t, pool, `INSERT INTO deleted_subscriptions
		SELECT 1 + i % 4, 100000 + i, pg_current_xact_id(), now() - interval '91 days' FROM generate_series(1, 25000) i`)
	var all sync.WaitGroup
	var counts [2]int64
	for i := range counts {
		all.Go(func() {
			var err error
			counts[i], err = feed.Prune(t.Context(), pool)
			assert.Succeeds(t, err, "Prune")
		})
	}
	all.Go(func() {
		for id := 5001; id <= 5020; id++ {
			_, err := pool.Exec(t.Context(), "DELETE FROM subscriptions WHERE store_id = 1 AND id = $1", id)
			assert.That(t, err == nil, "%v", err)
		}
	})
	all.Wait()
	assert.That(t, counts[0]+counts[1] == 25000, "pruned %d and %d, want 25000 together", counts[0], counts[1])
	var left, stores int
	err := pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM deleted_subscriptions), (SELECT count(*) FROM pruned_deletions WHERE id > 124990)").Scan(&left, &stores)
	assert.That(t, err == nil && left == 20 && stores == 4,
		"%d deletions are left, and %d stores have their last one, %v; want 20 and 4", left, stores, err)
}
