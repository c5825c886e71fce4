package redisstore_test

import (
	"slices"
	"unique"

	"github.com/anishathalye/porcupine"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
)

// The model of all carts of a schedule. A guest's cart moves to its new owner in two
// steps, each of which is atomic: it leaves its token, and it arrives. It may leave
// while a request with that token is under way, and arrive at any later time.

const (
	modelCustomers = 2
	modelTokens    = 2
	modelMakers    = 2                         // operations that lead to a token: each redeems a code, or undoes a merge
	modelGuests    = modelTokens + modelMakers // with these tokens
)

// place is a cart, counted from 1: the customers', then the guests'. 0 is none.
type place int8

func (c caller) place() place {
	switch {
	case c.customer >= 0:
		return place(c.customer + 1)
	case c.token >= 0:
		return guestPlace(c.token)
	}
	return 0
}

type moving struct {
	to   place
	by   int8 // the number of the operation that takes it, counted from 1; 0 for a login
	cart contents

	removed bool // as in carts.removed, of where it comes from
}

type carts struct {
	customer [modelCustomers]contents
	guest    [modelGuests]contents
	transit  [modelGuests]moving
	logins   [modelCustomers][modelGuests]int8 // under way

	taking [modelMakers]int8  // redeems under way
	first  [modelTokens]bool  // the token still has its first cart
	named  [modelMakers]bool  // the token still has the cart that this operation's code names
	took   [modelMakers]bool  // the operation has taken that cart
	where  [modelMakers]place // to which it has taken it

	ordered  bool                    // an agent's order has taken effect
	removed  uint8                   // a bit for each place from which the plain line was removed beside the engraved one
	undoneBy [modelMakers]place      // whose undo has made the cart of the token; 0 once it has left
	came     unique.Handle[arrivals] // in schedules with an undo, the latest last; zero for none
}

func (c *carts) at(p place) *contents {
	if p <= modelCustomers {
		return &c.customer[p-1]
	}
	return &c.guest[p-modelCustomers-1]
}

func guestPlace(t int) place { return place(modelCustomers + t + 1) }

func (p place) bit() uint8 { return 1 << p }

// undoer returns the customer whose undo has made the cart of a token; 0 for none.
func (c *carts) undoer(token int) place {
	if token < modelTokens {
		return 0
	}
	return c.undoneBy[token-modelTokens]
}

func (c *carts) of(who caller) *contents { return c.at(who.place()) }

