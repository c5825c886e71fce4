package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Shoppers change their own carts without pauses, while Redis fails in every way that causes
// 503s. After a change without a key got a 503, the cart must be as before. A change with a key
// is repeated, and must then count exactly once.
func TestPromise05_A503ChangedNothingOrIsSafeToRepeat(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 5, "a 503 changed nothing, or was safe to repeat", "0 untrue")
	// After a kill of Redis, the operating system still writes what Redis has given to it. So
	// this Redis does not need to wait for the disk.
	server := ephemeral.StartRedis(t, "--appendonly", "yes", "--appendfsync", "no")
	back, url := lineTo(t, server.URL)
	s := startService(t, "REDIS_URL="+url, "DATABASE_URL="+catalog(t))
	ways := unavailabilities(t, server, back)
	now := &atomic.Pointer[unavailability]{}
	now.Store(&unavailability{}) // none

	stop := make(chan struct{})
	var all sync.WaitGroup
	client := newShopper(t, s)
	for i := range 24 {
		c := &carefulShopper{shopper: client, p: p, now: now, name: fmt.Sprint(i), rnd: rand.New(rand.NewPCG(uint64(i), uint64(os.Getpid())))}
		all.Go(func() {
			for c.newCart(); !closed(stop); {
				c.change()
			}
		})
	}
	rounds := sized(1, 25)
	bar := p.progress("outages", rounds*len(ways))
	for n := range rounds + 30 {
		for _, way := range ways {
			if n >= rounds && way.enough() { // a busy machine may need more rounds
				continue
			}
			now.Store(way)
			way.begin()
			time.Sleep(400 * time.Millisecond)
			way.end()
			awaitServed(t, client, way)
			_ = bar.Add(1)
		}
	}
	close(stop)
	all.Wait()
	var unkeyed, keyed int64
	for _, way := range ways {
		unkeyed += way.unkeyed.Load()
		keyed += way.keyed.Load()
		p.detail(way.name+": 503s without a key", float64(way.unkeyed.Load()), "")
		p.detail(way.name+": 503s with a key", float64(way.keyed.Load()), "")
		assert.That(t, way.enough(), "%s: not enough was tried", way.name)
	}
	p.counted("503s without a key", unkeyed)
	p.counted("503s with a key", keyed)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func awaitServed(t *testing.T, client *shopper, after *unavailability) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		r := client.as("a-token-of-someone-who-waits", "").send("POST", "/cart/add", addOne(plainLine(0)))
		if r.outcome() == applied || r.outcome() == refused { // a full cart refuses it
			return
		}
		assert.Require(t, time.Since(began) <= startLimit, "%s: not served %v later: %v", after.name, startLimit, r)
	}
}

// unavailability is a way in which Redis fails, with the number of 503s that it has caused.
type unavailability struct {
	name       string
	begin, end func()

	// hangs means that a change without a key mostly gets a 504, because Redis may run it.
	hangs bool

	keyed, unkeyed atomic.Int64
}

func (u *unavailability) enough() bool {
	return u.keyed.Load() > 0 && (u.hangs || u.unkeyed.Load() > 0)
}

func unavailabilities(t *testing.T, server *ephemeral.Server, back *line) []*unavailability {
	admin := server.Admin()
	do := func(arguments ...any) func() {
		return func() { assert.Succeeds(t, admin.Do(t.Context(), arguments...).Err(), "%v", arguments) }
	}
	return []*unavailability{
		{name: "Redis is down", begin: server.Kill, end: server.Restart},
		{name: "Redis is frozen", begin: server.Freeze, end: server.Thaw, hangs: true},
		{name: "Redis pauses writes", begin: do("client", "pause", 60_000, "write"), end: do("client", "unpause"), hangs: true},
		{name: "Redis is full", begin: do("config", "set", "maxmemory", 1), end: do("config", "set", "maxmemory", 0)},
		{name: "Redis is a replica", begin: do("replicaof", "127.0.0.1", 1), end: do("replicaof", "no", "one")},
		{name: "Redis lacks replicas", begin: do("config", "set", "min-replicas-to-write", 1), end: do("config", "set", "min-replicas-to-write", 0)},
		{name: "Redis refuses connections", begin: back.down, end: back.up},
		{name: "connections break", begin: func() { back.cutReplies(2) }, end: func() { back.cutReplies(0) }},
		{name: "replies are late", begin: func() { back.slow(300 * time.Millisecond) }, end: func() { back.slow(0) }, hangs: true},
		{name: "replies are lost", begin: func() { back.swallow(true) }, end: func() { back.hangUp(); back.swallow(false) }, hangs: true},
	}
}

// carefulShopper is the only one who changes a cart, so it knows what the cart holds.
type carefulShopper struct {
	*shopper
	p    *promise
	now  *atomic.Pointer[unavailability]
	rnd  *rand.Rand
	name string

	carts, calls int
	state        cartState
	tag          string
}

func (c *carefulShopper) newCart() {
	c.carts++
	c.shopper = c.as(fmt.Sprintf("a-careful-shoppers-cart-%s-%d", c.name, c.carts), "")
	c.state, c.tag = cartState{}, "0.0.0"
}

// change makes one random change, and checks what the response says about it.
func (c *carefulShopper) change() {
	c.calls++
	call, headers := drawCall(c.rnd, c.state.version), []string(nil)
	if call.ifMatch != noCondition {
		headers = []string{"If-Match", `"` + c.tag + `"`}
	}
	keyed := call.verb != verbRead && c.rnd.IntN(2) == 0
	if keyed {
		headers = append(headers, "Idempotency-Key", fmt.Sprint(c.calls))
	}
	for {
		way := c.now.Load()
		r := c.send(call.method, call.path, call.body, headers...)
		outcome := r.outcome()
		switch {
		case outcome == applied || outcome == refused:
			c.expect(call, r)
			return
		case keyed && outcome == unchanged:
			way.keyed.Add(1)
		case outcome == unchanged && call.verb != verbRead:
			way.unkeyed.Add(1)
			c.expectUnchanged(call)
			return
		case outcome == unknown && !keyed && call.verb != verbRead:
			c.newCart()
			return
		}
		time.Sleep(time.Duration(c.rnd.IntN(20)) * time.Millisecond)
	}
}

func (c *carefulShopper) expect(call cartCall, r reply) {
	want, refusal := call.apply(c.state)
	shown, ok := stateIn(r)
	if r.Status == 200 && (refusal != "" || !ok || !shown.equal(want)) || r.Status != 200 && r.Code != refusal {
		c.p.broke("%v of %v: want %v %s: %v (%v)", call, c.state, want, refusal, r, c.Token)
		c.newCart()
		return
	}
	c.state, c.tag = want, r.versionTag(c.tag)
}

// expectUnchanged reads the cart after a 503.
func (c *carefulShopper) expectUnchanged(call cartCall) {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		r := c.send("GET", "/cart", "")
		if shown, ok := stateIn(r); r.Status == 200 {
			if !ok || !shown.equal(c.state) {
				c.p.broke("%v of %v got a 503, and changed the cart to %v", call, c.state, shown)
				c.newCart()
			}
			return
		}
		if time.Since(began) > startLimit {
			c.p.broke("a cart cannot be read %v after an outage: %v", startLimit, r)
			return
		}
	}
}
