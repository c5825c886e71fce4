package redisstore_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// commits sends commits of one cart, and looks at what Redis holds.
type commits struct {
	*redisstore.Store
	t      *testing.T
	kind   string // of Redis
	url    string
	client redis.UniversalClient // for the test itself, with all rights
	ref    redisstore.Ref
	failed *atomic.Int64 // announcements
}

func newCommits(t *testing.T, url string) commits {
	t.Helper()
	c := commits{t: t, url: url, client: dial(t, url), ref: redisstore.CustomerRef(newStoreID(), "c"), failed: new(atomic.Int64)}
	return c.from(asService(t, url))
}

// from returns another instance of the service, for the same cart.
func (c commits) from(url string) commits {
	c.t.Helper()
	c.Store = redisstore.New(redisstore.Config{Client: dial(c.t, url), TTL: usualTTLs, PublishFailed: func() { c.failed.Add(1) }})
	return c
}

func onEachRedis(t *testing.T, check func(*testing.T, commits)) {
	t.Helper()
	for name, url := range map[string]string{
		"single": ephemeral.Redis(t), "cluster": ephemeral.Cluster(t), "miniredis": "redis://" + miniredis.RunT(t).Addr(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCommits(t, url)
			c.kind = name
			check(t, c)
		})
	}
}

// on returns a commit to the cart with a fence, which may run whenever it arrives.
func (c commits) on(fence string) *redisstore.Commit {
	return redisstore.NewCommit(c.ref, fence, 0, 1<<52)
}

// setting returns a commit that sets a member of the cart, and the fence.
func (c commits) setting(fence, member, value string) *redisstore.Commit {
	commit := c.on(fence)
	commit.Write("HSET", c.ref.CartKey(), "n", commit.NextFence(), member, value)
	return commit
}

// holds is a cart and its keys as Redis holds them.
type holds struct {
	Cart, Keys map[string]string
	TTL        bool // the cart has one
}

func (c commits) holds() holds {
	c.t.Helper()
	ctx := c.t.Context()
	read := func(key string) map[string]string { return assert.Must(c.client.HGetAll(ctx, key).Result())(c.t) }
	return holds{read(c.ref.CartKey()), read(c.ref.KeysKey()), c.client.PTTL(ctx, c.ref.CartKey()).Val() > 0}
}

func (c commits) send(commit *redisstore.Commit) redisstore.Committed {
	c.t.Helper()
	return c.sendWith(commit, 0)
}

func (c commits) sendWith(commit *redisstore.Commit, turn time.Duration) redisstore.Committed {
	c.t.Helper()
	return assert.Must(c.Commit(c.t.Context(), c.ref, commit, turn))(c.t)
}

// applies sends a commit that must be applied.
func (c commits) applies(commit *redisstore.Commit) {
	c.t.Helper()
	reply := c.send(commit)
	assert.Require(c.t, reply.Word == "applied", "%+v", reply)
}

// filled lays a cart, and returns its fence.
func (c commits) filled() string {
	c.t.Helper()
	first := c.setting("", "1", "1 1 100")
	c.applies(first)
	return first.NextFence()
}

func membersOf(flat []string) map[string]string {
	held := map[string]string{}
	for i := 0; i+1 < len(flat); i += 2 {
		held[flat[i]] = flat[i+1]
	}
	return held
}

func TestCommit_OutsideItsWindowIsLateAndWritesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, c commits) {
		fence := c.filled()
		before, now := c.holds(), c.client.Time(t.Context()).Val().UnixMilli()
		for name, window := range map[string][2]int64{
			"later": {now + 3_600_000, now + 7_200_000}, "earlier": {0, now - 1}, "long ago": {0, 0},
		} {
			for _, expects := range []string{fence, "other1"} { // neither a change nor a turn
				commit := redisstore.NewCommit(c.ref, expects, window[0], window[1])
				commit.Write("HSET", c.ref.CartKey(), "n", commit.NextFence())
				reply := c.sendWith(commit, time.Minute)
				assert.That(t, reply.Word == "late" && reply.Now >= now, "%s: %+v", name, reply)
			}
		}
		assert.Equal(t, c.holds(), before, "the cart")
	})
}

