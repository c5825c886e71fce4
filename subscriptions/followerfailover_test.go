package subscriptions_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	osexec "os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
)

// failover is what happens to a primary and its standbys.
type failover struct {
	lacks   bool // the standby lacks the last writes when it is promoted
	restart bool // each promoted server is written and restarts before anybody reads it, so that it no longer knows where the old one ended
	second  bool // another standby is promoted afterwards
	between bool // subscriptions change between the two promotions
}

var failovers = []failover{
	{},
	{restart: true},
	{second: true},
	{second: true, between: true},
	{lacks: true},
	{lacks: true, restart: true},
	{lacks: true, second: true},
	{lacks: true, second: true, between: true},
	{lacks: true, second: true, between: true, restart: true},
}

// known reports whether the new primary knows where the old one's log ended.
func (o failover) known() bool { return !o.restart && (!o.second || o.between) }

// After a promotion, a follower goes on, or its cursor expires and it starts from the
// beginning. It ends with the rows of the table in both cases, also if nothing changes on the
// new primary. A cursor expires if the new primary lacks what its follower has seen. It does
// not expire if the follower has seen nothing that the new primary lacks.
func TestFollower_MissesNothingAfterAPromotion(t *testing.T) {
	slow(t)
	for i, o := range failovers {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			t.Parallel()
			f := newPromotions(t, o, uint64(i))
			f.promote()
			for _, reader := range f.readers {
				f.wantEqual(reader)
			}
			f.write(f.now)
			for _, reader := range f.readers {
				assert.Succeeds(t, reader.hear(t.Context(), f.now.source), "%s, after a write", reader.name)
				wantComplete(t, f.now, reader.follower)
				f.wantExpired(reader)
			}
		})
	}
}

// promotions are a failover on servers.
type promotions struct {
	t *testing.T
	failover
	random *rand.Rand

	before, now  *setting // the old primary and the latest one
	first, other *ephemeral.Standby
	readers      []*promotionReader
}

// promotionReader is a follower that reads the old primary or a standby before a promotion.
type promotionReader struct {
	*follower
	name  string
	ahead bool // it has seen what the new primary lacks
}

func newPromotions(t *testing.T, o failover, seed uint64) *promotions {
	t.Helper()
	f := &promotions{t: t, failover: o, random: rand.New(rand.NewPCG(seed, 0)), before: newSetting(t)}
	f.first = ephemeral.StartStandby(t, f.before.primary)
	if o.second {
		f.other = ephemeral.StartStandby(t, f.before.primary)
		f.other.Follow(f.first.Server)
	}
	return f
}

// read adds a follower that has read all that there is.
func (f *promotions) read(name string, source subscriptions.Source, ahead bool) {
	f.t.Helper()
	reader := &promotionReader{newFollower(1, f.random.Uint64()), name, ahead}
	readAll(f.t, reader.follower, source)
	f.readers = append(f.readers, reader)
}

// write changes subscriptions on a primary.
func (f *promotions) write(h *setting) {
	f.t.Helper()
	w := &writer{random: rand.New(rand.NewPCG(f.random.Uint64(), 0)), pool: h.writes, longest: time.Millisecond}
	for range 20 {
		err := w.transaction(f.t.Context())
		assert.Require(f.t, err == nil || isExpected(err), "%v", err)
	}
	exec(f.t, h.writes, insertOne, 1, f.random.Int64N(1e9))
	assert.NoError(f.t, h.settle(f.t.Context()))
}

func (f *promotions) promote() {
	f.t.Helper()
	f.write(f.before)
	f.read("early", f.before.source, false)
	f.first.CatchUp(f.before.primary)
	f.read("early on the standby", sourceOf(f.t, f.first.URL), false)
	if f.lacks {
		f.first.CutOff()
		f.write(f.before)
	}
	f.read("late", f.before.source, f.lacks)
	if !f.lacks {
		f.first.CatchUp(f.before.primary)
	}
	f.promoteOne(f.first)
	if !f.second {
		return
	}
	if f.between {
		f.write(f.now)
		f.read("between", f.now.source, false)
	}
	f.other.CatchUp(f.now.primary)
	f.read("between on the standby", sourceOf(f.t, f.other.URL), false)
	if f.between && f.lacks {
		f.other.CutOff()
		f.write(f.now)
		f.read("late between", f.now.source, true)
	}
	f.promoteOne(f.other)
}

