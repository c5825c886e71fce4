package redisstore_test

import (
	"slices"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/problem"
)

// An operation that undoes the latest merge that its customer knows of. In the model, what a merge has brought is
// kept when it arrives, and one step takes it out of the customer's cart and puts it under a token that nobody knows
// before an answer tells it.

const (
	undoneToken = modelTokens // the token to which an undo leads; no schedule also has a take
	modelMerges = 4           // of which the model knows what they have brought
)

type arrived struct {
	to     place // 0: nothing
	undone bool
	lines  [modelLines]arrivedLine
	coupon byte
}

type arrivals [modelMerges]arrived

// arrivals are what the latest merges have brought. The model holds a handle, because it compares many states.
func (c *carts) arrivals() (all arrivals) {
	if c.came != (unique.Handle[arrivals]{}) {
		all = c.came.Value()
	}
	return all
}

type arrivedLine struct {
	before, after uint8
	notice        byte
}

func (c *carts) arrive(to place, before, after contents) {
	in := arrived{to: to}
	for i, l := range after.lines {
		held := before.lines[i]
		if l.quantity > held.quantity || l.notice != held.notice {
			in.lines[i] = arrivedLine{before: held.quantity, after: l.quantity}
			if held.notice == 0 {
				in.lines[i].notice = l.notice
			}
		}
	}
	if before.coupon == 0 {
		in.coupon = after.coupon
	}
	all := c.arrivals()
	copy(all[:], all[1:])
	all[modelMerges-1] = in
	c.came = unique.Make(all)
}

// without takes what has arrived out of a customer's cart. What has arrived later is no change of the shopper's.
func (c contents) without(in arrived, later []arrived) (left, taken contents) {
	left = c
	for i, brought := range in.lines {
		l := &left.lines[i]
		n := max(0, min(int(brought.after)-int(brought.before), int(l.quantity)-int(brought.before)))
		rest := l.notice
		for _, other := range later {
			if other.to == in.to && !other.undone && rest == other.lines[i].notice {
				rest = 0
			}
		}
		if brought.before == 0 && rest != brought.notice {
			continue
		}
		notice := byte(0)
		if l.notice == brought.notice {
			notice, l.notice = l.notice, 0
		}
		if l.quantity -= uint8(n); l.quantity == 0 {
			l.notice = 0
		}
		if n > 0 {
			taken.lines[i].quantity, taken.lines[i].notice = uint8(n), notice
		}
	}
	if in.coupon != 0 && left.coupon == in.coupon {
		left.coupon, taken.coupon = 0, in.coupon
	}
	return left, taken
}

// lower notes that lines below what has arrived have left.
func (a *arrived) lower(at place, gone contents) {
	for i, l := range gone.lines {
		if in := &a.lines[i]; a.to == at {
			n := min(l.quantity, in.before)
			in.before, in.after = in.before-n, in.after-n
		}
	}
}

// undoings lists the states that undoing one of the merges into the cart of a customer may lead to.
func (c carts) undoings(who caller) (all []carts) {
	came := c.arrivals()
	for i, in := range came {
		if in.to == who.place() && !in.undone {
			next, then := c, came
			*next.of(who), next.guest[undoneToken] = c.of(who).without(in, came[i+1:])
			then[i].undone = true
			for j := i + 1; j < len(then); j++ {
				then[j].lower(in.to, next.guest[undoneToken])
			}
			next.came, next.undoneBy = unique.Make(then), in.to
			all = append(all, next)
		}
	}
	return all
}

func (e *event) allowsUndone(c *carts) bool {
	came := c.arrivals()
	done := slices.ContainsFunc(came[:], func(in arrived) bool { return in.undone })
	if e.shows.refused == problem.NotFound {
		return e.shows.lapsed
	}
	return e.shows.refused == "" && done && *c.of(e.shows.who) == e.shows.cart
}