// Both ends of the window belong to it.
func TestCommit_RunsInTheFirstAndTheLastMsOfItsWindow(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	c := newCommits(t, "redis://"+server.Addr())
	const first, last = 1_800_000_000_123, 1_800_000_000_126
	for ms, want := range map[int64]string{first - 1: "late", first: "applied", last: "applied", last + 1: "late"} {
		server.FlushAll()
		server.SetTime(time.UnixMilli(ms).Add(999 * time.Microsecond))
		commit := redisstore.NewCommit(c.ref, "", first, last)
		commit.Write("HSET", c.ref.CartKey(), "n", commit.NextFence())
		reply := c.send(commit)
		assert.That(t, reply.Word == want && reply.Now == ms, "in ms %d: %+v", ms-first, reply)
		assert.Equal(t, server.Exists(c.ref.CartKey()), want == "applied", "in ms %d: the cart exists", ms-first)
	}
}

// A real clock: whatever the reply says is so by the time that it says.
func TestCommit_IsLateByTheClockOfRedis(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, c commits) {
		c.filled()
		words := map[string]int{}
		for i := range int64(200) {
			last := c.client.Time(t.Context()).Val().UnixMilli() + i%3 - 1
			reply := c.send(redisstore.NewCommit(c.ref, "other1", 0, last))
			words[reply.Word]++
			assert.That(t, (reply.Word == "late") == (reply.Now > last), "until %d: %+v", last, reply)
		}
		assert.That(t, words["late"] > 0 && len(words) <= 2, "%v", words)
	})
}

func TestCommit_OnAnotherCartIsChangedAndWritesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, c commits) {
		fence, keys := c.filled(), c.ref.KeysKey()
		assert.NoError(t, c.client.HSet(t.Context(), keys, "k", "v").Err())
		before := c.holds()
		for name, test := range map[string]struct {
			fence  string
			checks [][2]string // member and expected value
			found  []any
		}{
			"a fence that differs":                {fence: "other1", found: []any{}},
			"no cart expected":                    {fence: "", found: []any{}},
			"a check that differs":                {fence, [][2]string{{"k", "w"}}, []any{"v"}},
			"a check that is longer":              {fence, [][2]string{{"k", "v "}}, []any{"v"}},
			"a check that expects none finds one": {fence, [][2]string{{"k", ""}}, []any{"v"}},
			"a check that expects one finds none": {fence, [][2]string{{"l", "v"}}, []any{nil}},
			"one of several checks":               {fence, [][2]string{{"k", "v"}, {"l", "-"}, {"m", ""}}, []any{"v", nil, nil}},
			"checks that hold, but not the fence": {"other1", [][2]string{{"l", ""}, {"k", "v"}}, []any{nil, "v"}},
		} {
			commit := c.setting(test.fence, "1", "2 1 100")
			for _, check := range test.checks {
				commit.Check(keys, check[0], check[1])
			}
			commit.Write("HDEL", keys, "k")
			reply := c.send(commit)
			assert.That(t, reply.Word == "changed" && reply.Wait == 0, "%s: %+v", name, reply)
			assert.Equal(t, reply.Found, test.found, "%s: what the checks found", name)
			assert.Equal(t, membersOf(reply.Cart), before.Cart, "%s: the cart in the reply", name)
			assert.Equal(t, c.holds(), before, "%s: what Redis holds", name)
		}
	})
}

// An absent cart has an absent fence only, and a cart without a fence, as no release writes one, none at all.
func TestCommit_OnlyAnAbsentFenceIsTheExpectedNone(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, c commits) {
		reply := c.sendWith(c.setting("other1", "1", "1 1 100"), time.Minute)
		assert.That(t, reply.Word == "changed" && len(reply.Cart) == 0, "of a cart that is gone: %+v", reply)
		assert.Equal(t, c.holds(), holds{map[string]string{}, map[string]string{}, false}, "after that")

		c.applies(c.setting("", "1", "1 1 100"))
		assert.NoError(t, c.client.HSet(t.Context(), c.ref.CartKey(), "n", "").Err())
		before := c.holds()
		for _, fence := range []string{"", "other1"} {
			assert.Equal(t, c.send(c.setting(fence, "1", "2 1 100")).Word, "changed", "with an empty fence there, expecting %q", fence)
		}
		assert.Equal(t, c.holds(), before, "with an empty fence there")
	})
}