// promoteOne makes a standby the latest primary. The one before goes on, but nobody reads it.
func (f *promotions) promoteOne(standby *ephemeral.Standby) {
	f.t.Helper()
	standby.Promote()
	if f.restart {
		exec(f.t, writesTo(f.t, standby.URL), insertOne, 2, f.random.Int64N(1e9))
		standby.Restart()
	}
	f.now = settingOf(f.t, standby.Server, standby.URL)
}

// wantEqual checks a follower that has not read the new primary yet.
func (f *promotions) wantEqual(r *promotionReader) {
	f.t.Helper()
	assert.NoError(f.t, f.now.settle(f.t.Context()))
	assert.Succeeds(f.t, f.now.check(f.t.Context(), r.follower, f.now.source), "%s, before a write", r.name)
}

func (f *promotions) wantExpired(r *promotionReader) {
	f.t.Helper()
	assert.That(f.t, !r.ahead || r.expired > 0, "%s: the cursor did not expire", r.name)
	assert.That(f.t, r.ahead || r.expired == 0 || !f.known(), "%s: %d cursors expired", r.name, r.expired)
}

// A writer on a new timeline keeps its transaction open. No other writer waits for it, and readers
// record the timeline.
func TestFollower_WritersDoNotWaitForEachOtherAfterAPromotion(t *testing.T) {
	t.Parallel()
	h := newSetting(t)
	standby := ephemeral.StartStandby(t, h.primary)
	standby.CatchUp(h.primary)
	h.primary.Stop()
	standby.Promote()
	now := settingOf(t, standby.Server, standby.URL)
	open := begin(t, now, pgx.ReadCommitted)
	exec(t, open, "UPDATE subscriptions SET order_id = 8 WHERE store_id = 1")
	exec(t, now.writes, "UPDATE subscriptions SET order_id = 9 WHERE store_id = 2")
	for range 2 { // two instances may mark one timeline
		assert.NoError(t, sourceOf(t, standby.URL).MarkTimeline(t.Context()))
	}
	commit(t, open)
	for store := range int64(2) {
		wantComplete(t, now, newFollower(store+1, 1))
	}
}

// A transaction gives up waiting for the disk after it has changed a subscription.
func TestFollower_SeesNothingThatACrashLoses(t *testing.T) {
	slow(t)
	h, f := newSetting(t, "fsync=on", "full_page_writes=on", "wal_writer_delay=10s"), newFollower(1, 1)
	for n := range 5 {
		readAll(t, f, h.source)
		tx := begin(t, h, pgx.ReadCommitted)
		exec(t, tx, fmt.Sprintf("UPDATE subscriptions SET price_amount = %d WHERE store_id = 1", 424242+n))
		exec(t, tx, "SET LOCAL synchronous_commit = off")
		commit(t, tx)
		readAll(t, f, h.source)
		h.primary.Kill()
		h.restart()
		wantComplete(t, h, f)
	}
	assert.That(t, f.expired == 0, "%d cursors expired", f.expired)
}

// Transactions whose commit is not on the disk are lost in a crash, and others get their
// numbers. No follower has seen them.
func TestFollower_MissesNothingAfterACrash(t *testing.T) {
	slow(t)
	h := newSetting(t, "fsync=on", "full_page_writes=on", "synchronous_commit=off", "wal_writer_delay=10s")
	followers := []*follower{newFollower(1, 1), newFollower(1, 2), newFollower(2, 3)}
	for crash := range uint64(6) {
		crashWhileWriting(t, h, crash, followers)
		if crash%2 == 1 {
			crashAfterReading(t, h, crash, followers)
		}
	}
	for _, f := range followers {
		wantComplete(t, h, f)
		assert.That(t, f.expired == 0, "%d cursors expired", f.expired)
	}
}

