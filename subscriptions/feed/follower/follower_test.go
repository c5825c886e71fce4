// Package follower_test copies subscriptions by their changes while writers, failures and failovers interfere.
package follower_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/feed"
	"commerce/subscriptions/recorded"
	"commerce/subscriptions/subscriptionshttp"
	"commerce/subscriptions/suite"
)

// A history is what writers do to subscriptions for a second while followers copy them. A
// seed determines what each writer and follower does, but not how they overlap.

var (
	histories    = flag.Int("histories", 20, "how many random histories to run")
	firstHistory = flag.Uint64("history", 1, "the seed of the first random history")
)

const historyLength = time.Second

// follower keeps a copy of a store's subscriptions with the changes. Some of what it does is
// lost when it dies, as if it had stored the rows and the cursor in a database of its own.
type follower struct {
	store  int64
	random *rand.Rand

	copied
	stored copied // what is left when it dies

	waits   bool // for news, instead of reading again and again
	expired int  // how often it had to start from the beginning
}

// copied is what a follower has received.
type copied struct {
	rows   map[int64]subscriptions.Subscription
	cursor recorded.Cursor
}

func (c copied) clone() copied { return copied{maps.Clone(c.rows), c.cursor} }

func newFollower(store int64, seed uint64) *follower {
	f := &follower{store: store, random: rand.New(rand.NewPCG(seed, uint64(store)))}
	f.begin()
	return f
}

// begin starts from the beginning.
func (f *follower) begin() {
	f.copied = copied{rows: map[int64]subscriptions.Subscription{}}
	f.stored = f.clone()
}

// read reads and applies a page of changes. It reports whether the cursor moved.
func (f *follower) read(ctx context.Context, source suite.Source) (moved bool, err error) {
	limit := 1 + f.random.IntN(1+f.random.IntN(40))
	page, err := source.Changes(ctx, f.store, feed.Query{After: f.cursor, Limit: limit, Language: locale.En})
	if errors.Is(err, recorded.ErrCursorExpired) {
		f.expired++
		f.begin()
		return true, nil
	}
	if err != nil {
		return false, err
	}
	moved = page.Next != f.cursor
	if err := f.apply(page, limit); err != nil {
		return false, err
	}
	if page.More && !moved {
		return false, errors.New("more changes follow, but the cursor is the same")
	}
	return moved, nil
}

// apply changes the copy as the documentation tells clients to.
func (f *follower) apply(page feed.Changes, limit int) error {
	if n := len(page.Changed) + len(page.Deleted); n > limit {
		return fmt.Errorf("a page of %d changes, want at most %d", n, limit)
	}
	for _, d := range page.Deleted {
		delete(f.rows, d.ID)
	}
	for _, s := range page.Changed {
		if slices.ContainsFunc(page.Deleted, func(d feed.Deletion) bool { return d.ID == s.ID }) {
			return fmt.Errorf("a page has changed and deleted %d", s.ID)
		}
		f.rows[s.ID] = s
	}
	f.cursor = page.Next
	return nil
}

// dieOrStore loses what was not stored, or only the cursor, or stores both, or does nothing.
func (f *follower) dieOrStore() {
	switch f.random.IntN(12) {
	case 0:
		f.copied = f.stored.clone()
	case 1:
		f.cursor = f.stored.cursor
	case 2, 3, 4, 5:
		f.stored = f.clone()
	}
}

// waiters are those of the sources, which all followers share.
var waiters sync.Map

// wait returns whether there is news for the follower, at the latest when ctx ends.
func (f *follower) wait(ctx context.Context, source suite.Source, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	waiter, _ := waiters.LoadOrStore(source, recorded.NewWaiter(source.News, subscriptionshttp.NewPlaces()))
	return waiter.(*recorded.Waiter).Wait(ctx, f.store, f.cursor.Change)
}

// newsLimit is within which a change is news.
const newsLimit = time.Second

// follow reads pages until ctx ends, each from a source that pick returns.
func (f *follower) follow(ctx context.Context, pick func(*rand.Rand) suite.Source) error {
	for ctx.Err() == nil {
		moved, err := f.read(context.WithoutCancel(ctx), pick(f.random))
		if err != nil && !suite.IsUnavailable(err) {
			return err
		}
		switch {
		case moved:
		case f.waits:
			f.wait(ctx, pick(f.random), time.Duration(f.random.IntN(1000))*time.Millisecond)
		default:
			time.Sleep(time.Duration(f.random.IntN(20)) * time.Millisecond)
		}
		f.dieOrStore()
	}
	return nil
}

