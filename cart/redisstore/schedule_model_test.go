package redisstore_test

import (
	"fmt"
	"math"
	"time"

	"commerce/auth/problem"
	"commerce/cart"

	"github.com/anishathalye/porcupine"
)

// The model of all carts of a schedule. A guest's cart moves to a customer in two
// steps, each of which is atomic: it leaves its token, and it arrives. It may leave
// while a request with that token is under way, and arrive at any later time.

const (
	modelCustomers = 2
	modelTokens    = 2
	modelProducts  = 3
)

// contents are the quantities of the products 1 to 3 in one cart.
type contents [modelProducts]int64

func contentsOf(c cart.Cart) contents {
	var all contents
	for _, l := range c.Lines {
		all[l.ID.Product()-1] = l.Quantity
	}
	return all
}

// count is the number of lines.
func (c contents) count() (n int64) {
	for _, quantity := range c {
		n += min(quantity, 1)
	}
	return n
}

func (c contents) plus(other contents) contents {
	for i := range c {
		c[i] += other[i]
	}
	return c
}

// moving is a guest's cart between its token and its customer.
type moving struct {
	to    int // the customer, counted from 1; 0 for nobody
	lines contents
}

// carts is a state of the model.
type carts struct {
	customer [modelCustomers]contents
	guest    [modelTokens]contents
	transit  [modelTokens]moving
	logins   [modelCustomers][modelTokens]int // under way
}

func (c *carts) of(who caller) *contents {
	if who.customer < 0 {
		return &c.guest[who.token]
	}
	return &c.customer[who.customer]
}

// reachable lists c and all states that merges can make of it.
func (c carts) reachable() []carts {
	all := []carts{c}
	seen := map[carts]bool{c: true}
	for i := 0; i < len(all); i++ {
		for _, next := range all[i].merges() {
			if !seen[next] {
				seen[next] = true
				all = append(all, next)
			}
		}
	}
	return all
}

// merges lists what one step of a merge can make of c.
func (c carts) merges() []carts {
	var all []carts
	for t := range modelTokens {
		if to := c.transit[t].to; to != 0 {
			next := c
			next.customer[to-1] = c.customer[to-1].plus(c.transit[t].lines)
			next.transit[t] = moving{}
			all = append(all, next)
			continue
		}
		for customer := range modelCustomers {
			if c.logins[customer][t] > 0 && c.guest[t] != (contents{}) {
				next := c
				next.guest[t], next.transit[t] = contents{}, moving{customer + 1, c.guest[t]}
				all = append(all, next)
			}
		}
	}
	return all
}

// event is what happens to the model: an operation takes effect, a request shows a
// cart, a login begins or ends, or the schedule ends.
type event struct {
	op       *operation
	as       []caller // as one of whom it takes effect; none for no effect
	optional bool     // it may also have no effect
	shows    *reply   // nil when its answer was lost
	most     int64    // lines that a cart may hold

	login *caller // begins, or ends, by count
	count int

	ending *carts // what lies in Redis in the end
}

// reply is what a request's client learned.
type reply struct {
	who     caller
	refused problem.Code
	lines   contents
}

