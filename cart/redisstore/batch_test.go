package redisstore_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// switchboard is a fixed address in front of Redis, such as a load balancer's. It can send new
// connections elsewhere, and stop passing on what existing ones send.
type switchboard struct {
	target atomic.Value // URL
	mu     sync.Mutex
	open   []*line
}

type line struct {
	net.Conn
	dead atomic.Bool
}

// Write passes on what a client sends, unless the line is dead.
func (l *line) Write(p []byte) (int, error) {
	if l.dead.Load() {
		return len(p), nil
	}
	return l.Conn.Write(p)
}

func newSwitchboard(url string) *switchboard {
	s := &switchboard{}
	s.target.Store(url)
	return s
}

func (s *switchboard) connects(o *redis.UniversalOptions) {
	o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(s.target.Load().(string), "redis://"))
		l := &line{Conn: conn}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open = append(s.open, l)
		return l, err
	}
}

func (s *switchboard) hang() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.open {
		l.dead.Store(true)
	}
	return len(s.open)
}

// A connection to a demoted master may stay open behind a fixed address.
func TestReads_ShowNoCartOfADemotedMaster(t *testing.T) {
	t.Parallel()
	a, b := ephemeral.StartRedis(t), ephemeral.StartRedis(t)
	board := newSwitchboard(a.URL)
	r := newReader(t, a.URL, board.connects)
	ref := r.filled()
	stop := make(chan struct{})
	time.AfterFunc(50*time.Millisecond, func() { close(stop) })
	r.many(8, ref, ephemeral.Patience(time.Second), stop) // opens connections

	newer := newReader(t, b.URL)
	newer.add(ref)
	newer.add(ref)
	board.target.Store(b.URL)
	assert.NoError(t, dial(t, a.URL).Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
	var fresh int
	for range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(time.Second))
		held, err := r.Load(ctx, ref)
		cancel()
		switch {
		case err != nil:
		case len(held.Lines) != 1 || held.Lines[0].Quantity != 2:
			t.Fatalf("read the old cart %+v", held.Lines)
		default:
			fresh++
		}
	}
	assert.That(t, fresh != 0, "no read found the new master")
}

// Other connections work while the one of a batch hangs.
func TestReads_DoNotAllWaitForAConnectionThatHangs(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	board := newSwitchboard(server.URL)
	r := newReader(t, server.URL, board.connects)
	ref := r.filled()
	r.load(ref)
	n := board.hang()
	assert.Require(t, n != 0, "no connection is open")
	limit := ephemeral.Patience(5 * time.Second)
	var quick atomic.Int64
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			time.Sleep(time.Duration(i) * 15 * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := time.Now()
			if _, err := r.Load(ctx, ref); err == nil && time.Since(began) < limit/10 {
				quick.Add(1)
			}
		})
	}
	all.Wait()
	assert.That(t, quick.Load() >= 10, "%d of 40 reads were quick while one connection hung", quick.Load())
}

// hanging is a Redis that does not reply to the first commands.
type hanging struct {
	*commands
	left atomic.Int64
}

func (h *hanging) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, _ redis.Cmder) error {
		if h.left.Add(-1) < 0 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// Neither the first call after a batch has become slow waits for it, nor those that follow immediately.
func TestReads_DoNotWaitForABatchThatHangs(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	h := &hanging{}
	h.left.Store(2) // one by itself, and a batch
	client.AddHook(h)
	synctest.Test(t, func(t *testing.T) {
		send := redisstore.Batched(client)
		read := func() time.Duration {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			_ = send(ctx, redis.NewRawCmd(ctx, "ping"))
			return time.Since(began)
		}
		for range 2 {
			go read()
			synctest.Wait()
		}
		time.Sleep(20 * time.Millisecond)
		for i := range 3 {
			assert.Equal(t, read(), 0, "what call %d takes", i)
		}
		time.Sleep(time.Second) // until the others have ended
	})
}

// Whatever the estimate of Redis' clock, and without a renewal too: a Redis that is full cannot
// renew the TTL, nor tell its time in the reply to a script.
func TestRead_SaysWhenTheCartExpires(t *testing.T) {
	t.Parallel()
	r := newReader(t, ephemeral.StartRedis(t).URL)
	const passed = 2 * time.Hour
	now := time.Duration(time.Now().UnixNano())
	for _, ahead := range []time.Duration{-100 * time.Hour, 100 * time.Hour, now - 100*time.Hour, now, now + 100*time.Hour} {
		ref := r.filled()
		r.age(ref, passed)
		assert.NoError(t, r.MistakeClock(t.Context(), ref, ahead))
		for _, full := range []bool{true, false} {
			maxMemory, want := "0", usualTTLs.Guest
			if full {
				maxMemory, want = "1", usualTTLs.Guest-passed
			}
			assert.NoError(t, r.client.ConfigSet(t.Context(), "maxmemory", maxMemory).Err())
			r.wantLeft(ref, want, r.load(ref).ExpiresAt)
		}
	}
}

func TestChange_ARefusalSaysWhenTheCartExpires(t *testing.T) {
	t.Parallel()
	r := newReader(t, ephemeral.Redis(t))
	ref := r.filled()
	r.age(ref, time.Hour)
	absent := redisstore.Only(cart.SetQuantity(cart.Item{ID: "9"}, 1, cart.BoundsOf(carttest.Sold(9, 100), carttest.Limits), ""))
	o, err := r.Change(t.Context(), ref, redisstore.Conditions{}, redisstore.Attempt{Limits: carttest.Limits}, absent)
	assert.Require(t, err == nil && o.Effect.Refusal.Code == problem.ItemNotFound, "%v %v", o, err)
	left := time.Until(o.ExpiresAt)
	assert.That(t, (left-usualTTLs.Guest+time.Hour).Abs() <= time.Minute, "the refusal says that the cart expires in %v", left)
}
