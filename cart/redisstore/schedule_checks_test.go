package redisstore_test

import (
	"fmt"
	"strings"
	"time"

	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
)

// lay puts into the carts what lies there before, in peace.
func (s *schedule) lay() {
	for _, b := range s.plan.base {
		op := &operation{name: "before", verb: adds, product: b.product, quantity: 1, tries: []caller{b.who}}
		s.must(s.inPeace(op))
	}
	s.log, s.clock = nil, 0
}

// settle ends all faults and lets every shopper come back, with the tokens they
// sent before and without, until notes are old and nothing is left to do.
func (s *schedule) settle() error {
	for _, sh := range []shard{guestShard, customerShard} {
		s.catchUp(sh)
	}
	for range settleRounds {
		for _, who := range s.returning() {
			if err := s.inPeace(&operation{name: "end", verb: reads, tries: []caller{who}}); err != nil {
				return fmt.Errorf("%s, when all is well again: %w", who, err)
			}
		}
		s.advance(noteLife)
	}
	return nil
}

const (
	settleRounds = 3
	noteLife     = 6 * time.Minute
)

// returning lists all logins of the plan, if their tokens are sent again, and each
// customer without a token.
func (s *schedule) returning() []caller {
	var all []caller
	seen := map[caller]bool{}
	add := func(who caller) {
		if !seen[who] {
			seen[who] = true
			all = append(all, who)
		}
	}
	for _, op := range s.ops {
		for _, who := range op.tries {
			if who.logsIn() && !s.plan.silent {
				add(who)
			}
		}
	}
	for _, who := range s.everyone() {
		if who.customer >= 0 {
			add(who)
		}
	}
	return all
}

// everyone is each shopper of the plan with the cart of their own.
func (s *schedule) everyone() []caller {
	var all []caller
	seen := map[caller]bool{}
	add := func(who caller) {
		if !seen[who] {
			seen[who] = true
			all = append(all, who)
		}
	}
	note := func(who caller) {
		if who.customer >= 0 {
			add(caller{who.customer, -1})
		}
		if who.token >= 0 {
			add(caller{-1, who.token})
		}
	}
	for _, b := range s.plan.base {
		note(b.who)
	}
	for _, op := range s.ops {
		for _, who := range op.tries {
			note(who)
		}
	}
	return all
}

// inPeace makes a request without a fault, while no other is under way.
func (s *schedule) inPeace(op *operation) error {
	a := s.attempt(op)
	s.spawn(a)
	for !a.over {
		s.resume(a, goesOn)
	}
	return a.result.err
}

// ending is what lies in Redis in the end.
type ending struct {
	carts map[string]cart.Cart // by key
	wrong []string             // what should not be there
}

func (s *schedule) ending() ending {
	e := ending{carts: map[string]cart.Cart{}}
	for _, key := range s.look() {
		short := strings.Replace(key.key, fmt.Sprintf("{%d:", s.store.ID), "{", 1)
		if key.left < 0 {
			e.complain("%s has no TTL", short)
		}
		if strings.HasSuffix(key.key, ":claimed") {
			e.complain("%s is left", short)
		}
		for i := 0; i < len(key.members); i += 2 {
			if strings.HasPrefix(key.members[i].(string), "m") {
				e.complain("%s still notes a merge", short)
			}
		}
		if strings.HasSuffix(key.key, "}") {
			s.read(&e, short, key)
		}
	}
	return e
}

func (s *schedule) read(e *ending, short string, key stored) {
	held, err := redisstore.ParseCart(key.members, key.left.Milliseconds(), time.Now())
	if err != nil {
		e.complain("%s: %v", short, err)
	}
	c := held.Cart
	for _, l := range c.Lines {
		if l.Quantity < 1 || l.Quantity > carttest.Limits.Quantity {
			e.complain("%s holds %s×%d", short, l.ID, l.Quantity)
		}
	}
	if most := 2 * s.plan.setting.lines; int64(len(c.Lines)) > most {
		e.complain("%s holds %d lines, want at most %d", short, len(c.Lines), most)
	}
	e.carts[key.key] = c
}

