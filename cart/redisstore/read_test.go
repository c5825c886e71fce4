package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/cart/share"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// reader is a store that reads, and the commands that it sends.
type reader struct {
	*redisstore.Store
	t      *testing.T
	client redis.UniversalClient // for the test itself
	sent   *commands
}

func newReader(t *testing.T, url string, change ...func(*redis.UniversalOptions)) reader {
	t.Helper()
	sent := &commands{}
	client := dial(t, url, change...)
	connect.AddHook(client, sent)
	return reader{
		Store: redisstore.New(redisstore.Config{Client: client, TTL: usualTTLs, Beside: share.Stored()}),
		t:     t, client: dial(t, url), sent: sent,
	}
}

func (r reader) filled() redisstore.Ref {
	r.t.Helper()
	ref := redisstore.GuestRef(newStoreID(), tokenOf("reader"))
	r.add(ref)
	return ref
}

func (r reader) add(ref redisstore.Ref) redisstore.Outcome {
	r.t.Helper()
	line := cart.NewLine{ID: "1", Quantity: 1, Price: 100, Bounds: cart.BoundsOf(carttest.Sold(1, 100), carttest.Limits)}
	o, err := r.Change(r.t.Context(), ref, redisstore.Conditions{}, redisstore.Attempt{CartID: "ID", Limits: carttest.Limits}, redisstore.Only(cart.Add(line)))
	assert.Require(r.t, err == nil && o.Status == cart.Applied, "add: %v %v", o.Status, err)
	return o
}

func (r reader) load(ref redisstore.Ref) redisstore.Stored {
	r.t.Helper()
	return assert.Must(r.Load(r.t.Context(), ref))(r.t)
}

// wantLeft fails unless the key lives, the cart says so, and the answer said so.
func (r reader) wantLeft(ref redisstore.Ref, want time.Duration, answered time.Time) {
	r.t.Helper()
	ctx := r.t.Context()
	now := r.client.Time(ctx).Val()
	left := r.client.PTTL(ctx, ref.CartKey()).Val()
	stored, _ := r.client.HGet(ctx, ref.CartKey(), "x").Int64()
	for what, got := range map[string]time.Duration{
		"TTL": left, "x": time.Unix(stored, 0).Sub(now), "the answer": time.Until(answered),
	} {
		assert.That(r.t, (got-want).Abs() <= time.Minute, "%s: the cart has %v left, want %v", what, got, want)
	}
}

type commands struct {
	mu    sync.Mutex
	names map[string]int
	trips int
	most  int // commands in one round trip
	gate  sync.RWMutex
}

// holdBack holds back what is sent until open is called.
func (c *commands) holdBack() (open func()) {
	c.gate.Lock()
	return c.gate.Unlock
}

func (c *commands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(cmds...)
		return next(ctx, cmds)
	}
}

func (c *commands) count(cmds ...redis.Cmder) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names == nil {
		c.names = map[string]int{}
	}
	c.trips++
	c.most = max(c.most, len(cmds))
	for _, cmd := range cmds {
		c.names[cmd.Name()]++
	}
}

func (c *commands) take() (names map[string]int, trips, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names, trips, most = c.names, c.trips, c.most
	c.names, c.trips, c.most = nil, 0, 0
	return names, trips, most
}

func TestRead_IsOneCommandThatWritesNothing(t *testing.T) {
	t.Parallel()
	r := newReader(t, ephemeral.Redis(t))
	ref := r.filled()
	r.sent.take()
	for range 1000 {
		r.load(ref)
	}
	names, _, _ := r.sent.take()
	assert.That(t, cmp.Equal(names, map[string]int{"hgetall": 1000, "pexpire": 1000}), "1,000 reads sent %v", names)
}

