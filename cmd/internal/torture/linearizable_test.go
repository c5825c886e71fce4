package torture

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// 50 clients change a few carts through two instances, while connections break, replies are
// slow, Redis and the service freeze, and the service dies. The test checks the history of each
// cart against the cart's rules.
func TestPromise04_EachCartIsLinearizable(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 4, "each cart is linearizable", "0 violations in 1,000 histories")
	troubles := startTroubled(t, ephemeral.StartRedis(t))
	for _, instance := range troubles.instances {
		instance.front.cutReplies(300)
		instance.back.cutReplies(300)
	}
	m := newMarket(p, 50, troubles.shoppers[:]...)
	wanted := sized(10, 1000)
	bar := p.progress("histories", wanted)
	sawAll := func() bool { return m.unknown.Load() > 0 && m.unkeyed.Load() > 0 && m.replayed.Load() > 0 }
	stop := troubles.start()
	m.open(func() bool {
		_ = bar.Set(min(wanted, len(m.checked)))
		return len(m.checked) >= wanted && (sawAll() || len(m.checked) >= 20*wanted)
	}, stop)
	p.counted("histories", int64(len(m.checked)))
	p.counted("calls", m.calls.Load())
	p.counted("calls with an unknown outcome", m.unknown.Load())
	p.counted("503s of changes without a key, all without effect", m.unkeyed.Load())
	p.detail("repeats recognized", float64(m.replayed.Load()), "")
	troubles.count(p)
	assert.That(t, sawAll(), "some kind of outcome never occurred, so the test shows nothing")
}

// market is clients who change a few carts at the same time, and the histories of these carts. A change without a key
// that got a 503 is not recorded as an event. So if it was made after all, no order explains the versions that others see.
type market struct {
	p       *promise
	clients int
	shops   []*shopper // of each instance
	rnd     *rand.Rand
	rounds  int
	checked []*watchedCart

	refused func(keyed bool) // is told of each 503 of a change; may be nil

	calls, unknown, unkeyed, replayed atomic.Int64 // unkeyed: 503s of changes without a key
}

func newMarket(p *promise, clients int, shops ...*shopper) *market {
	return &market{p: p, clients: clients, shops: shops, rnd: rand.New(rand.NewPCG(uint64(p.row.Number), uint64(os.Getpid())))}
}

type watchedCart struct {
	*history
	token string
	end   cartState
}

const (
	marketCarts    = 10 // changed at the same time
	callsPerClient = 16 // so each cart gets 80 calls: long histories take long to check
)

// open lets rounds of clients change carts until enough returns true, and checks them. stop ends all faults.
func (m *market) open(enough func() bool, stop func()) {
	var before []*watchedCart
	for !m.p.t.Failed() && !enough() {
		carts := m.round()
		m.check(before) // later than any change of that round can take effect
		before = carts
	}
	stop()
	time.Sleep(time.Second)
	m.check(before)
	for _, c := range m.checked {
		if now := m.read(c); now != c.end {
			m.p.broke("cart %s was %v when all calls had returned, and is %v later", c.token, c.end, now)
		}
	}
}

func (m *market) round() []*watchedCart {
	m.rounds++
	carts := make([]*watchedCart, marketCarts)
	for i := range carts {
		carts[i] = &watchedCart{history: newHistory(), token: fmt.Sprintf("a-cart-of-the-market-%d-%d", m.rounds, i)}
	}
	var all sync.WaitGroup
	for i := range m.clients {
		b := &marketClient{market: m, rnd: rand.New(rand.NewPCG(m.rnd.Uint64(), uint64(i))), name: fmt.Sprint(i), tags: map[*watchedCart]string{}}
		all.Go(func() {
			for n := range callsPerClient {
				b.call(carts[b.rnd.IntN(len(carts))], n)
			}
		})
	}
	all.Wait()
	return carts
}

func (m *market) check(carts []*watchedCart) {
	var all sync.WaitGroup
	for _, c := range carts {
		all.Go(func() {
			c.end = m.read(c)
			if found := c.violation(); found != "" {
				m.p.broke("cart %s: %s", c.token, found)
			}
		})
	}
	all.Wait()
	m.checked = append(m.checked, carts...)
}

