package follower_test

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
	"commerce/subscriptions/feed"
	"commerce/subscriptions/recorded"
	"commerce/subscriptions/suite"
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
	suite.Slow(t)
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
				assert.Succeeds(t, reader.hear(t.Context(), f.now.Source), "%s, after a write", reader.name)
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

	before, now  *suite.Setting // the old primary and the latest one
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
	f := &promotions{t: t, failover: o, random: rand.New(rand.NewPCG(seed, 0)), before: suite.NewSetting(t)}
	f.first = ephemeral.StartStandby(t, f.before.Primary)
	if o.second {
		f.other = ephemeral.StartStandby(t, f.before.Primary)
		f.other.Follow(f.first.Server)
	}
	return f
}

// read adds a follower that has read all that there is.
func (f *promotions) read(name string, source suite.Source, ahead bool) {
	f.t.Helper()
	reader := &promotionReader{newFollower(1, f.random.Uint64()), name, ahead}
	readAll(f.t, reader.follower, source)
	f.readers = append(f.readers, reader)
}

// write changes subscriptions on a primary.
func (f *promotions) write(h *suite.Setting) {
	f.t.Helper()
	w := &writer{random: rand.New(rand.NewPCG(f.random.Uint64(), 0)), pool: h.Writes, longest: time.Millisecond}
	for range 20 {
		err := w.transaction(f.t.Context())
		assert.Require(f.t, err == nil || isExpected(err), "%v", err)
	}
	suite.Exec(f.t, h.Writes, suite.InsertOne, 1, f.random.Int64N(1e9))
	assert.NoError(f.t, h.Settle(f.t.Context()))
}

func (f *promotions) promote() {
	f.t.Helper()
	f.write(f.before)
	f.read("early", f.before.Source, false)
	f.first.CatchUp(f.before.Primary)
	f.read("early on the standby", suite.SourceOf(f.t, f.first.URL), false)
	if f.lacks {
		f.first.CutOff()
		f.write(f.before)
	}
	f.read("late", f.before.Source, f.lacks)
	if !f.lacks {
		f.first.CatchUp(f.before.Primary)
	}
	f.promoteOne(f.first)
	if !f.second {
		return
	}
	if f.between {
		f.write(f.now)
		f.read("between", f.now.Source, false)
	}
	f.other.CatchUp(f.now.Primary)
	f.read("between on the standby", suite.SourceOf(f.t, f.other.URL), false)
	if f.between && f.lacks {
		f.other.CutOff()
		f.write(f.now)
		f.read("late between", f.now.Source, true)
	}
	f.promoteOne(f.other)
}

// promoteOne makes a standby the latest primary. The one before goes on, but nobody reads it.
func (f *promotions) promoteOne(standby *ephemeral.Standby) {
	f.t.Helper()
	standby.Promote()
	if f.restart {
		suite.Exec(f.t, suite.WritesTo(f.t, standby.URL), suite.InsertOne, 2, f.random.Int64N(1e9))
		standby.Restart()
	}
	f.now = suite.SettingOf(f.t, standby.Server, standby.URL)
}

// wantEqual checks a follower that has not read the new primary yet.
func (f *promotions) wantEqual(r *promotionReader) {
	f.t.Helper()
	assert.NoError(f.t, f.now.Settle(f.t.Context()))
	assert.Succeeds(f.t, check(f.now, f.t.Context(), r.follower, f.now.Source), "%s, before a write", r.name)
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
	h := suite.NewSetting(t)
	standby := ephemeral.StartStandby(t, h.Primary)
	standby.CatchUp(h.Primary)
	h.Primary.Stop()
	standby.Promote()
	now := suite.SettingOf(t, standby.Server, standby.URL)
	open := begin(t, now, pgx.ReadCommitted)
	suite.Exec(t, open, "UPDATE subscriptions SET order_id = 8 WHERE store_id = 1")
	suite.Exec(t, now.Writes, "UPDATE subscriptions SET order_id = 9 WHERE store_id = 2")
	for range 2 { // two instances may mark one timeline
		assert.NoError(t, suite.SourceOf(t, standby.URL).MarkTimeline(t.Context()))
	}
	commit(t, open)
	for store := range int64(2) {
		wantComplete(t, now, newFollower(store+1, 1))
	}
}