func (o *operation) undoEvents(set *setting, note func(e *event, call, end int64)) {
	told := int64(never)
	for _, a := range o.attempts {
		a.loginEvents(set, note)
		r := a.result
		if r.unknown() {
			continue
		}
		if r.refused() == "" {
			told = min(told, a.end)
		}
		shows := &reply{who: a.who.owner(), refused: r.refused(), cart: contentsOf(r.cart), lapsed: a.endedAt >= undoLife}
		note(&event{op: o, setting: set, shows: shows}, a.call, a.end)
	}
	note(&event{op: o, setting: set, as: []caller{o.tries[0].owner()}, optional: told == never}, o.attempts[0].call, told)
}

// undo is the operation that undoes a merge; nil if there is none.
func (s *schedule) undo() *operation {
	for _, op := range s.ops {
		if op.verb == undoes && len(op.attempts) > 0 {
			return op
		}
	}
	return nil
}

// mergeKnown returns the ID of the latest merge that a customer knows of, "" for none.
func (s *schedule) mergeKnown(customer int) (id string) {
	latest := int64(0)
	for a := range s.requests() {
		if m := a.result.merge; a.who.customer == customer && a.over && !a.dead && m != nil && m.Code == "" && a.end > latest {
			id, latest = m.ID, a.end
		}
	}
	return id
}

// undoAgain makes the shopper who undid a merge ask for the result, while it can be known. Replicas that have not
// confirmed in time are asked again later.
func (s *schedule) undoAgain() error {
	op := s.undo()
	if s.found != nil { // it has been asked for: since then, logins that the model does not know have merged more
		return nil
	}
	for try := 0; op != nil; try++ {
		op.tries = append(op.tries[:len(op.attempts):len(op.attempts)], op.tries[0])
		a := s.attempt(op)
		s.spawn(a)
		for !a.over {
			s.resume(a, goesOn)
		}
		if !a.result.unknown() {
			return nil
		}
		if try == settleRounds {
			return a.result.err
		}
		s.advance(slowReplicas)
	}
	return nil
}

const slowReplicas = 2 * time.Second // for which replicas that were slow are not asked

func (s *schedule) checkUndo() (wrong []string) {
	op := s.undo()
	if op == nil || op.mayBeForgotten() {
		return nil
	}
	var first *request
	for _, a := range op.attempts {
		switch {
		case a.result.undone == nil:
		case first == nil:
			first = a
			s.tried["undone"]++
		case a.result.undone.Guest != first.result.undone.Guest, !cmp.Equal(a.result.undone.Adjusted, first.result.undone.Adjusted):
			wrong = append(wrong, a.String()+" answers otherwise than "+first.String())
		}
	}
	return wrong
}

// forgotten reports whether nobody knows where an undo may have put what it took out.
func (s *schedule) forgotten() bool { return s.undo() != nil && s.undone == "" }

// unknownToAll reports whether an undo that died has begun the cart, or one that was judged again.
func (s *schedule) unknownToAll(key stored) bool {
	return key.count("u") > 0 && (s.undone == "" || key.key != (caller{-1, undoneToken}).ref(s.world).CartKey())
}

// keepsOut reports whether a customer's requests do not merge the cart of the token.
func (s *schedule) keepsOut(who caller) bool {
	op := s.undo()
	return who.token == undoneToken && op != nil && op.tries[0].customer == who.customer
}

func (p *plan) drawUndo(c cast) {
	who := caller{c.IntN(c.customers), c.IntN(c.tokens)}
	p.ops = append(p.ops, &operation{name: string(rune('A' + len(p.ops))), verb: reads, tries: []caller{who}})
	o := &operation{verb: undoes, insists: c.IntN(3) == 0, tries: []caller{who.owner()}}
	for range c.IntN(3) {
		o.tries = append(o.tries, who.owner())
	}
	if c.IntN(4) == 0 {
		o.tries[0].token = who.token
	}
	p.add(o, c)
	for range c.IntN(3) {
		o := c.operation(int64(len(p.ops)))
		o.tries = []caller{{-1, undoneToken}}
		switch c.IntN(4) {
		case 0:
			o.tries[0].customer = who.customer
		case 1:
			o.tries[0].customer = c.IntN(c.customers)
		}
		if o.verb == erases || p.counted && o.verb != adds && o.verb != edits {
			o.verb = reads
		}
		p.add(o, c)
	}
}