// Each kind of write that the service sends, together.
func TestCommit_MakesAllOfItsWrites(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, c commits) {
		fence, key, keys := c.filled(), c.ref.CartKey(), c.ref.KeysKey()
		channel, command, heard := key+":live", "SPUBLISH", c.client.SSubscribe
		if c.kind == "miniredis" {
			command, heard = "PUBLISH", c.client.Subscribe
		}
		listener := heard(t.Context(), channel)
		defer listener.Close()
		assert.Must(listener.Receive(t.Context()))(t) // subscribed
		assert.NoError(t, c.client.HSet(t.Context(), keys, "old", "1", "k", "v").Err())

		commit := c.on(fence)
		commit.Check(keys, "k", "v")
		commit.Check(keys, "new", "")
		commit.Write("HDEL", key, "1", "absent")
		commit.Write("HSET", key, "n", commit.NextFence(), "2", "5 2 100", "r1", "\x00\r\n\xff")
		commit.Write("PEXPIRE", key, int64(3_600_000))
		commit.Write("HSET", keys, "new", "w")
		commit.Write("HDEL", keys, "old")
		commit.Write("PEXPIRE", keys, cart.KeyLife.Milliseconds())
		commit.Announce(command, channel, "ID.2.M")
		c.applies(commit)
		assert.Equal(t, c.holds(), holds{
			map[string]string{"n": commit.NextFence(), "2": "5 2 100", "r1": "\x00\r\n\xff"},
			map[string]string{"k": "v", "new": "w"},
			true,
		}, "what Redis holds")
		left := c.client.PTTL(t.Context(), key).Val()
		assert.That(t, left > 50*time.Minute && left <= time.Hour, "the cart has %v left", left)
		heardOf := assert.Must(listener.ReceiveMessage(briefly(t)))(t)
		assert.Equal(t, heardOf.Payload, "ID.2.M", "the announcement")
		assert.Equal(t, c.failed.Load(), int64(0), "announcements that failed")
	})
}

func TestCommit_TakesNoWrites(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, c commits) {
		before := c.filled()
		held := c.holds()
		c.applies(c.on(before))
		assert.Equal(t, c.holds(), held, "the cart")
	})
}

// A client, a proxy or a batch may send a copy again, whenever it likes.
func TestCommit_ASecondCopyIsChangedAndWritesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, c commits) {
		fence := ""
		for i := range 6 { // more than a fence has marks
			commit := c.setting(fence, "1", fmt.Sprintf("%d 1 100", i+1))
			c.applies(commit)
			held := c.holds()
			for range 2 {
				reply := c.send(commit)
				assert.That(t, reply.Word == "changed", "copy of commit %d: %+v", i, reply)
				assert.Equal(t, membersOf(reply.Cart), held.Cart, "the cart in the reply")
			}
			assert.Equal(t, c.holds(), held, "after copies of commit %d", i)
			fence = commit.NextFence()
		}
	})
}

// Lua's unpack passes less than 8,000 values, so Go splits a command.
func TestCommit_OfMoreMembersThanLuaCanUnpack(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, c commits) {
		const n = 10_000
		key, names, pairs := c.ref.CartKey(), make([]any, n), make([]any, 0, 2*n)
		for i := range names {
			names[i] = fmt.Sprint("e", i)
			pairs = append(pairs, names[i], fmt.Sprint(i))
		}
		first := c.on("")
		first.Write("HSET", key, append(pairs, "n", first.NextFence())...)
		c.applies(first)
		held := c.holds().Cart
		assert.That(t, len(held) == n+1 && held["e0"] == "0" && held["e9999"] == "9999", "%d members", len(held))
		reply := c.send(first)
		assert.That(t, reply.Word == "changed" && maps.Equal(membersOf(reply.Cart), held), "a copy finds %d texts", len(reply.Cart))

		second := c.on(first.NextFence())
		second.Write("HDEL", key, names...)
		second.Write("HSET", key, "n", second.NextFence())
		c.applies(second)
		assert.Equal(t, c.holds().Cart, map[string]string{"n": second.NextFence()}, "the cart")
	})
}