func (e *ending) complain(format string, args ...any) {
	e.wrong = append(e.wrong, fmt.Sprintf(format, args...))
}

// check returns what is wrong with a schedule that has ended; nil for nothing.
func (s *schedule) check() []string {
	e := s.ending()
	wrong := e.wrong
	if s.plan.counted {
		wrong = append(wrong, s.countLines(e)...)
	} else {
		wrong = append(wrong, s.checkHistory(e)...)
	}
	if !s.failedOver() && !s.plan.forgetful {
		wrong = append(wrong, s.checkVersions()...)
	}
	return append(wrong, s.checkTokens(e)...)
}

func (s *schedule) failedOver() bool {
	return s.shards[guestShard].failovers+s.shards[customerShard].failovers > 0
}

// countLines checks that each line that was there and each add is in all carts
// together as often as it must be.
func (s *schedule) countLines(e ending) (wrong []string) {
	count := map[int64]int64{}
	for _, c := range e.carts {
		for _, l := range c.Lines {
			count[l.ID.Product()] += l.Quantity
		}
	}
	judge := func(what string, product int64, least, most int64) {
		if n := count[product]; n < least || n > most {
			wrong = append(wrong, fmt.Sprintf("%s is there %d times, want %d to %d", what, n, least, most))
		}
	}
	for _, b := range s.plan.base {
		judge(fmt.Sprintf("the line %d of before", b.product), b.product, s.atLeast(true), 1)
	}
	for _, op := range s.ops {
		if op.verb == adds {
			judge("the add "+op.name, op.product, s.atLeast(op.kept(s)), op.possible())
		}
	}
	return wrong
}

// atLeast is 1 of what must not be lost, unless carts may have lapsed.
func (s *schedule) atLeast(kept bool) int64 {
	if kept && !s.plan.forgetful {
		return 1
	}
	return 0
}

// kept reports whether an add was acknowledged, and no failover may have lost it.
func (o *operation) kept(s *schedule) bool {
	acknowledged := false
	for _, a := range o.attempts {
		r := a.result
		if r.unknown() || r.refused() != "" {
			continue
		}
		if r.durability == "confirmed" && !r.replayed {
			return true
		}
		acknowledged = true
	}
	if !acknowledged {
		return false
	}
	for _, a := range o.attempts {
		if s.shards[a.who.shard()].failovers > 0 {
			return false
		}
	}
	return true
}

// possible is how often an operation may have been carried out.
func (o *operation) possible() (n int64) {
	for _, a := range o.attempts {
		if !a.effectless() {
			n++
		}
	}
	if o.mayRepeat() {
		return n
	}
	return min(n, 1)
}

// checkVersions compares each answer with the ones that had ended before it began.
func (s *schedule) checkVersions() (wrong []string) {
	var answers []*request
	for _, op := range s.ops {
		for _, a := range op.attempts {
			if a.result.cart.ID != "" {
				answers = append(answers, a)
			}
		}
	}
	for _, first := range answers {
		for _, then := range answers {
			if first.end < then.call && first.result.cart.ID == then.result.cart.ID &&
				first.result.cart.Version > then.result.cart.Version {
				wrong = append(wrong, fmt.Sprintf("%s saw version %d after %s saw version %d of the same cart",
					then, then.result.cart.Version, first, first.result.cart.Version))
			}
		}
	}
	return wrong
}

// checkTokens checks that nothing waits under a token that a customer keeps sending,
// unless there is no room for it.
func (s *schedule) checkTokens(e ending) (wrong []string) {
	for _, who := range s.returning() {
		if !who.logsIn() {
			continue
		}
		guests := e.carts[caller{-1, who.token}.ref(s.store).CartKey()]
		own := e.carts[who.ref(s.store).CartKey()]
		if n := len(guests.Lines); n > 0 && int64(n+len(own.Lines)) <= 2*s.plan.setting.lines {
			wrong = append(wrong, fmt.Sprintf("under t%d still lies %s", who.token+1, linesOf(guests)))
		}
	}
	return wrong
}
