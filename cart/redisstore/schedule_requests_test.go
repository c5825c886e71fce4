package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cart/service"
)

// verb is what a request does.
type verb int

const (
	reads verb = iota
	adds
	sets
	removes
	clears
)

func (v verb) String() string { return [...]string{"read", "add", "set", "remove", "clear"}[v] }

// operation is a request and its repeats, which must count once.
type operation struct {
	name     string
	verb     verb
	product  int64
	quantity int64
	key      string // the Idempotency-Key of all its requests; "" for none
	stamp    string // their X-Timestamp; "" for none
	tries    []caller
	attempts []*request
}

func (o *operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", o.name, o.verb)
	switch o.verb {
	case adds, sets:
		fmt.Fprintf(&b, " %d×%d", o.product, o.quantity)
	case removes:
		fmt.Fprintf(&b, " %d", o.product)
	}
	if o.key != "" {
		b.WriteString(" with a key")
	}
	if o.stamp != "" {
		b.WriteString(" with a stamp")
	}
	for i, who := range o.tries {
		b.WriteString([]string{" as ", ", then as "}[min(i, 1)] + who.String())
	}
	return b.String()
}

// mayRepeat reports whether each of its requests may count. The service looks up only keys
// in a guest's cart that could not be merged, so it recognizes a stamp there only when the
// repeat comes from the same shopper.
func (o *operation) mayRepeat() bool {
	for _, a := range o.attempts {
		if o.stamp != "" && a.unmerged && a.who != o.attempts[0].who {
			return true
		}
	}
	return false
}

func (o *operation) triesLeft() int { return len(o.tries) - len(o.attempts) }

func (o *operation) last() *request { return o.attempts[len(o.attempts)-1] }

// mayStart reports whether the shopper would send the (next) request now.
func (o *operation) mayStart(s *schedule) bool {
	if o.triesLeft() == 0 {
		return false
	}
	return len(o.attempts) == 0 || o.last().leftOpen()
}

// leftOpen reports whether the client of a request does not know its outcome.
func (a *request) leftOpen() bool { return a.abandoned || a.over && a.result.unknown() }

// mayGiveUp reports whether the client of a request may repeat it before it has ended. It
// may not if a guest has logged in since: the two tries go to different shards, and each
// knows the other only after that one has ended.
func (o *operation) mayGiveUp(a *request) bool {
	return o.key != "" && a == o.last() && !a.abandoned && o.triesLeft() > 0 && o.tries[len(o.attempts)] == a.who
}

// settled reports whether no request of the operation is running or still to come.
func (o *operation) settled() bool {
	for _, a := range o.attempts {
		if !a.over || a.tails > 0 {
			return false
		}
	}
	return len(o.attempts) > 0 && (o.triesLeft() == 0 || !o.last().leftOpen())
}

// request is one try of an operation.
type request struct {
	schedule *schedule
	op       *operation
	number   int
	who      caller
	service  *service.Carts

	at     *pending // the commands that it waits with; nil while it runs
	decide chan decision
	steps  int // commands decided on so far

	shard     shard // that it sent its last command to
	failovers int   // of that shard at that time

	startedAt, endedAt time.Duration // in world.passed
	claimedAt          time.Duration // when it claimed a cart
	call, end          int64         // its place in the history

	unmerged  bool // it was served without the merge
	dead      bool // its process is gone
	abandoned bool // its client is gone
	over      bool
	late      int // its commands that were delayed
	tails     int // its delayed commands that have not arrived yet
	result    result
}

func (a *request) String() string {
	if len(a.op.tries) == 1 {
		return a.op.name
	}
	return fmt.Sprintf("%s%d", a.op.name, a.number+1)
}

// result is what a request's client got.
type result struct {
	err        error // nil, a refusal, or what left the outcome unknown
	died       bool
	cart       cart.Cart
	replayed   bool
	durability string
}

// unknown reports whether the client does not know if the request was carried out.
func (r result) unknown() bool { return r.died || r.err != nil && r.refused() == "" }

// refused returns the code of a refusal; "" for none.
func (r result) refused() problem.Code {
	var e *problem.Error
	if r.died || !errors.As(r.err, &e) || e.Code == problem.Unavailable || e.Code == problem.OutcomeUnknown {
		return ""
	}
	return e.Code
}

// effectless reports whether the request certainly changed nothing: it was refused, or,
// without a key, failed with problem.Unavailable.
func (a *request) effectless() bool {
	var e *problem.Error
	return a.result.refused() != "" ||
		!a.result.died && a.op.key == "" && errors.As(a.result.err, &e) && e.Code == problem.Unavailable
}

func (r result) String() string {
	switch {
	case r.died:
		return "died"
	case r.err != nil:
		return r.err.Error()
	case r.replayed:
		return "replayed, " + r.lines()
	}
	return r.lines()
}

func (r result) lines() string {
	return fmt.Sprintf("[%s] version %d", linesOf(r.cart), r.cart.Version)
}

// run makes the request as the API does.
func (a *request) run(ctx context.Context) {
	defer func() {
		a.at, a.over = nil, true
		a.result.died = a.dead
		a.schedule.stopped <- a
	}()
	v, err := a.service.Visit(a.who.auth(a.schedule.store))
	if err != nil {
		a.result.err = err
		return
	}
	if a.op.verb == reads {
		priced, err := a.service.Read(ctx, v)
		a.result.cart, a.result.err = priced.Cart, err
		return
	}
	a.service.Merge(ctx, v, a.op.key)
	a.unmerged = v.Postponed
	changed, err := a.change(ctx, v)
	a.result.cart, a.result.err = changed.Cart, err
	a.result.replayed, a.result.durability = changed.Replayed, changed.Durability
}

func (a *request) change(ctx context.Context, v *service.Visit) (service.Changed, error) {
	o := a.op
	on := redisstore.Conditions{Key: o.key, Stamp: o.stamp}
	if o.key != "" {
		on.Fingerprint = "request-" + o.name
	}
	line := cart.LineID(fmt.Sprint(o.product))
	switch o.verb {
	case adds:
		return a.service.Add(ctx, v, on, cart.Addition{ProductID: o.product, Quantity: o.quantity})
	case sets:
		return a.service.Edit(ctx, v, on, service.Edit{Item: line, Edit: cart.Edit{Quantity: &o.quantity}})
	case removes:
		return a.service.Remove(ctx, v, on, line)
	}
	return a.service.Clear(ctx, v, on)
}