// Who fails twice gets a turn, in which others wait. It ends with the commit that is then made.
func TestCommit_InAnothersTurnWaits(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, mine commits) {
		fence, others := mine.filled(), mine.from(mine.url)
		for _, name := range []string{"would be made", "fails too"} {
			var during holds
			var reply redisstore.Committed
			for again := true; again; { // on a busy machine, the turn may be over before the other commit
				taken := mine.sendWith(mine.setting("other1", "1", "9 1 100"), time.Second)
				assert.That(t, taken.Word == "changed" && taken.Wait == 0, "who fails: %+v", taken)
				during = mine.holds()
				assert.That(t, strings.Contains(during.Cart["t"], " "), "the turn is %q", during.Cart["t"])
				commit := mine.setting(map[bool]string{true: fence, false: "other1"}[name == "would be made"], "1", "8 1 100")
				if reply = others.sendWith(commit, time.Minute); reply.Word == "applied" {
					fence = commit.NextFence()
				}
				again = reply.Now >= taken.Now+time.Second.Milliseconds()
			}
			assert.That(t, reply.Word == "changed" && reply.Wait > 0 && reply.Wait <= time.Second && len(reply.Cart) == 0, "%s: %+v", name, reply)
			assert.Equal(t, others.holds(), during, "%s: what Redis holds", name)
		}

		own := mine.setting(fence, "1", "2 1 100")
		mine.applies(own)
		assert.Equal(t, mine.holds().Cart, map[string]string{"n": own.NextFence(), "1": "2 1 100"}, "after the turn")
		others.applies(others.setting(own.NextFence(), "1", "3 1 100"))
	})
}

// A turn holds up nobody once it is over, nor one that was written by a clock that is ahead.
func TestCommit_ATurnThatIsOverHoldsUpNobody(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, c commits) {
		fence := c.filled()
		now := c.client.Time(t.Context()).Val()
		is := func(till time.Time) {
			assert.NoError(t, c.client.HSet(t.Context(), c.ref.CartKey(), "t", fmt.Sprintf("%d another", till.UnixMilli())).Err())
		}
		for _, till := range []time.Time{now, now.Add(time.Hour)} {
			is(till)
			reply := c.sendWith(c.on("other1"), time.Second)
			assert.That(t, reply.Word == "changed" && reply.Wait == 0, "who fails: %+v", reply)
			assert.That(t, !strings.HasSuffix(c.holds().Cart["t"], "another"), "who fails takes the turn %q", c.holds().Cart["t"])
		}
		is(now)
		commit := c.setting(fence, "1", "2 1 100")
		c.applies(commit)
		assert.Equal(t, c.holds().Cart, map[string]string{"n": commit.NextFence(), "1": "2 1 100"}, "the cart")
	})
}

// begun begins a cart by a change, and returns its fence.
func (c commits) begun() string {
	c.t.Helper()
	o, err := c.change(redisstore.Conditions{})
	assert.Require(c.t, err == nil && o.Status == cart.Applied, "%+v, %v", o, err)
	return c.holds().Cart["n"]
}

// change adds 1 to line 1.
func (c commits) change(on redisstore.Conditions) (redisstore.Outcome, error) {
	return c.Change(c.t.Context(), c.ref, on, redisstore.Attempt{CartID: "ID", Limits: carttest.Limits}, addOf("1"))
}

func (c commits) set(name, value string) {
	c.t.Helper()
	assert.NoError(c.t, c.client.ConfigSet(c.t.Context(), name, value).Err())
}