// hear reads what is news until nothing is. Then nothing may follow.
func (f *follower) hear(ctx context.Context, source suite.Source) error {
	for f.wait(ctx, source, newsLimit) {
		if err := f.finish(ctx, source); err != nil {
			return err
		}
	}
	heard, expired := f.cursor, f.expired
	if err := f.finish(ctx, source); err != nil {
		return err
	}
	if f.cursor.Change != heard.Change && f.expired == expired {
		return fmt.Errorf("changes up to %v followed %v, and were no news within %v", f.cursor.Change, heard.Change, newsLimit)
	}
	return nil
}

// finish reads until nothing follows. A cursor that expires as soon as the follower has begun
// is an error.
func (f *follower) finish(ctx context.Context, source suite.Source) error {
	ctx, cancel := context.WithTimeout(ctx, suite.SettleLimit)
	defer cancel()
	expired := f.expired
	for moved := true; moved; {
		var err error
		if moved, err = f.read(ctx, source); err != nil {
			return err
		}
		if f.expired > expired+1 {
			return errors.New("the cursor of a follower that has just begun expired")
		}
	}
	return nil
}

// difference compares the copy to the table, row by row. It also says which transactions wrote the rows and their cards.
func (f *follower) difference(ctx context.Context, pool *pgxpool.Pool, source suite.Source) (string, error) {
	rows, _ := pool.Query(ctx, "SELECT id FROM subscriptions WHERE store_id = $1", f.store) // rows have its error
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return "", err
	}
	table := map[int64]subscriptions.Subscription{}
	for _, id := range ids {
		s, err := source.Get(ctx, f.store, id, locale.En)
		if err != nil {
			return "", fmt.Errorf("get %d: %w", id, err)
		}
		table[id] = *s
	}
	diff := cmp.Diff(table, f.rows)
	if diff == "" {
		return "", nil
	}
	rows, _ = pool.Query(ctx, `SELECT format('%s: by %s, changed in %s, card %s by %s', s.id, s.xmin, s.changed_in, c.id, c.xmin) FROM subscriptions s
		LEFT JOIN saved_cards c ON (c.store_id, c.id) = (s.store_id, s.saved_card_id) WHERE s.store_id = $1 ORDER BY s.id`, f.store)
	written, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return diff + strings.Join(written, "\n"), err
}

// Followers of each history end with the rows of the table, whatever writers do, and wherever
// the followers die.
func TestFollower_MissesNothing(t *testing.T) {
	t.Parallel()
	const workers = 4 // with a server each, because a transaction delays all readers of its server
	runHistories(t, "TestFollower_MissesNothing", *histories, workers, func(h *suite.Setting) []reader {
		onPrimary := func(*rand.Rand) suite.Source { return h.Source }
		return []reader{{onPrimary, h.Source}, {onPrimary, h.Source}}
	})
}

// Followers that read a standby, or sometimes it and sometimes the primary, end with the rows
// of the table, although the standby is late.
func TestFollower_MissesNothingOnAStandby(t *testing.T) {
	suite.Slow(t)
	const workers = 2
	runHistories(t, "TestFollower_MissesNothingOnAStandby", max(1, *histories/5), workers, func(h *suite.Setting) []reader {
		standby := h.AddStandby()
		either := func(random *rand.Rand) suite.Source {
			return []suite.Source{h.Source, standby}[random.IntN(2)]
		}
		onStandby := func(*rand.Rand) suite.Source { return standby }
		return []reader{{either, h.Source}, {either, standby}, {onStandby, standby}}
	})
}

// Followers whose reads go to the replicas that are fit, and sometimes to the primary, end with
// the rows of the table, although the replicas keep being left out because they lag.
func TestFollower_MissesNothingOnReplicas(t *testing.T) {
	suite.Slow(t)
	const workers, maxLag = 1, 50 * time.Millisecond
	var replicated *suite.Replicated
	runHistories(t, "TestFollower_MissesNothingOnReplicas", max(1, *histories/5), workers, func(h *suite.Setting) []reader {
		replicated = suite.Replicate(h, maxLag, suite.Patience)
		onReplicas := func(*rand.Rand) suite.Source { return replicated.Source }
		return []reader{{onReplicas, replicated.Source}, {onReplicas, h.Source}, {onReplicas, replicated.Source}}
	})
	of, primary := replicated.FromReplicas.Load(), replicated.FromPrimary.Load()
	assert.That(t, replicated.Log.Count("it lags") != 0 && of != 0 && primary != 0,
		"%d reads were of replicas and %d of the primary; the log is\n%s", of, primary, replicated.Log)
}