// A transaction gives up waiting for the disk after it has changed a subscription.
func TestFollower_SeesNothingThatACrashLoses(t *testing.T) {
	suite.Slow(t)
	h, f := suite.NewSetting(t, "fsync=on", "full_page_writes=on", "wal_writer_delay=10s"), newFollower(1, 1)
	for n := range 5 {
		readAll(t, f, h.Source)
		tx := begin(t, h, pgx.ReadCommitted)
		suite.Exec(t, tx, fmt.Sprintf("UPDATE subscriptions SET price_amount = %d WHERE store_id = 1", 424242+n))
		suite.Exec(t, tx, "SET LOCAL synchronous_commit = off")
		commit(t, tx)
		readAll(t, f, h.Source)
		h.Primary.Kill()
		restart(h)
		wantComplete(t, h, f)
	}
	assert.That(t, f.expired == 0, "%d cursors expired", f.expired)
}

// Transactions whose commit is not on the disk are lost in a crash, and others get their
// numbers. No follower has seen them.
func TestFollower_MissesNothingAfterACrash(t *testing.T) {
	suite.Slow(t)
	h := suite.NewSetting(t, "fsync=on", "full_page_writes=on", "synchronous_commit=off", "wal_writer_delay=10s")
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
func crashWhileWriting(t *testing.T, h *suite.Setting, seed uint64, followers []*follower) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for i := range uint64(suite.Writers) {
		w := &writer{random: rand.New(rand.NewPCG(seed, i)), pool: h.Writes, longest: 10 * time.Millisecond}
		all.Go(func() {
			for ctx.Err() == nil {
				_ = w.transaction(context.WithoutCancel(ctx)) // fails when the server crashes
			}
		})
	}
	for _, f := range followers {
		all.Go(func() {
			err := f.follow(ctx, func(*rand.Rand) suite.Source { return h.Source })
			assert.Succeeds(t, err, "follow")
		})
	}
	time.Sleep(200 * time.Millisecond)
	h.Primary.Kill()
	cancel()
	all.Wait()
	restart(h)
}

// restart starts the primary, and replaces the pools, whose connections are lost.
func restart(h *suite.Setting) {
	h.T.Helper()
	h.Primary.Restart()
	h.Writes, h.Source = suite.WritesTo(h.T, h.Primary.URL), suite.SourceOf(h.T, h.Primary.URL)
}

// crashAfterReading changes subscriptions one after another, lets followers read each
// change, and crashes the server at once. Then it changes another subscription.
func crashAfterReading(t *testing.T, h *suite.Setting, seed uint64, followers []*follower) {
	t.Helper()
	change := func(id int) { t.Helper(); suite.Exec(t, h.Writes, suite.InsertOne, id, seed) }
	for i := range 10 {
		change(100 + i)
		assert.NoError(t, h.Settle(t.Context()))
		for _, f := range followers {
			readAll(t, f, h.Source)
		}
	}
	h.Primary.Kill()
	restart(h)
	for i := range 20 {
		change(200 + i)
	}
}

// A database that was restored from a dump has no changes until `commerce migrate up` has
// stamped its subscriptions. All cursors expire then.
func TestFollower_StartsFromTheBeginningAfterARestore(t *testing.T) {
	t.Parallel()
	for name, into := range map[string]func(t *testing.T, h *suite.Setting, dump []byte) *suite.Setting{
		"another database":  restoreElsewhere,
		"the same database": restoreInPlace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &promotions{t: t, random: rand.New(rand.NewPCG(1, 1)), before: suite.NewSetting(t)}
			f.write(f.before)
			f.read("before the dump", f.before.Source, true)
			dump := postgresTool(t, nil, "pg_dump", "--format=custom", "--dbname="+f.before.Primary.URL)
			f.write(f.before)
			f.read("after the dump", f.before.Source, true)
			f.now = into(t, f.before, dump)
			for _, cursor := range []recorded.Cursor{{}, f.readers[0].cursor, f.readers[1].cursor} {
				_, err := f.now.Source.Changes(t.Context(), 1, feed.Query{After: cursor, Limit: 1})
				assert.That(t, suite.IsUnavailable(err), "before migrate up: %v, want unavailable", err)
			}
			assert.NoError(t, ephemeral.Migrate(t.Context(), f.now.Writes.Config().ConnString()))
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

func restoreElsewhere(t *testing.T, h *suite.Setting, dump []byte) *suite.Setting {
	t.Helper()
	suite.Exec(t, h.Writes, "CREATE DATABASE elsewhere TEMPLATE template0")
	other := suite.SettingOf(t, h.Primary, strings.Replace(h.Primary.URL, "/postgres?", "/elsewhere?", 1))
	postgresTool(t, dump, "pg_restore", "--exit-on-error", "--dbname="+other.Writes.Config().ConnString())
	return other
}

func restoreInPlace(t *testing.T, h *suite.Setting, dump []byte) *suite.Setting {
	t.Helper()
	postgresTool(t, dump, "pg_restore", "--clean", "--if-exists", "--exit-on-error", "--dbname="+h.Primary.URL)
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
