package torture

import (
	"net/http"
	"time"
)

const (
	// hangs is a response time that means that a request hangs: the service limits requests
	// to 5 s.
	hangs = 4500 * time.Millisecond

	// visitPause is how long a patron waits between two calls.
	visitPause = 20 * time.Millisecond
)

// patron visits one shard through one instance. It repeats refused calls, like a careful
// client.
type patron struct {
	keyedBuyer
	p     *promise
	shard int

	calls, failed int
	last          time.Time     // when it was served
	gap           time.Duration // the longest time without being served
	slowest       time.Duration // response
}

// insist repeats a call until it is served. Each response must be a success or a refusal
// that may be repeated.
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