// A standby that lacks what a follower has seen on the primary shows it no changes, and the
// follower keeps its cursor. It goes on when the standby has caught up.
func TestFollower_KeepsItsCursorWhileAStandbyIsBehind(t *testing.T) {
	t.Parallel()
	h, f := suite.NewSetting(t), newFollower(1, 1)
	onStandby := h.AddStandby()
	h.Standbys[0].CatchUp(h.Primary)
	h.Standbys[0].CutOff()
	change := func(ids ...int) {
		t.Helper()
		for _, id := range ids {
			suite.Exec(t, h.Writes, suite.InsertOne, id, id)
		}
	}
	change(1, 10, 11)
	readAll(t, f, h.Source)
	page, err := onStandby.Changes(t.Context(), 1, feed.Query{After: f.cursor, Limit: 10})
	diff := cmp.Diff(feed.Changes{Next: f.cursor}, page, cmp.Comparer(func(a, b recorded.Cursor) bool { return a == b }))
	assert.That(t, err == nil && diff == "", "a standby that is behind: %v\n%s", err, diff)
	change(2, 10, 12)
	h.Standbys[0].Follow(h.Primary)
	assert.NoError(t, h.Settle(t.Context()))
	err = check(h, t.Context(), f, onStandby)
	assert.That(t, err == nil && f.expired == 0, "%d cursors expired, error %v", f.expired, err)
}

// reader is where a follower reads, and where it reads last.
type reader struct {
	pick func(*rand.Rand) suite.Source
	last suite.Source
}

// runHistories runs histories in several settings. follow prepares a setting and returns its
// followers.
func runHistories(t *testing.T, name string, n, workers int, follow func(*suite.Setting) []reader) {
	seeds := make(chan uint64)
	var all sync.WaitGroup
	for range min(n, workers) {
		h := suite.NewSetting(t)
		readers := follow(h)
		all.Go(func() {
			for seed := range seeds {
				assert.Succeeds(t, runHistory(h, t.Context(), seed, readers),
					"go test ./subscriptions/feed/follower -run '%s$' -histories 1 -history %d", name, seed)
			}
		})
	}
	for i := range n {
		seeds <- *firstHistory + uint64(i)
	}
	close(seeds)
	all.Wait()
}

// run runs one history and compares the followers' copies to the table.
func runHistory(h *suite.Setting, ctx context.Context, seed uint64, readers []reader) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	writing, stop := context.WithTimeout(ctx, historyLength)
	defer stop()
	var written, read sync.WaitGroup
	fail := func(err error) {
		if err != nil {
			cancel(err)
		}
	}
	for i := range suite.Writers {
		w := &writer{random: rand.New(rand.NewPCG(seed, uint64(i))), pool: h.Writes, longest: longestPause}
		written.Go(func() { fail(w.writeUntil(writing)) })
	}
	followers := make([]*follower, len(readers))
	for i, r := range readers {
		followers[i] = newFollower(1, seed+uint64(i)<<32)
		followers[i].waits = i%2 == 0
		read.Go(func() { fail(followers[i].follow(writing, r.pick)) })
	}
	for i, standby := range h.Standbys {
		read.Go(func() { fail(delay(h, writing, standby, rand.New(rand.NewPCG(seed, uint64(1+i))))) })
	}
	written.Wait()
	read.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := h.Settle(ctx); err != nil {
		return err
	}
	for i, r := range readers {
		if followers[i].waits {
			if err := followers[i].hear(ctx, r.last); err != nil {
				return fmt.Errorf("follower %d: %w", i, err)
			}
		}
		if err := check(h, ctx, followers[i], r.last); err != nil || followers[i].expired > 0 {
			return fmt.Errorf("follower %d: %d cursors expired, error %v", i, followers[i].expired, err)
		}
	}
	return nil
}

// delay pauses a standby's replay now and then until ctx ends.
func delay(h *suite.Setting, ctx context.Context, standby *ephemeral.Standby, random *rand.Rand) error {
	pool := suite.WritesTo(h.T, standby.URL)
	for ctx.Err() == nil {
		for _, f := range []string{"pg_wal_replay_pause()", "pg_wal_replay_resume()"} {
			if _, err := pool.Exec(context.WithoutCancel(ctx), "SELECT "+f); err != nil {
				return err
			}
			time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		}
	}
	return nil
}

// check reads what a follower has not read yet, and compares its copy. A standby that is
// behind the cursor has no changes, so it is asked again.
func check(h *suite.Setting, ctx context.Context, f *follower, source suite.Source) error {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if err := f.finish(ctx, source); err != nil {
			return err
		}
		diff, err := f.difference(ctx, h.Writes, h.Source)
		switch {
		case err != nil:
			return err
		case diff != "" && (len(h.Standbys) == 0 || time.Since(began) > 5*time.Second):
			return fmt.Errorf("the copy differs (-table +copy):\n%s", diff)
		case diff == "":
			return nil
		}
	}
}
