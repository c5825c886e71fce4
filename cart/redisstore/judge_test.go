package redisstore

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore/layout"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// hook changes what commands and pipelines of a client do.
type hook struct {
	process  func(ctx context.Context, cmd redis.Cmder, next func() error) error
	pipeline func(cmds []redis.Cmder, next func() error) error
}

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.process == nil {
			return next(ctx, cmd)
		}
		return h.process(ctx, cmd, func() error { return next(ctx, cmd) })
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if h.pipeline == nil {
			return next(ctx, cmds)
		}
		return h.pipeline(cmds, func() error { return next(ctx, cmds) })
	}
}

func hooked(t *testing.T, url string, h hook) *Store {
	t.Helper()
	client := assert.Must(connect.Redis(url, ephemeral.PatientRedis))(t)
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(h)
	return New(Config{Client: client, TTL: TTLs{Guest: time.Hour, Customer: time.Hour}})
}

var judgedRefs atomic.Int64

func newRef() Ref { return CustomerRef(time.Now().UnixNano()%1e9, fmt.Sprint(judgedRefs.Add(1))) }

func makes(s *Store, ctx context.Context, ref Ref, on Conditions) (Outcome, error) {
	return s.Change(ctx, ref, on, Attempt{CartID: "ID", Limits: carttest.Limits}, Change{Rule: addsOne("1")})
}

func two(ref Ref, first, second context.Context) (*member, *member) {
	r := cart.Request{Change: Change{Rule: addsOne("1")}, NewID: "ID", TTL: time.Hour, Limits: carttest.Limits}
	return &member{ctx: first, Request: r, done: make(chan struct{})}, &member{ctx: second, Request: r, done: make(chan struct{})}
}

// A key of more than a day ago is used again while it is the oldest of too many: its retry is recognized.
func TestKeys_OfLongAgoAreStoredAgain(t *testing.T) {
	t.Parallel()
	s, ref := hooked(t, ephemeral.Redis(t), hook{}), newRef()
	assert.Must(makes(s, t.Context(), ref, Conditions{}))(t)
	lay := func(key string, age time.Duration, fingerprint string) {
		s.Client.HSet(t.Context(), ref.KeysKey(), key, fmt.Sprintf("%d %s", time.Now().Add(-age).UnixMilli(), fingerprint))
	}
	for i := range cart.KeysKept - 1 {
		lay(fmt.Sprint("k", i), time.Hour, "f")
	}
	lay("K", 25*time.Hour, "F")
	for _, want := range []cart.Status{cart.Applied, cart.Replayed} {
		o := assert.Must(makes(s, t.Context(), ref, Conditions{Key: "K", Fingerprint: "F"}))(t)
		assert.That(t, o.Status == want && o.Count() == 2, "%s, the cart has %d", o.Status, o.Count())
	}
}

// The keys of lists without effect on a cart that is not used stay within their number, too.
func TestKeys_OfAnUnusedCartAreBounded(t *testing.T) {
	t.Parallel()
	s, ref := hooked(t, ephemeral.Redis(t), hook{}), newRef()
	s.Client.HSet(t.Context(), ref.CartKey(), "l", layout.Number, "n", anyMark())
	nothing := func(c *cart.Cell, _ cart.Limits, _ time.Time) cart.Effect { return cart.Effect{Cart: c.Cart} }
	for i := range cart.KeysKept + 20 {
		on := Conditions{Key: fmt.Sprint("k", i), Fingerprint: "f"}
		assert.Must(s.Change(t.Context(), ref, on, Attempt{CartID: "ID", Limits: carttest.Limits}, Change{Rule: nothing, List: true}))(t)
	}
	n := s.Client.HLen(t.Context(), ref.KeysKey()).Val()
	assert.That(t, n == cart.KeysKept, "%d keys are stored", n)
}

