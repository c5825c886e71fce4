package torture

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

const (
	// hangs is how long no request may take: the service limits them to 5 s.
	hangs = 4500 * time.Millisecond

	// visitPause is how long a patron waits between two calls.
	visitPause = 20 * time.Millisecond
)

// patron visits one shard through one instance, and repeats refused calls with care.
type patron struct {
	keyedBuyer
	p     *promise
	shard int

	calls, failed int
	last          time.Time     // when it was served
	gap           time.Duration // the longest time without being served
	slowest       time.Duration // response
}

// insist repeats a call until it is served, after refusals that allow it.
func (v *patron) insist(call func() reply) bool {
	for began := time.Now(); time.Since(began) < 3*startLimit; {
		r := call()
		v.calls++
		v.slowest = max(v.slowest, r.Took)
		if r.Took > hangs {
			v.p.broke("a response took %v", r.Took)
		}
		switch {
		case r.Status == http.StatusOK:
			v.gap, v.last = max(v.gap, time.Since(v.last)), time.Now()
			time.Sleep(visitPause)
			return true
		case r.Status == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != "":
			v.failed++
			time.Sleep(visitPause)
		default:
			v.p.broke("neither served nor refused: %v", r)
			return false
		}
	}
	v.p.broke("a patron was not served for %v", 3*startLimit)
	return false
}

// repeat repeats the changes of a cart. It returns how many of them the master had lost, and how
// many of the lost ones were confirmed.
func (v *patron) repeat(c *keyedCart) (lost, confirmed int64) {
	for i, was := range c.acks {
		r, ok := served(func() reply { return v.change(c, i) })
		switch {
		case !ok:
			v.p.broke("a change cannot be repeated: %v", r)
			return lost, confirmed
		case r.replayed():
		case was.confirmed:
			lost++
			confirmed++
		default:
			lost++
		}
	}
	if confirmed > 0 {
		v.p.broke("a cart lost %d confirmed changes", confirmed)
	}
	if r, ok := served(func() reply { return v.look(c) }); !ok || r.Cart.Count != int64(len(c.acks)) {
		v.p.broke("after %d changes, a cart shows %v", len(c.acks), r)
	}
	return lost, confirmed
}

// keyedBuyer fills one cart after another, one change at a time. Each change has a key. The
// buyer remembers the acknowledged changes.
type keyedBuyer struct {
	*shopper
	token func(cart int) string
	carts []*keyedCart
}

type keyedCart struct {
	token string
	acks  []ack // in the order of the changes
	open  bool  // the next change was sent, and its outcome is unknown
}

type ack struct {
	at        time.Time
	confirmed bool // by all replicas
}

// A cart remembers its newest 256 idempotency keys, so each change of a cart can be repeated.
const changesPerCart = 200

func (b *keyedBuyer) current() *keyedCart {
	if n := len(b.carts); n > 0 && len(b.carts[n-1].acks) < changesPerCart {
		return b.carts[n-1]
	}
	b.carts = append(b.carts, &keyedCart{token: b.token(len(b.carts))})
	return b.carts[len(b.carts)-1]
}

func (b *keyedBuyer) buy() reply {
	c := b.current()
	c.open = true
	r := b.change(c, len(c.acks))
	if r.outcome() == applied {
		c.acks, c.open = append(c.acks, ack{time.Now(), r.Header.Get("Durability") == "confirmed"}), false
	}
	return r
}

func (b *keyedBuyer) change(c *keyedCart, i int) reply {
	return b.as(c.token, "").send("POST", "/cart/add", fmt.Sprintf(`{"product_id":%d}`, firstProduct),
		"Idempotency-Key", strconv.Itoa(i))
}

func (b *keyedBuyer) look(c *keyedCart) reply {
	return b.as(c.token, "").send("GET", "/cart/count", "")
}

// served repeats a call until it succeeds. It returns the last reply.
func served(call func() reply) (reply, bool) {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		r := call()
		if r.Status == http.StatusOK || time.Since(began) > startLimit {
			return r, r.Status == http.StatusOK
		}
	}
}