func TestRead_RenewsAfterAPartOfTheTTL(t *testing.T) {
	t.Parallel()
	r := newReader(t, ephemeral.Redis(t))
	ref := r.filled()
	const part = 720 * time.Hour / 720
	r.age(ref, part-time.Minute)
	r.sent.take()
	r.wantLeft(ref, usualTTLs.Guest-part+time.Minute, r.load(ref).ExpiresAt)
	r.age(ref, 2*time.Minute)
	r.wantLeft(ref, usualTTLs.Guest, r.load(ref).ExpiresAt)
	r.wantLeft(ref, usualTTLs.Guest, r.load(ref).ExpiresAt)
	names, _, _ := r.sent.take()
	assert.That(t, names["hgetall"] == 4 && names["evalsha"] == 1, "sent %v, want one renewal", names)
}

func (r reader) age(ref redisstore.Ref, by time.Duration) {
	r.t.Helper()
	assert.NoError(r.t, carttest.Age(r.t.Context(), r.client, by, ref.CartKey()))
}

func TestRead_RenewsATTLThatALongerSettingLeft(t *testing.T) {
	t.Parallel()
	r := newReader(t, ephemeral.Redis(t))
	ref := r.filled()
	r.age(ref, -1000*time.Hour)
	r.wantLeft(ref, usualTTLs.Guest, r.load(ref).ExpiresAt)
}

func TestRead_NeverRevives(t *testing.T) {
	t.Parallel()
	r := newReader(t, ephemeral.Redis(t))
	ctx, ref := t.Context(), r.filled()
	r.client.Del(ctx, ref.CartKey())
	held := r.load(ref)
	assert.That(t, held.ID == "" && held.ExpiresAt.IsZero(), "read %+v under a key that is gone", held)
	assert.Equal(t, r.client.Exists(ctx, ref.CartKey()).Val(), 0, "a read created a key")

	emptied := r.filled()
	assert.Must(r.Change(ctx, emptied, redisstore.Conditions{}, redisstore.Attempt{Limits: carttest.Limits}, redisstore.Only(cart.Clear())))(t)
	r.age(emptied, 2*time.Hour)
	r.wantLeft(emptied, 22*time.Hour, r.load(emptied).ExpiresAt)
}

// many reads carts concurrently until stop closes, and counts successes and failures.
func (r reader) many(callers int, ref redisstore.Ref, timeout time.Duration, stop <-chan struct{}) (read, failed int64, slowest time.Duration) {
	var good, bad, worst atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(r.t.Context(), timeout)
				began := time.Now()
				held, err := r.Load(ctx, ref)
				took := int64(time.Since(began))
				cancel()
				for old := worst.Load(); took > old && !worst.CompareAndSwap(old, took); old = worst.Load() {
				}
				switch {
				case err != nil:
					bad.Add(1)
				case len(held.Lines) != 1:
					r.t.Errorf("read %d lines", len(held.Lines))
				default:
					good.Add(1)
				}
			}
		})
	}
	all.Wait()
	return good.Load(), bad.Load(), time.Duration(worst.Load())
}

// A batch of every waiting read would keep all their carts in Redis' memory at a time.
func TestReads_ThatComeTogetherShareRoundTripsInLimitedNumbers(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{32, 500} {
		r := newReader(t, ephemeral.Redis(t))
		ref := r.filled()
		r.sent.take()
		stop := make(chan struct{})
		time.AfterFunc(300*time.Millisecond, func() { close(stop) })
		read, failed, _ := r.many(callers, ref, ephemeral.Patience(10*time.Second), stop)
		_, trips, largest := r.sent.take()
		assert.That(t, failed == 0 && read != 0, "%d callers: %d reads succeeded, %d failed", callers, read, failed)
		assert.That(t, int64(trips) < read/2, "%d callers: %d reads took %d round trips", callers, read, trips)
		assert.That(t, largest <= redisstore.MaxBatch+1, "%d callers: %d commands shared a round trip", callers, largest)
	}
}