// step returns all states that an event may lead to.
func (e *event) step(from carts) []carts {
	var all []carts
	for _, c := range from.reachable() {
		switch {
		case e.login != nil:
			c.logins[e.login.customer][e.login.token] += e.count
			all = append(all, c)
			continue
		case e.ending != nil:
			if c.guest == e.ending.guest && c.customer == e.ending.customer && c.transit == e.ending.transit {
				all = append(all, c)
			}
			continue
		case len(e.as) == 0 || e.optional:
			if e.allows(c, c) {
				all = append(all, c)
			}
		}
		for _, who := range e.as {
			if next := e.op.effect(c, who); e.allows(c, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

// allows reports whether the answer could be what it was.
func (e *event) allows(before, after carts) bool {
	switch {
	case e.shows == nil:
		return true
	case e.shows.refused == problem.ItemNotFound:
		return e.op.verb == sets && before.of(e.shows.who)[e.op.product-1] == 0
	case e.shows.refused == problem.CartFull:
		lines := before.of(e.shows.who)
		return e.op.verb == adds && lines[e.op.product-1] == 0 && lines.count() >= e.most
	}
	return e.shows.refused == "" && *after.of(e.shows.who) == e.shows.lines &&
		(e.op.verb != sets || len(e.as) == 0 || before.of(e.shows.who)[e.op.product-1] > 0)
}

// effect is what an operation makes of the carts.
func (o *operation) effect(c carts, who caller) carts {
	lines := c.of(who)
	switch o.verb {
	case adds:
		lines[o.product-1] += o.quantity
	case sets:
		if lines[o.product-1] > 0 {
			lines[o.product-1] = o.quantity
		}
	case removes:
		lines[o.product-1] = 0
	case clears:
		*lines = contents{}
	}
	return c
}

var cartsModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{carts{}} },
	Step: func(state, input, _ any) []any {
		if start, ok := input.(carts); ok {
			return []any{start}
		}
		var all []any
		for _, next := range input.(*event).step(state.(carts)) {
			all = append(all, next)
		}
		return all
	},
}).ToModel()

const never = math.MaxInt64

// checkHistory asks whether the answers and the end can be explained by the model.
func (s *schedule) checkHistory(e ending) []string {
	history := []porcupine.Operation{{Input: s.beginning(), Call: -2, Return: -1}}
	note := func(e *event, call, end int64) {
		history = append(history, porcupine.Operation{Input: e, Call: call, Return: end})
	}
	for _, op := range s.ops {
		if len(op.attempts) > 0 {
			op.events(s.plan.setting.lines, note)
		}
	}
	for _, who := range s.returning() {
		if who.logsIn() {
			note(&event{login: &who, count: 1}, s.clock+1, s.clock+1)
		}
	}
	note(&event{ending: s.modelOf(e.carts)}, s.clock+2, never)
	switch porcupine.CheckOperationsTimeout(cartsModel, history, modelTime) {
	case porcupine.Illegal:
		return []string{fmt.Sprintf("no order of the operations explains the answers and the end: %s", e)}
	case porcupine.Unknown:
		return []string{"the model took too long"}
	}
	return nil
}

const modelTime = time.Minute

// events are what an operation may have done, and what its answers show.
func (o *operation) events(most int64, note func(e *event, call, end int64)) {
	var unseen []caller // as whom it may have taken effect
	done, replayed := false, int64(never)
	for _, a := range o.attempts {
		a.loginEvents(note)
		r := a.result
		if (r.unknown() || r.replayed) && !a.effectless() { // replayed: go-redis itself may have sent it twice
			unseen = append(unseen, a.who)
			if o.mayRepeat() {
				note(&event{op: o, as: []caller{a.who}, optional: true}, a.call, never)
			}
		}
		if r.unknown() {
			continue
		}
		shows := &event{op: o, most: most, shows: &reply{who: a.who, refused: r.refused(), lines: contentsOf(r.cart)}}
		switch {
		case r.replayed:
			replayed = min(replayed, a.end)
		case r.refused() == "" && o.verb != reads:
			shows.as, done = []caller{a.who}, true
		}
		note(shows, a.call, a.end)
	}
	if !done && o.verb != reads && len(unseen) > 0 {
		note(&event{op: o, as: unseen, optional: replayed == never}, o.attempts[0].call, replayed)
	}
}

// loginEvents say for how long an attempt may take a guest's cart in.
func (a *request) loginEvents(note func(e *event, call, end int64)) {
	if !a.who.logsIn() {
		return
	}
	note(&event{login: &a.who, count: 1}, a.call, a.call)
	if a.late == 0 {
		note(&event{login: &a.who, count: -1}, a.end, a.end)
	}
}

// beginning is what the carts hold before the schedule.
func (s *schedule) beginning() carts {
	var c carts
	for _, b := range s.plan.base {
		c.of(b.who)[b.product-1]++
	}
	return c
}

func (s *schedule) modelOf(found map[string]cart.Cart) *carts {
	var c carts
	for _, who := range s.everyone() {
		*c.of(who) = contentsOf(found[who.ref(s.store).CartKey()])
	}
	return &c
}

// String lists the carts that hold something.
func (e ending) String() string {
	text := ""
	for key, c := range e.carts {
		if len(c.Lines) > 0 {
			text += fmt.Sprintf(" %s [%s]", key, linesOf(c))
		}
	}
	return text
}
