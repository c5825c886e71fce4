package subscriptions_test

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
	"commerce/auth/problem"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/subscriptionshttp"
)

// A history is what writers do to subscriptions for a second while followers copy them. A
// seed determines what each writer and follower does, but not how they overlap.

var (
	histories    = flag.Int("histories", 20, "how many random histories to run")
	firstHistory = flag.Uint64("history", 1, "the seed of the first random history")
)

const historyLength = time.Second

var settleLimit = ephemeral.Patience(30 * time.Second)

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
	cursor subscriptions.Cursor
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
func (f *follower) read(ctx context.Context, source subscriptions.Source) (moved bool, err error) {
	limit := 1 + f.random.IntN(1+f.random.IntN(40))
	page, err := source.Changes(ctx, f.store, subscriptions.ChangesQuery{After: f.cursor, Limit: limit, Language: locale.En})
	if errors.Is(err, subscriptions.ErrCursorExpired) {
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
func (f *follower) apply(page subscriptions.Changes, limit int) error {
	if n := len(page.Changed) + len(page.Deleted); n > limit {
		return fmt.Errorf("a page of %d changes, want at most %d", n, limit)
	}
	for _, d := range page.Deleted {
		delete(f.rows, d.ID)
	}
	for _, s := range page.Changed {
		if slices.ContainsFunc(page.Deleted, func(d subscriptions.Deletion) bool { return d.ID == s.ID }) {
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
func (f *follower) wait(ctx context.Context, source subscriptions.Source, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	waiter, _ := waiters.LoadOrStore(source, subscriptionshttp.NewWaiter(source))
	return waiter.(*subscriptionshttp.Waiter).Wait(ctx, f.store, f.cursor.Change)
}

// newsLimit is within which a change is news.
const newsLimit = time.Second

// follow reads pages until ctx ends, each from a source that pick returns.
func (f *follower) follow(ctx context.Context, pick func(*rand.Rand) subscriptions.Source) error {
	for ctx.Err() == nil {
		moved, err := f.read(context.WithoutCancel(ctx), pick(f.random))
		if err != nil && !isUnavailable(err) {
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

func isUnavailable(err error) bool {
	known, ok := errors.AsType[*problem.Error](err)
	return ok && known.Code == problem.Unavailable
}

// hear reads what is news until nothing is. Then nothing may follow.
func (f *follower) hear(ctx context.Context, source subscriptions.Source) error {
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
func (f *follower) finish(ctx context.Context, source subscriptions.Source) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
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
func (f *follower) difference(ctx context.Context, pool *pgxpool.Pool, source subscriptions.Source) (string, error) {
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
	runHistories(t, "TestFollower_MissesNothing", *histories, workers, func(h *setting) []reader {
		onPrimary := func(*rand.Rand) subscriptions.Source { return h.source }
		return []reader{{onPrimary, h.source}, {onPrimary, h.source}}
	})
}

// Followers that read a standby, or sometimes it and sometimes the primary, end with the rows
// of the table, although the standby is late.
func TestFollower_MissesNothingOnAStandby(t *testing.T) {
	slow(t)
	const workers = 2
	runHistories(t, "TestFollower_MissesNothingOnAStandby", max(1, *histories/5), workers, func(h *setting) []reader {
		standby := h.addStandby()
		either := func(random *rand.Rand) subscriptions.Source {
			return []subscriptions.Source{h.source, standby}[random.IntN(2)]
		}
		onStandby := func(*rand.Rand) subscriptions.Source { return standby }
		return []reader{{either, h.source}, {either, standby}, {onStandby, standby}}
	})
}

// Followers whose reads go to the replicas that are fit, and sometimes to the primary, end with
// the rows of the table, although the replicas keep being left out because they lag.
func TestFollower_MissesNothingOnReplicas(t *testing.T) {
	slow(t)
	const workers, maxLag = 1, 50 * time.Millisecond
	var replicated *replicated
	runHistories(t, "TestFollower_MissesNothingOnReplicas", max(1, *histories/5), workers, func(h *setting) []reader {
		replicated = replicate(h, maxLag, patience)
		onReplicas := func(*rand.Rand) subscriptions.Source { return replicated.source }
		return []reader{{onReplicas, replicated.source}, {onReplicas, h.source}, {onReplicas, replicated.source}}
	})
	of, primary := replicated.fromReplicas.Load(), replicated.fromPrimary.Load()
	assert.That(t, replicated.log.count("it lags") != 0 && of != 0 && primary != 0,
		"%d reads were of replicas and %d of the primary; the log is\n%s", of, primary, &replicated.log.text)
}

// A standby that lacks what a follower has seen on the primary shows it no changes, and the
// follower keeps its cursor. It goes on when the standby has caught up.
func TestFollower_KeepsItsCursorWhileAStandbyIsBehind(t *testing.T) {
	t.Parallel()
	h, f := newSetting(t), newFollower(1, 1)
	onStandby := h.addStandby()
	h.standbys[0].CatchUp(h.primary)
	h.standbys[0].CutOff()
	change := func(ids ...int) {
		t.Helper()
		for _, id := range ids {
			exec(t, h.writes, insertOne, id, id)
		}
	}
	change(1, 10, 11)
	readAll(t, f, h.source)
	page, err := onStandby.Changes(t.Context(), 1, subscriptions.ChangesQuery{After: f.cursor, Limit: 10})
	diff := cmp.Diff(subscriptions.Changes{Next: f.cursor}, page, cmp.Comparer(func(a, b subscriptions.Cursor) bool { return a == b }))
	assert.That(t, err == nil && diff == "", "a standby that is behind: %v\n%s", err, diff)
	change(2, 10, 12)
	h.standbys[0].Follow(h.primary)
	assert.NoError(t, h.settle(t.Context()))
	err = h.check(t.Context(), f, onStandby)
	assert.That(t, err == nil && f.expired == 0, "%d cursors expired, error %v", f.expired, err)
}

// reader is where a follower reads, and where it reads last.
type reader struct {
	pick func(*rand.Rand) subscriptions.Source
	last subscriptions.Source
}

// runHistories runs histories in several settings. follow prepares a setting and returns its
// followers.
func runHistories(t *testing.T, name string, n, workers int, follow func(*setting) []reader) {
	seeds := make(chan uint64)
	var all sync.WaitGroup
	for range min(n, workers) {
		h := newSetting(t)
		readers := follow(h)
		all.Go(func() {
			for seed := range seeds {
				assert.Succeeds(t, h.run(t.Context(), seed, readers),
					"go test ./subscriptions -run '%s$' -histories 1 -history %d", name, seed)
			}
		})
	}
	for i := range n {
		seeds <- *firstHistory + uint64(i)
	}
	close(seeds)
	all.Wait()
}

// setting is a server on which histories happen one after another.
type setting struct {
	t        *testing.T
	primary  *ephemeral.Server
	standbys []*ephemeral.Standby
	writes   *pgxpool.Pool
	source   *postgres.Source // of the primary
}

func newSetting(t *testing.T, settings ...string) *setting {
	t.Helper()
	primary := ephemeral.StartPostgres(t, settings...)
	assert.NoError(t, ephemeral.Migrate(t.Context(), primary.URL))
	h := settingOf(t, primary, primary.URL)
	fill(t, h.writes, inTwoStores(sixStates()))
	exec(t, h.writes, "CHECKPOINT") // a crash must not lose these rows, whatever synchronous_commit is
	return h
}

// settingOf returns a setting on a database of a server.
func settingOf(t *testing.T, primary *ephemeral.Server, url string) *setting {
	t.Helper()
	return &setting{t: t, primary: primary, writes: writesTo(t, url), source: sourceOf(t, url)}
}

func (h *setting) addStandby(settings ...string) *postgres.Source {
	h.t.Helper()
	standby := ephemeral.StartStandby(h.t, h.primary, settings...)
	h.standbys = append(h.standbys, standby)
	return sourceOf(h.t, standby.URL)
}

// inTwoStores returns the data of store 1 also for store 2.
func inTwoStores(d data) data {
	for _, c := range d.customers {
		c.StoreID = 2
		d.customers = append(d.customers, c)
	}
	for _, s := range d.all {
		s.StoreID = 2
		d.all = append(d.all, s)
	}
	return d
}

// writesTo returns a pool for writers, who do not wait long for each other.
func writesTo(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	return ephemeral.OpenPool(t, url, connect.PostgresConfig{
		Writable: true, MaxConns: writers + 2, StatementTimeout: -1,
		Settings: map[string]string{"lock_timeout": "500ms"},
	})
}

func sourceOf(t *testing.T, url string) *postgres.Source {
	t.Helper()
	pool := ephemeral.OpenPool(t, url, connect.PostgresConfig{MaxConns: 8, StatementTimeout: -1})
	return postgres.New(postgres.Config{Pool: pool, Budget: settleLimit, Wait: settleLimit})
}

// run runs one history and compares the followers' copies to the table.
func (h *setting) run(ctx context.Context, seed uint64, readers []reader) error {
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
	for i := range writers {
		w := &writer{random: rand.New(rand.NewPCG(seed, uint64(i))), pool: h.writes, longest: longestPause}
		written.Go(func() { fail(w.writeUntil(writing)) })
	}
	followers := make([]*follower, len(readers))
	for i, r := range readers {
		followers[i] = newFollower(1, seed+uint64(i)<<32)
		followers[i].waits = i%2 == 0
		read.Go(func() { fail(followers[i].follow(writing, r.pick)) })
	}
	for i, standby := range h.standbys {
		read.Go(func() { fail(h.delay(writing, standby, rand.New(rand.NewPCG(seed, uint64(1+i))))) })
	}
	written.Wait()
	read.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := h.settle(ctx); err != nil {
		return err
	}
	for i, r := range readers {
		if followers[i].waits {
			if err := followers[i].hear(ctx, r.last); err != nil {
				return fmt.Errorf("follower %d: %w", i, err)
			}
		}
		if err := h.check(ctx, followers[i], r.last); err != nil || followers[i].expired > 0 {
			return fmt.Errorf("follower %d: %d cursors expired, error %v", i, followers[i].expired, err)
		}
	}
	return nil
}

// delay pauses a standby's replay now and then until ctx ends.
func (h *setting) delay(ctx context.Context, standby *ephemeral.Standby, random *rand.Rand) error {
	pool := writesTo(h.t, standby.URL)
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

// settle waits until all transactions that have begun have ended, and the standbys have them.
func (h *setting) settle(ctx context.Context) error {
	if err := h.settlePrimary(ctx); err != nil {
		return err
	}
	h.catchUp()
	return nil
}

// catchUp waits until the standbys have what the primary has.
func (h *setting) catchUp() {
	h.t.Helper()
	for _, standby := range h.standbys {
		standby.CatchUp(h.primary)
	}
}

func (h *setting) settlePrimary(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	var last uint64
	if err := h.writes.QueryRow(ctx, "SELECT pg_current_xact_id()").Scan(&last); err != nil {
		return err
	}
	for ended := false; !ended; time.Sleep(time.Millisecond) {
		err := h.writes.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot()) > $1", last).Scan(&ended)
		if err != nil {
			return err
		}
	}
	return nil
}

// check reads what a follower has not read yet, and compares its copy. A standby that is
// behind the cursor has no changes, so it is asked again.
func (h *setting) check(ctx context.Context, f *follower, source subscriptions.Source) error {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if err := f.finish(ctx, source); err != nil {
			return err
		}
		diff, err := f.difference(ctx, h.writes, h.source)
		switch {
		case err != nil:
			return err
		case diff != "" && (len(h.standbys) == 0 || time.Since(began) > 5*time.Second):
			return fmt.Errorf("the copy differs (-table +copy):\n%s", diff)
		case diff == "":
			return nil
		}
	}
}