// While Redis hangs, each caller waits for its own timeout; afterwards all is as before.
func TestReads_EndWithTheirCallersWhileRedisHangs(t *testing.T) {
	t.Parallel()
	server, timeout := ephemeral.StartRedis(t), ephemeral.Patience(200*time.Millisecond)
	r := newReader(t, server.URL)
	ref := r.filled()
	stop := make(chan struct{})
	done := make(chan time.Duration)
	var failed int64
	go func() {
		var slowest time.Duration
		_, failed, slowest = r.many(32, ref, timeout, stop)
		done <- slowest
	}()
	time.Sleep(50 * time.Millisecond)
	server.Freeze()
	time.Sleep(6 * timeout)
	server.Thaw()
	for thawed := time.Now(); ; {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		_, err := r.Load(ctx, ref)
		cancel()
		if err == nil {
			break
		}
		assert.Require(t, time.Since(thawed) <= ephemeral.Patience(10*time.Second), "reads still fail: %v", err)
	}
	close(stop)
	if slowest := <-done; slowest > 5*timeout { // some more for a busy machine
		t.Errorf("a read with a timeout of %v took %v", timeout, slowest)
	}
	assert.That(t, failed >= 32, "%d reads failed while Redis hung", failed)
}

// Each round loses connections once: on a busy machine, more may outlast a read's retries.
func TestReads_SurviveALostConnection(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	r := newReader(t, server.URL)
	ref := r.filled()
	for range 20 {
		stop := make(chan struct{})
		time.AfterFunc(20*time.Millisecond, func() {
			r.client.ClientKillByFilter(context.WithoutCancel(t.Context()), "TYPE", "normal", "SKIPME", "yes")
			close(stop)
		})
		read, failed, _ := r.many(32, ref, ephemeral.Patience(5*time.Second), stop)
		assert.That(t, failed == 0 && read != 0, "%d reads succeeded, %d failed while connections were killed", read, failed)
	}
}

func FuzzParseHash(f *testing.F) {
	for _, reply := range []string{
		"*0\r\n", "%0\r\n", "*2\r\n$1\r\na\r\n$2\r\nbb\r\n", "%1\r\n$1\r\na\r\n$0\r\n\r\n", "*2\r\n$1\r\na\r\n$2\r\nb",
		"-ERR no\r\n", "", "*-1\r\n", "*9999999999\r\n", "%1\r\n$-1\r\n$1\r\na\r\n", "*1\r\n$1\r\n", "%4611686018427387904\r\n",
	} {
		f.Add(reply)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		flat, err := redisstore.ParseHash(nil, reply)
		if err != nil {
			return
		}
		var again strings.Builder
		fmt.Fprintf(&again, "*%d\r\n", len(flat))
		for _, s := range flat {
			fmt.Fprintf(&again, "$%d\r\n%s\r\n", len(s), s)
		}
		same, err := redisstore.ParseHash(nil, again.String())
		assert.That(t, err == nil && cmp.Equal(same, flat), "%q: %q, then %q (%v)", reply, flat, same, err)
	})
}

// go-redis then fails with an error that wraps redis.Nil, as if a value were missing.
func TestReads_FailWhenNoSentinelKnowsTheMaster(t *testing.T) {
	t.Parallel()
	url := strings.Replace(ephemeral.StartSentinels(t).URL, "master=main", "master=other", 1)
	s := redisstore.New(redisstore.Config{Client: dial(t, url), TTL: usualTTLs})
	store := newStoreID()
	customer, guest := redisstore.CustomerRef(store, "c"), redisstore.GuestRef(store, tokenOf("t"))
	found, err := s.FindGuest(t.Context(), customer, guest, "key")
	assert.That(t, err != nil, "the guest has %+v, want a failure", found)
	held, err := s.Load(t.Context(), customer)
	assert.That(t, err != nil, "the cart is %+v, want a failure", held)
}

func TestRead_OfAnUnchangedCartIsNotParsedAgain(t *testing.T) {
	t.Parallel()
	r := newReader(t, ephemeral.Redis(t))
	ref := r.filled()
	first, again := r.load(ref), r.load(ref)
	assert.That(t, &first.Lines[0] == &again.Lines[0], "the second read has parsed the cart again")
	r.add(ref)
	changed := r.load(ref)
	assert.That(t, changed.Lines[0].Quantity == 2 && first.Lines[0].Quantity == 1, "after a change: %+v, and before it: %+v", changed.Lines, first.Lines)
	assert.NoError(t, r.client.Del(t.Context(), ref.CartKey()).Err())
	assert.That(t, r.load(ref).ID == "", "it is read after it was deleted")
}