// cannotSave makes the snapshots of Redis fail.
func (c commits) cannotSave() {
	c.t.Helper()
	c.set("save", "3600 1")
	dir := c.client.ConfigGet(c.t.Context(), "dir").Val()["dir"]
	assert.NoError(c.t, os.Mkdir(filepath.Join(dir, "dump.rdb"), 0o700)) // where the file would be
	ephemeral.Eventually(c.t, "a snapshot that fails", func() bool {
		c.client.BgSave(c.t.Context())
		return strings.Contains(c.client.Info(c.t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	})
}

func (c commits) demote() {
	c.t.Helper()
	assert.NoError(c.t, c.client.Do(c.t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
}

// Redis refuses all of a commit before its first write, and says so. Also a commit that finds another cart is refused by
// what is no longer a master, since its cart may be an old one.
func TestCommit_ThatRedisRefusesChangesNothing(t *testing.T) {
	t.Parallel()
	for reason, begin := range map[string]func(commits){
		"OOM":        func(c commits) { c.set("maxmemory", "1") },
		"NOREPLICAS": func(c commits) { c.set("min-replicas-to-write", "1") },
		"MISCONF":    commits.cannotSave,
		"READONLY":   commits.demote,
		"WRONGTYPE":  func(c commits) { c.client.Set(c.t.Context(), c.ref.KeysKey(), "text", 0) },
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			c := newCommits(t, ephemeral.StartRedis(t).URL)
			fence := c.begun()
			begin(c)
			held := func() map[string]string { return c.client.HGetAll(t.Context(), c.ref.CartKey()).Val() }
			before := held()
			for _, expects := range []string{fence, "other1"} {
				commit := c.setting(expects, "1", "2 1 100")
				commit.Check(c.ref.KeysKey(), "k", "")
				commit.Write("HSET", c.ref.KeysKey(), "k", "v")
				reply, err := c.Commit(t.Context(), c.ref, commit, 0)
				if reason == "OOM" && expects != fence { // this needs no memory
					assert.That(t, err == nil && reply.Word == "changed", "%+v, %v", reply, err)
					continue
				}
				assert.That(t, err != nil && strings.Contains(err.Error(), reason+" "), "expecting %s: %+v, %v", expects, reply, err)
				assert.That(t, !redisstore.MayHaveRun(err), "expecting %s: %v may have run", expects, err)
			}
			_, err := c.change(map[bool]redisstore.Conditions{true: {Key: "k", Fingerprint: "f"}}[reason == "WRONGTYPE"])
			assert.That(t, isProblem(err, problem.Unavailable), "a change: %v", err)
			assert.Equal(t, held(), before, "the cart")
			assert.That(t, !c.client.HExists(t.Context(), c.ref.KeysKey(), "k").Val(), "the key was written")
		})
	}
}

// Redis looks at its memory before the first write only, and to remove needs none.
func TestCommit_ThatBeginsByRemovingIsMadeByAFullRedis(t *testing.T) {
	t.Parallel()
	c := newCommits(t, ephemeral.StartRedis(t).URL)
	fence := c.filled()
	c.set("maxmemory", "1")
	commit := c.on(fence)
	commit.Write("HDEL", c.ref.CartKey(), "1")
	commit.Write("HSET", c.ref.CartKey(), "n", commit.NextFence(), "2", "1 2 100")
	c.applies(commit)
	assert.Equal(t, c.holds().Cart, map[string]string{"n": commit.NextFence(), "2": "1 2 100"}, "the cart")
}

// without returns another instance, whose user lacks some rights.
func (c commits) without(rights string) commits {
	c.t.Helper()
	users := string(assert.Must(os.ReadFile("../../deploy/redis/users.conf"))(c.t))
	assert.Require(c.t, strings.Contains(users, rights), "users.conf does not have %s", rights)
	name := "without" + strings.NewReplacer(" ", "", "+", "", "&", "", "*", "", ":", "").Replace(rights)
	users = strings.ReplaceAll(strings.ReplaceAll(users, rights+" ", " "), "user commerce", "user "+name)
	return c.from(ephemeral.AsUser(c.t, c.url, users, name))
}

// Nothing tells before that the user lacks a right. Then what comes before is made, and the service says that it does not
// know. The fence is among what is made, so that no copy makes that again.
func TestCommit_OfAUserWithoutARightIsMadeInPart(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	for right, made := range map[string]int{" +hset": 0, " +pexpire": 1, " +hdel": 2} {
		c := newCommits(t, server.URL)
		fence, limited := c.filled(), c.without(right)
		commit := c.setting(fence, "1", "2 1 100")
		commit.Write("PEXPIRE", c.ref.CartKey(), int64(3_600_000))
		commit.Write("HDEL", c.ref.CartKey(), "1")
		want := c.holds()
		if made > 0 {
			want.Cart, want.TTL = map[string]string{"n": commit.NextFence(), "1": "2 1 100"}, made > 1
		}
		_, err := limited.Commit(t.Context(), c.ref, commit, 0)
		assert.That(t, err != nil && redisstore.MayHaveRun(err), "without %s: %v", right, err) // each release says it otherwise
		assert.Equal(t, c.holds(), want, "without %s: what Redis holds", right)
		if made > 0 {
			assert.Equal(t, c.send(commit).Word, "changed", "without %s: a copy", right)
		}
	}
}

// The change of a user without a right is never said to be made, or not to be made.
func TestChange_OfAUserWithoutARightIsUnknown(t *testing.T) {
	t.Parallel()
	c := newCommits(t, ephemeral.StartRedis(t).URL)
	limited := c.without(" +pexpire")
	_, err := limited.change(redisstore.Conditions{})
	assert.That(t, isProblem(err, problem.OutcomeUnknown), "without a key: %v", err)
	held := c.holds()
	assert.That(t, strings.HasPrefix(held.Cart["1"], "1 ") && !held.TTL, "the cart holds %v", held)
	_, err = limited.change(redisstore.Conditions{Key: "k", Fingerprint: "f"})
	assert.That(t, isProblem(err, problem.Unavailable), "with a key: %v", err)
}

// Listeners find a change without its announcement too, only later.
func TestCommit_IsMadeWithoutItsAnnouncement(t *testing.T) {
	t.Parallel()
	c := newCommits(t, ephemeral.StartRedis(t).URL)
	fence := c.filled()
	for i, right := range []string{" &cart:*", " +publish +spublish"} {
		for _, command := range []string{"PUBLISH", "SPUBLISH"} {
			commit := c.setting(fence, "1", fmt.Sprintf("%d 1 100", i+2))
			commit.Announce(command, c.ref.CartKey()+":live", "ID.2.M")
			before := c.failed.Load()
			c.without(right).applies(commit)
			assert.Equal(t, c.failed.Load(), before+1, "without %s: failures", right)
			fence = commit.NextFence()
			assert.Equal(t, c.holds().Cart, map[string]string{"n": fence, "1": fmt.Sprintf("%d 1 100", i+2)}, "the cart")
		}
	}
}

// A Redis that has restarted or was flushed does not have the script.
func TestCommit_InABatchOfARedisWithoutTheScriptIsMadeOnce(t *testing.T) {
	t.Parallel()
	r := newReader(t, ephemeral.StartRedis(t).URL)
	r.add(r.filled())
	for _, key := range []string{"", "k"} {
		assert.NoError(t, r.client.ScriptFlush(t.Context()).Err())
		r.sent.take()
		refs := newRefs(40)
		got := count(r.together(refs, func(int) (redisstore.Conditions, redisstore.Change) {
			return redisstore.Conditions{Key: key, Fingerprint: key}, addOf("1")
		}))
		assert.Equal(t, got, map[string]int{"applied": len(refs)}, "key %q: the changes", key)
		names, _, most := r.sent.take()
		assert.That(t, names["eval"] > 0 && most > 1, "%v, at most %d in a round trip", names, most)
		for _, ref := range refs {
			held := r.load(ref)
			assert.That(t, held.Version == 1 && held.Count() == 1, "the cart is %+v", held.Cart)
		}
	}
}

// While a slot moves, Redis cannot run a commit of two keys of which one is missing. Changes that were to be committed
// together with one that needs such a key do not fail with it.
func TestCommit_OfAGroupInAMovingSlotIsMadeForEachThatCanBe(t *testing.T) {
	ephemeral.Slow(t)
	t.Parallel()
	cluster := ephemeral.StartCluster(t)
	r := newReader(t, cluster.URL)
	from, to := cluster.Nodes[0].Admin(), cluster.Nodes[1].Admin()
	ref := r.on(from.Options().Addr, 1)[0]
	r.add(ref)
	slot := r.client.ClusterKeySlot(t.Context(), ref.CartKey()).Val()
	move := func(node, other *redis.Client, how string) {
		id := other.Do(t.Context(), "CLUSTER", "MYID").Val()
		assert.NoError(t, node.Do(t.Context(), "CLUSTER", "SETSLOT", slot, how, id).Err())
	}
	move(to, from, "IMPORTING")
	move(from, to, "MIGRATING")
	refs := make([]redisstore.Ref, 12)
	for i := range refs {
		refs[i] = ref
	}
	got := r.together(refs, func(i int) (redisstore.Conditions, redisstore.Change) {
		if i%4 == 0 { // its key is missing
			return redisstore.Conditions{Key: fmt.Sprint("k", i), Fingerprint: "f"}, addOf("1")
		}
		return redisstore.Conditions{}, addOf("1")
	})
	for i, result := range got {
		assert.Equal(t, result, map[bool]string{true: "not made", false: "applied"}[i%4 == 0], "change %d", i)
	}
	held := r.load(ref)
	assert.Equal(t, held.Count(), 1+9, "what the cart holds")
}

func briefly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(time.Second))
	t.Cleanup(cancel)
	return ctx
}