// read reads a cart, repeats that until it succeeds, and records the read.
func (m *market) read(c *watchedCart) cartState {
	e := cartEvent{call: readCall}
	r, ok := served(func() reply {
		e.begins = c.now()
		return m.shops[0].as(c.token, "").send("GET", "/cart", "")
	})
	if !ok {
		m.p.broke("cart %s cannot be read: %v", c.token, r)
	}
	e.ends = c.now()
	e = e.seenIn(answered, r)
	c.note(e)
	return e.shows
}

type marketClient struct {
	*market
	rnd  *rand.Rand
	name string
	tags map[*watchedCart]string // the latest one that this client has seen, such as "id.version.mark"
}

// call makes one random call of a cart and records it. A third of the changes have an
// idempotency key and are repeated until their outcome is known.
func (b *marketClient) call(c *watchedCart, n int) {
	tag, version := b.tags[c], int64(0)
	if tag == "" {
		tag = "0.0.0"
	}
	_, _ = fmt.Sscan(strings.Split(tag, ".")[1], &version)
	e := cartEvent{call: drawCall(b.rnd, version)}
	var headers []string
	if e.call.ifMatch != noCondition {
		headers = append(headers, "If-Match", `"`+tag+`"`)
	}
	if e.call.verb != verbRead && b.rnd.IntN(3) == 0 {
		b.insist(c, e, append(headers, "Idempotency-Key", fmt.Sprintf("%s-%d", b.name, n)))
		return
	}
	r := b.send(c, &e, headers)
	switch outcome := r.outcome(); {
	case outcome == unchanged && e.call.verb != verbRead:
		b.unkeyed.Add(1)
		b.tell(false)
	case outcome == unknown && e.call.verb != verbRead && !r.unsent():
		e.knows, e.ends = open, noEnd
		c.note(e)
	case outcome == applied || outcome == refused:
		c.note(e.seenIn(answered, r))
	}
}

func (b *marketClient) tell(keyed bool) {
	if b.refused != nil {
		b.refused(keyed)
	}
}

func (b *marketClient) insist(c *watchedCart, e cartEvent, headers []string) {
	first := time.Duration(-1) // when the first try began that may have taken effect
	for range 20 {
		r := b.send(c, &e, headers)
		if first < 0 {
			first = e.begins
		}
		switch outcome := r.outcome(); {
		case outcome == applied && r.replayed():
			b.replayed.Add(1)
			c.note(cartEvent{call: e.call, knows: made, begins: first, ends: e.ends})
			c.note(e.seenIn(observed, r))
			return
		case outcome == applied:
			c.note(e.seenIn(answered, r))
			return
		case outcome == refused:
			c.note(e.seenIn(answered, r))
			if first < e.begins {
				c.note(cartEvent{call: e.call, knows: open, begins: first, ends: noEnd})
			}
			return
		case outcome == unchanged:
			b.tell(true)
		}
		time.Sleep(time.Duration(b.rnd.IntN(100)) * time.Millisecond)
	}
	c.note(cartEvent{call: e.call, knows: open, begins: first, ends: noEnd})
}

func (b *marketClient) send(c *watchedCart, e *cartEvent, headers []string) reply {
	client := b.shops[b.rnd.IntN(len(b.shops))].as(c.token, "")
	method, path, body := e.call.request()
	e.begins = c.now()
	r := client.send(method, path, body, headers...)
	e.ends = c.now()
	b.calls.Add(1)
	if r.outcome() == unknown {
		b.unknown.Add(1)
		time.Sleep(time.Duration(b.rnd.IntN(200)) * time.Millisecond) // each unknown outcome makes the check slower
	}
	if r.Status >= 500 && r.Status != 503 && r.Status != 504 {
		b.p.broke("%v: %v", e.call, r)
	}
	b.tags[c] = r.versionTag(b.tags[c])
	return r
}

func (r reply) unsent() bool {
	failed, ok := errors.AsType[*net.OpError](r.Err)
	return ok && failed.Op == "dial"
}

// versionTag returns the part of a response's tag that If-Match compares, "id.version". If the
// response has no tag, it returns known.
func (r reply) versionTag(known string) string {
	if tag := r.Header.Get("ETag"); tag != "" {
		known, _, _ = strings.Cut(strings.Trim(tag, `"`), "-")
	}
	return known
}