// crashWhileWriting lets writers write and followers read until the server crashes.
func crashWhileWriting(t *testing.T, h *setting, seed uint64, followers []*follower) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for i := range uint64(writers) {
		w := &writer{random: rand.New(rand.NewPCG(seed, i)), pool: h.writes, longest: 10 * time.Millisecond}
		all.Go(func() {
			for ctx.Err() == nil {
				_ = w.transaction(context.WithoutCancel(ctx)) // fails when the server crashes
			}
		})
	}
	for _, f := range followers {
		all.Go(func() {
			err := f.follow(ctx, func(*rand.Rand) subscriptions.Source { return h.source })
			assert.Succeeds(t, err, "follow")
		})
	}
	time.Sleep(200 * time.Millisecond)
	h.primary.Kill()
	cancel()
	all.Wait()
	h.restart()
}

// restart starts the primary, and replaces the pools, whose connections are lost.
func (h *setting) restart() {
	h.t.Helper()
	h.primary.Restart()
	h.writes, h.source = writesTo(h.t, h.primary.URL), sourceOf(h.t, h.primary.URL)
}

// crashAfterReading changes subscriptions one after another, lets followers read each
// change, and crashes the server at once. Then it changes another subscription.
func crashAfterReading(t *testing.T, h *setting, seed uint64, followers []*follower) {
	t.Helper()
	change := func(id int) { t.Helper(); exec(t, h.writes, insertOne, id, seed) }
	for i := range 10 {
		change(100 + i)
		assert.NoError(t, h.settle(t.Context()))
		for _, f := range followers {
			readAll(t, f, h.source)
		}
	}
	h.primary.Kill()
	h.restart()
	for i := range 20 {
		change(200 + i)
	}
}

// A database that was restored from a dump has no changes until `commerce migrate up` has
// stamped its subscriptions. All cursors expire then.
func TestFollower_StartsFromTheBeginningAfterARestore(t *testing.T) {
	t.Parallel()
	for name, into := range map[string]func(t *testing.T, h *setting, dump []byte) *setting{
		"another database":  restoreElsewhere,
		"the same database": restoreInPlace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &promotions{t: t, random: rand.New(rand.NewPCG(1, 1)), before: newSetting(t)}
			f.write(f.before)
			f.read("before the dump", f.before.source, true)
			dump := postgresTool(t, nil, "pg_dump", "--format=custom", "--dbname="+f.before.primary.URL)
			f.write(f.before)
			f.read("after the dump", f.before.source, true)
			f.now = into(t, f.before, dump)
			for _, cursor := range []subscriptions.Cursor{{}, f.readers[0].cursor, f.readers[1].cursor} {
				_, err := f.now.source.Changes(t.Context(), 1, subscriptions.ChangesQuery{After: cursor, Limit: 1})
				assert.That(t, isUnavailable(err), "before migrate up: %v, want unavailable", err)
			}
			assert.NoError(t, ephemeral.Migrate(t.Context(), f.now.writes.Config().ConnString()))
			for _, writes := range []bool{false, true} {
				if writes {
					f.write(f.now)
				}
				for _, reader := range f.readers {
					wantComplete(t, f.now, reader.follower)
					f.wantExpired(reader)
				}
			}
		})
	}
}

func restoreElsewhere(t *testing.T, h *setting, dump []byte) *setting {
	t.Helper()
	exec(t, h.writes, "CREATE DATABASE elsewhere TEMPLATE template0")
	other := settingOf(t, h.primary, strings.Replace(h.primary.URL, "/postgres?", "/elsewhere?", 1))
	postgresTool(t, dump, "pg_restore", "--exit-on-error", "--dbname="+other.writes.Config().ConnString())
	return other
}

func restoreInPlace(t *testing.T, h *setting, dump []byte) *setting {
	t.Helper()
	postgresTool(t, dump, "pg_restore", "--clean", "--if-exists", "--exit-on-error", "--dbname="+h.primary.URL)
	return h
}

// postgresTool runs a client program of Postgres. It returns what the program writes.
func postgresTool(t *testing.T, in []byte, name string, arguments ...string) []byte {
	t.Helper()
	cmd := osexec.CommandContext(t.Context(), name, arguments...)
	var complaints bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &complaints
	out, err := cmd.Output()
	assert.Require(t, err == nil, "%s: %v\n%s", name, err, complaints.Bytes())
	return out
}