// reachable returns the states that follow from one, after those given.
func (e *event) reachable(c carts, all []carts) []carts {
	all = append(all, c)
	for i := 0; i < len(all); i++ { // there are few: a map of them takes longer
		for _, next := range e.next(all[i]) {
			if !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

func (e *event) next(c carts) []carts {
	var all []carts
	for t := range modelGuests {
		if m := c.transit[t]; m.to != 0 {
			next := c
			before := *c.at(m.to)
			*next.at(m.to) = before.merged(m.cart, e.setting.strategy)
			if e.undoes && m.to <= modelCustomers && (m.cart.count() > 0 || *next.at(m.to) != before) {
				next.arrive(t, m.to, before, *next.at(m.to))
			}
			if m.removed {
				next.removed |= m.to.bit()
			}
			next.transit[t] = moving{}
			if m.by > 0 {
				next.took[m.by-1], next.where[m.by-1] = true, m.to
			}
			all = append(all, next)
			continue
		}
		leaves := func(to place, by int8) {
			next := c
			next.guest[t], next.transit[t] = contents{}, moving{to, by, c.guest[t], c.removed&guestPlace(t).bit() != 0}
			next.removed &^= guestPlace(t).bit()
			e.forgetFirst(&next, t)
			all = append(all, next)
		}
		for customer := range modelCustomers {
			emptied := e.hasFirst(&c, t) || c.undoer(t) != 0
			undoer := c.undoer(t) == place(customer+1)
			if c.logins[customer][t] > 0 && (c.guest[t] != contents{} || emptied) && !undoer {
				leaves(place(customer+1), 0)
			}
		}
		for k, o := range e.taken {
			if o != nil && o.from == t && c.taking[k] > 0 && c.named[k] {
				for _, who := range o.owners() {
					leaves(who.place(), int8(k+1))
				}
			}
		}
		if (e.hasFirst(&c, t) || c.undoer(t) != 0) && c.guest[t] == (contents{}) { // an emptied cart lapses after a day
			next := c
			e.forgetFirst(&next, t)
			all = append(all, next)
		}
	}
	return all
}

// hasFirst reports whether the token still has its first cart, or one that a code names.
func (e *event) hasFirst(c *carts, t int) bool {
	for k, o := range e.taken {
		if o != nil && o.from == t && c.named[k] {
			return true
		}
	}
	return t < modelTokens && c.first[t]
}

// forgetFirst notes that the cart of a token has gone.
func (e *event) forgetFirst(c *carts, t int) {
	for k, o := range e.taken {
		if o != nil && o.from == t {
			c.named[k] = false
		}
	}
	if t < modelTokens {
		c.first[t] = false
	} else {
		c.undoneBy[t-modelTokens] = 0
	}
}

func (o *operation) owners() (all callers) {
	all.add(caller{-1, o.freshToken()})
	for _, who := range o.tries {
		if own := who.owner(); own.customer >= 0 || own.token >= 0 && own.token != o.from {
			all.add(own)
		}
	}
	return all
}

// event is what happens to the model: an operation takes effect, a request shows a
// cart, a login begins or ends, or the schedule ends.
type event struct {
	op        *operation
	setting   *setting
	as        []caller            // it takes effect as one of these callers; empty for no effect
	optional  bool                // it may also have no effect
	outcomes  []problem.Code      // of a list that takes effect; nil if no answer has them
	shows     *reply              // nil if the answer was lost
	merges    [modelCustomers]int // number of requests in the schedule that may begin a merge, by customer
	taken     [modelMakers]*operation
	undoes    bool // the schedule has an undo
	from      int8 // the token of the merge that is undone
	mayForget bool // the clock has moved by more than a removed line is remembered

	login *caller    // begins, or ends, by count
	take  *operation // likewise
	offer *operation // gets its code
	count int8

	ending    *carts            // what is in Redis at the end
	forgotten [modelMakers]bool // but nobody knows where this undo may have put what it took out
}

type reply struct {
	who     caller
	refused problem.Code
	cart    contents
	item    *cart.LineID // the line that the request changed; nil if the answer names none
	lapsed  bool         // it came when merges may not be known any more, or a code is no longer valid
}

func (e *event) step(from carts) (all []any) {
	for _, c := range e.reachable(from, make([]carts, 0, 4)) {
		switch {
		case e.take != nil:
			c.taking[e.take.maker] += e.count
			all = append(all, c)
			continue
		case e.offer != nil:
			if c.named[e.offer.maker] = true; c.guest[e.offer.from] == e.offer.offered {
				all = append(all, c)
			}
			continue
		case e.login != nil:
			c.logins[e.login.customer][e.login.token] += e.count
			all = append(all, c)
			continue
		case e.ending != nil:
			for i, forgotten := range e.forgotten {
				if t := modelTokens + i; forgotten {
					c.guest[t] = e.ending.guest[t]
				}
			}
			if c.guest == e.ending.guest && c.customer == e.ending.customer && c.transit == e.ending.transit {
				all = append(all, c)
			}
			continue
		case len(e.as) == 0 || e.optional:
			if e.allows(&c, &c) {
				all = append(all, c)
			}
		}
		for _, who := range e.as {
			if e.op.verb == undoes {
				for _, next := range e.undoings(c, who) {
					all = append(all, next)
				}
				continue
			}
			next := c
			own := next.of(who)
			if _, outcomes := e.op.listed(*own); e.outcomes != nil && !slices.Equal(outcomes, e.outcomes) {
				continue
			}
			for _, op := range e.named(&c, who) {
				*own = op.effect(*c.of(who))
				next.ordered = next.ordered || op.verb == orders
				if c.of(who).loses(own) {
					next.removed |= who.place().bit()
				}
				if e.allows(&c, &next) {
					all = append(all, next)
				}
			}
		}
	}
	return all
}

// named are the operation with what its product may name in a cart.
func (e *event) named(c *carts, who caller) []*operation {
	if e.op.product != engravable || c.removed&who.place().bit() == 0 {
		return []*operation{e.op}
	}
	op := *e.op
	op.namesNoOther = true
	if e.mayForget {
		return []*operation{e.op, &op}
	}
	return []*operation{&op}
}

func (e *event) allows(before, after *carts) bool {
	if e.shows == nil {
		return true
	}
	switch e.op.verb {
	case takes, undoes:
		return e.allowsTransfer(after)
	case browses, orders:
		return e.allowsAgent(after)
	}
	return slices.ContainsFunc(e.named(before, e.shows.who), func(op *operation) bool {
		named := *e
		named.op = op
		return named.allowsChange(before, after)
	})
}

func (e *event) allowsTransfer(after *carts) bool {
	if e.op.verb == takes {
		return e.allowsTaken(after)
	}
	return e.allowsUndone(after)
}

func (e *event) allowsChange(before, after *carts) bool {
	old, now := before.of(e.shows.who), after.of(e.shows.who)
	switch e.shows.refused {
	case "":
		missing := len(e.as) > 0 && e.lacksLine(old)
		return *now == e.shows.cart && !missing && e.namesItem(old, now)
	case problem.VersionMismatch:
		return *now == e.shows.cart
	case problem.ItemNotFound:
		return e.lacksLine(old)
	case problem.CartFull:
		return e.op.verb == adds && old.lines[e.op.line()].quantity == 0 &&
			(old.count() >= e.setting.lines || e.takesAllRoom(e.shows.who))
	case problem.CouponInvalid:
		return e.op.verb == redeems && e.op.coupon != 0 && len(e.as) == 0
	}
	return false
}

func (e *event) allowsTaken(c *carts) bool {
	t, own := e.op.from, int8(e.op.maker+1)
	took := c.took[e.op.maker]
	switch e.shows.refused {
	case "":
		return took && *c.of(e.shows.who) == e.shows.cart
	case problem.NotFound:
		if e.shows.lapsed {
			return true
		}
		// Somebody else has it, or another try has taken it to a cart that this one does not know
		unknown := c.where[e.op.maker] != caller{-1, e.op.freshToken()}.place() && c.where[e.op.maker] != e.shows.who.place() && len(e.op.tries) > 1
		return !took && !c.named[e.op.maker] && c.transit[t].by != own || took && unknown
	case problem.CartFull:
		return e.setting.lines < carttest.Limits.Lines
	}
	return false
}

// lacksLine reports whether the operation is refused for a line that does not exist.
func (e *event) lacksLine(c *contents) bool {
	if e.op.verb == lists {
		_, outcomes := e.op.listed(*c)
		return !e.op.each && refusesAny(outcomes)
	}
	return e.op.needsLine() && c.lines[e.op.target(c)].quantity == 0
}

// takesAllRoom reports whether merges may have reserved all the room in a cart. That takes two merges,
// or one of a cart into which another one was taken.
func (e *event) takesAllRoom(who caller) bool {
	return e.taken[0] != nil || who.customer >= 0 && e.merges[who.customer] > 1
}

// namesItem reports whether the answer names the changed line, if the cart still holds it.
func (e *event) namesItem(before, after *contents) bool {
	if e.shows.item == nil {
		return e.op.verb != adds && !e.op.needsLine()
	}
	item := *e.shows.item
	if e.op.verb == sets && len(e.as) == 0 && e.op.product == engravable { // the first try's line depends on the cart at that time
		return item == "" || after.lines[placeOf(item)].quantity > 0
	}
	changed := e.op.line()
	if e.op.verb == sets {
		changed = e.op.named(before)
	}
	removed := e.op.verb == sets && e.op.quantity == 0
	if removed || after.lines[changed].quantity == 0 {
		return item == ""
	}
	return item != "" && placeOf(item) == changed
}

// needsLine reports whether the operation is refused if its line does not exist.
func (o *operation) needsLine() bool { return o.verb == sets || o.verb == edits }

// target is the line that a request of needsLine names.
func (o *operation) target(c *contents) int {
	if o.verb == sets {
		return o.named(c)
	}
	return o.edited(c)
}

var cartsModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{carts{}} },
	Step: func(state, input, _ any) []any {
		if start, ok := input.(carts); ok {
			return []any{start}
		}
		return input.(*event).step(state.(carts))
	},
}).ToModel()
