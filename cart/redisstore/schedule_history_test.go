package redisstore_test

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"commerce/auth/problem"
	"commerce/cart"
)

const never = math.MaxInt64

func (s *schedule) checkHistory(e ending) []string {
	history := []porcupine.Operation{{Input: s.beginning(), Call: -2, Return: -1}}
	merges, taken, undo := s.mayMerge(), s.taken(), len(s.undos()) > 0
	note := func(e *event, call, end int64) {
		e.merges, e.taken, e.undoes, e.mayForget = merges, taken, undo, s.passed >= 5*time.Minute
		history = append(history, porcupine.Operation{Input: e, Call: call, Return: end})
	}
	set := &s.plan.setting
	for _, op := range s.ops {
		if len(op.attempts) > 0 {
			op.events(set, note)
		}
	}
	for _, who := range s.returning() {
		if who.logsIn() {
			note(&event{setting: set, login: &who, count: 1}, s.clock+1, s.clock+1)
		}
	}
	note(&event{setting: set, ending: s.modelOf(e.carts), forgotten: s.forgotten()}, s.clock+2, never)
	switch porcupine.CheckOperationsTimeout(cartsModel, history, modelTime) {
	case porcupine.Illegal:
		return []string{fmt.Sprintf("no order of the operations explains the answers and the end: %s", e)}
	case porcupine.Unknown:
		return []string{"the model took too long"}
	}
	return nil
}

const modelTime = time.Minute

func (s *schedule) mayMerge() (n [modelCustomers]int) {
	for a := range s.requests() {
		if a.who.logsIn() || a.op.verb == takes && a.who.customer >= 0 {
			n[a.who.customer]++
		}
	}
	return n
}

func (s *schedule) taken() (all [modelMakers]*operation) {
	for _, op := range s.ops {
		if op.verb == takes {
			all[op.maker] = op
		}
	}
	return all
}

// loginsOfTaker calls do with each login of a customer who may have taken the cart as a guest.
func (o *operation) loginsOfTaker(do func(caller)) {
	for _, who := range o.tries {
		if who.customer >= 0 {
			do(caller{who.customer, o.freshToken()})
		}
	}
}

func (o *operation) takeEvents(set *setting, note func(e *event, call, end int64)) {
	if o.later {
		note(&event{setting: set, offer: o}, o.offeredIn, o.offeredIn)
	}
	for _, a := range o.attempts {
		a.loginEvents(set, note)
		count := func(n int8, at int64) {
			note(&event{setting: set, take: o, count: n}, at, at)
			o.loginsOfTaker(func(login caller) { note(&event{setting: set, login: &login, count: n}, at, at) })
		}
		count(1, a.call)
		if a.late == 0 {
			count(-1, a.end)
		}
		if r := a.result; !r.unknown() {
			note(&event{op: o, setting: set, shows: &reply{who: r.where, refused: r.refused(), cart: contentsOf(r.cart), lapsed: a.endedAt-o.offeredAt >= codeLife}}, a.call, a.end)
		}
	}
}

// events notes what an operation may have done, and what its answers show.
func (o *operation) events(set *setting, note func(e *event, call, end int64)) {
	switch o.verb {
	case takes:
		o.takeEvents(set, note)
		return
	case undoes:
		o.undoEvents(set, note)
		return
	case browses, orders:
		o.agentEvents(set, note)
		return
	case shares, opens, unshares, follows:
		for _, a := range o.attempts {
			a.loginEvents(set, note)
		}
		return
	}
	var unseen []caller // callers as whom it may have taken effect
	done, replayed := false, int64(never)
	var outcomes []problem.Code // that a replay has told
	for _, a := range o.attempts {
		a.loginEvents(set, note)
		r := a.result
		if (r.unknown() || r.replayed) && !a.effectless() { // a replay may mean that go-redis sent it twice
			unseen = append(unseen, a.who)
			if o.mayRepeat() {
				note(&event{op: o, setting: set, as: []caller{a.who}, optional: true}, a.call, never)
			}
		}
		for range a.twice {
			if o.mayRepeat() {
				note(&event{op: o, setting: set, as: []caller{a.who}, optional: true}, a.call, never)
			}
		}
		if r.unknown() {
			continue
		}
		shows := &event{op: o, setting: set, shows: &reply{who: a.who, refused: r.refused(), cart: contentsOf(r.cart), item: r.item}}
		switch {
		case r.replayed:
			replayed = min(replayed, a.end)
			if r.outcomes != nil {
				outcomes = r.outcomes
			}
		case r.refused() == "" && o.verb != reads:
			shows.as, shows.outcomes, done = []caller{a.who}, r.outcomes, true
		}
		note(shows, a.call, a.end)
	}
	if !done && o.verb != reads && len(unseen) > 0 {
		note(&event{op: o, setting: set, as: unseen, optional: replayed == never, outcomes: outcomes}, o.attempts[0].call, replayed)
	}
}

// loginEvents notes from when until when an attempt may merge a guest's cart.
func (a *request) loginEvents(set *setting, note func(e *event, call, end int64)) {
	if !a.who.logsIn() {
		return
	}
	note(&event{setting: set, login: &a.who, count: 1}, a.call, a.call)
	if a.late == 0 {
		note(&event{setting: set, login: &a.who, count: -1}, a.end, a.end)
	}
}

func (s *schedule) beginning() carts {
	var c carts
	for _, b := range s.plan.base {
		own := c.of(b.who)
		l := &own.lines[b.line()]
		l.quantity++
		l.notice, l.label = cmp.Or(b.notice, l.notice), cmp.Or(b.label, l.label)
		own.codes |= codesOf(b.coupon)
		own.buyer = cmp.Or(b.country, own.buyer)
		if b.label != 0 {
			own.meta[b.labeled()-1] = b.label
		}
		if b.who.customer < 0 {
			c.first[b.who.token] = true
		}
	}
	for k, o := range s.taken() {
		c.named[k] = o != nil && !o.later
	}
	if s.plan.merged {
		own, before := c.of(c1), *c.of(c1)
		*own = before.merged(*c.of(guestT1), s.plan.strategy)
		c.arrive(0, c1.place(), before, *own)
		*c.of(guestT1), c.first[0] = contents{}, false
	}
	return c
}

func (s *schedule) modelOf(found map[string]cart.Cart) *carts {
	var c carts
	for _, who := range s.everyone() {
		*c.of(who) = contentsOf(found[who.ref(s.world).CartKey()])
	}
	return &c
}

func (e ending) String() string {
	text := ""
	for key, c := range e.carts {
		if len(c.Lines) > 0 {
			text += fmt.Sprintf(" %s [%s]", key, linesOf(c))
		}
	}
	return text
}