// A list whose reply is lost, on a cart that is not used, is told from its key, and the cart stays unused.
func TestKeys_OfAnUnusedCartTellALostReply(t *testing.T) {
	t.Parallel()
	var copies atomic.Int64
	s, ref := hooked(t, ephemeral.Redis(t), hook{process: func(_ context.Context, cmd redis.Cmder, next func() error) error {
		err := next()
		if cmd.FullName() == "commit" && err == nil && copies.Add(1) == 1 {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return err
	}}), newRef()
	nothing := func(c *cart.Cell, _ cart.Limits, _ time.Time) cart.Effect { return cart.Effect{Cart: c.Cart} }
	on := Conditions{Key: "k", Fingerprint: "f"}
	o, err := s.Change(t.Context(), ref, on, Attempt{CartID: "ID", Limits: carttest.Limits}, Change{Rule: nothing, List: true})
	assert.That(t, err == nil && o.Status == cart.Replayed && copies.Load() > 0, "%s, %v, %d copies", o.Status, err, copies.Load())
	held := s.Client.HGetAll(t.Context(), ref.CartKey()).Val()
	assert.That(t, len(held) == 0, "the cart has %v", held)
}

// A fence that has lost marks tells nothing of them, whichever marks have come since.
func TestJudge_CountsOnceAfterManyOthersAndAScript(t *testing.T) {
	t.Parallel()
	url := ephemeral.Redis(t)
	other := hooked(t, url, hook{})
	for range 8 {
		ref := newRef()
		var lost atomic.Bool
		lost.Store(true)
		assert.Must(makes(other, t.Context(), ref, Conditions{}))(t)
		mine := hooked(t, url, hook{process: func(_ context.Context, cmd redis.Cmder, next func() error) error {
			err := next()
			if cmd.FullName() != "commit" || err != nil || !lost.CompareAndSwap(true, false) {
				return err
			}
			_, _ = other.Announce(t.Context(), ref, "publish", time.Minute)
			for range 9 {
				assert.Must(makes(other, t.Context(), ref, Conditions{}))(t)
			}
			cmd.SetErr(io.EOF)
			return io.EOF
		}})
		mine.patience = time.Minute // no read tells it before the others have come
		_, err := makes(mine, t.Context(), ref, Conditions{})
		held := assert.Must(other.Load(t.Context(), ref))(t)
		assert.That(t, held.Count() == 11, "the cart has %d, the change of which the reply was lost: %v", held.Count(), err)
	}
}

// What becomes of a commit does not depend on the clock of another server than the cart's.
func TestJudge_KnowsWithoutTheClockOfAnotherNode(t *testing.T) {
	t.Parallel()
	cluster := ephemeral.StartCluster(t)
	s, ref := hooked(t, cluster.URL, hook{}), newRef()
	ephemeral.Until(t, func() error { _, err := makes(s, t.Context(), ref, Conditions{}); return err })
	right := assert.Must(s.masterOf(t.Context(), ref.CartKey()))(t)
	wrong := right
	for i := 0; wrong.master == right.master; i++ {
		wrong = assert.Must(s.masterOf(t.Context(), CustomerRef(6, fmt.Sprint(i)).CartKey()))(t)
	}
	for range 6 {
		held := assert.Must(s.read(t.Context(), right, ref, nil))(t)
		wrong.mu.Lock()
		wrong.clock = redisClock{ahead: right.clock.ahead + 2000, known: true}
		wrong.mu.Unlock()
		now := right.client.Time(t.Context()).Val().UnixMilli()
		c := &commit{keys: []string{ref.CartKey()}, time: now, until: now + 5000, fence: held.Fence, mark: newFenceMark(s.random, now)}
		c.write("HSET", ref.CartKey(), "n", c.nextFence())
		v, err := (&group{Store: s, ref: ref}).judge(t.Context(), wrong, c)
		late, _, _ := s.send(t.Context(), right, c, 0, 0)
		assert.That(t, (v == nil || !v.made) && (err != nil || late.word == "changed"), "judged %+v, %v; then a late copy: %v", v, err, late)
	}
}

// A caller who leaves while the cart is read for several is not among those whose change is then made.
func TestGroup_LeavesOutWhoHasLeftDuringTheRead(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	s, ref := hooked(t, ephemeral.Redis(t), hook{pipeline: func(_ []redis.Cmder, next func() error) error {
		if slow.Load() {
			time.Sleep(150 * time.Millisecond)
		}
		return next()
	}}), newRef()
	s.remembers = false // the change needs a read
	assert.Must(makes(s, t.Context(), ref, Conditions{}))(t)
	slow.Store(true)
	gone, leave := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, leave)
	m1, m2 := two(ref, gone, t.Context())
	s.decideAll(ref, []*member{m1, m2}, 0)
	_, err := m1.result()
	assert.That(t, err != nil && m1.maybeMade.Load() == nil, "who has left: %v", err)
	o := assert.Must(m2.result())(t)
	assert.That(t, o.Count() == 2, "the cart has %d", o.Count())
}

// When the time of one caller is over while the reply is waited for, the others still learn what became of their change.
func TestGroup_LearnsTheOutcomeAfterTheFirstDeadline(t *testing.T) {
	t.Parallel()
	var lost atomic.Bool
	s, ref := hooked(t, ephemeral.Redis(t), hook{process: func(ctx context.Context, cmd redis.Cmder, next func() error) error {
		err := next()
		if cmd.FullName() == "commit" && lost.CompareAndSwap(true, false) {
			<-ctx.Done()
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
		return err
	}}), newRef()
	s.patience = time.Minute // no read tells it meanwhile
	assert.Must(makes(s, t.Context(), ref, Conditions{}))(t)
	lost.Store(true)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	long, cancel2 := context.WithTimeout(t.Context(), ephemeral.Patience(5*time.Second))
	defer cancel2()
	m1, m2 := two(ref, short, long)
	s.decideAll(ref, []*member{m1, m2}, 0)
	o := assert.Must(m2.result())(t)
	assert.That(t, o.Count() == 3, "the cart has %d", o.Count())
}
