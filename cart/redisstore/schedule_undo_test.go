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

const modelMerges = 4 // of which the model knows what they have brought

type arrived struct {
	to     place // 0: nothing
	from   int8  // the guest's token
	undone bool
	lines  [modelLines]arrivedLine
	rest   contents // without lines: what it has brought besides
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
	notice, label byte
}

func (c *carts) arrive(from int, to place, before, after contents) {
	in := arrived{to: to, from: int8(from)}
	for i, l := range after.lines {
		held := before.lines[i]
		if l.quantity > held.quantity || l.notice != held.notice || l.label != held.label {
			in.lines[i] = arrivedLine{before: held.quantity, after: l.quantity}
			if held.notice == 0 {
				in.lines[i].notice = l.notice
			}
			if held.label == 0 {
				in.lines[i].label = l.label
			}
		}
	}
	in.rest.codes = after.codes &^ before.codes
	if before.buyer == 0 {
		in.rest.buyer = after.buyer
	}
	for m, value := range before.meta {
		if value == 0 {
			in.rest.meta[m] = after.meta[m]
		}
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
		rest := *l
		for _, other := range later {
			if other.to == in.to && !other.undone {
				takeOut(&rest.notice, other.lines[i].notice)
				takeOut(&rest.label, other.lines[i].label)
			}
		}
		if brought.before == 0 && (rest.notice != brought.notice || rest.label != brought.label) {
			continue
		}
		out := modelLine{uint8(n), takeOut(&l.notice, brought.notice), takeOut(&l.label, brought.label)}
		if l.quantity -= uint8(n); l.quantity == 0 {
			*l = modelLine{}
		}
		if n > 0 {
			taken.lines[i] = out
		}
	}
	left.codes, taken.codes = left.codes&^in.rest.codes, left.codes&in.rest.codes
	taken.buyer = takeOut(&left.buyer, in.rest.buyer)
	for m := range left.meta {
		taken.meta[m] = takeOut(&left.meta[m], in.rest.meta[m])
	}
	return left, taken
}

// takeOut takes out a text that has been brought, unless it has changed since.
func takeOut(text *byte, brought byte) (taken byte) {
	if *text == brought {
		*text = 0
		return brought
	}
	return 0
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

// undoings lists the states that undoing the merge into the cart of a customer may lead to.
func (e *event) undoings(c carts, who caller) (all []carts) {
	came := c.arrivals()
	for i, in := range came {
		if in.to == who.place() && in.from == e.from && !in.undone {
			next, then := c, came
			out := &next.guest[e.op.freshToken()]
			*next.of(who), *out = c.of(who).without(in, came[i+1:])
			then[i].undone = true
			for j := i + 1; j < len(then); j++ {
				then[j].lower(in.to, *out)
			}
			next.came, next.undoneBy[e.op.maker] = unique.Make(then), in.to
			all = append(all, next)
		}
	}
	return all
}

func (e *event) allowsUndone(c *carts) bool {
	came := c.arrivals()
	done := slices.ContainsFunc(came[:], func(in arrived) bool { return in.undone && in.from == e.from })
	if e.shows.refused == problem.NotFound {
		return e.shows.lapsed
	}
	return e.shows.refused == "" && done && *c.of(e.shows.who) == e.shows.cart
}

func (o *operation) undoEvents(set *setting, note func(e *event, call, end int64)) {
	told, from := int64(never), o.last().schedule.guestOf(o.merge)
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
		note(&event{op: o, from: from, setting: set, shows: shows}, a.call, a.end)
	}
	note(&event{op: o, from: from, setting: set, as: []caller{o.tries[0].owner()}, optional: told == never}, o.attempts[0].call, told)
}

// guestOf returns the token of the cart that a merge has brought. A token can bring several.
func (s *schedule) guestOf(merge string) int8 {
	for token := range modelGuests {
		if (caller{-1, token}).ref(s.world).TokenDigest() == s.memory.guests[merge] {
			return int8(token)
		}
	}
	panic("the merge " + merge + " has no note")
}

// undos are the operations that undo merges.
func (s *schedule) undos() (all []*operation) {
	for _, op := range s.ops {
		if op.verb == undoes && len(op.attempts) > 0 {
			all = append(all, op)
		}
	}
	return all
}

// mergeKnown returns the ID of the latest merge that a customer knows of and no operation undoes, "" for none.
func (s *schedule) mergeKnown(customer int) (id string) {
	latest := int64(0)
	for a := range s.requests() {
		if m := a.result.merge; a.who.customer == customer && a.over && !a.dead && m != nil && m.Code == "" && a.end > latest && !s.isUndone(m.ID) {
			id, latest = m.ID, a.end
		}
	}
	return id
}

func (s *schedule) isUndone(merge string) bool {
	return slices.ContainsFunc(s.ops, func(op *operation) bool { return op.merge == merge })
}

// undoAgain makes the shoppers who undid merges ask for the results, while they can be known.
func (s *schedule) undoAgain() error {
	if s.found != nil { // they have been asked for: since then, logins that the model does not know have merged more
		return nil
	}
	for _, op := range s.undos() {
		if err := s.askAgain(op); err != nil {
			return err
		}
	}
	return nil
}

// askAgain repeats an undo. Replicas that have not confirmed in time are asked again later.
func (s *schedule) askAgain(op *operation) error {
	for try := 0; ; try++ {
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
}

const slowReplicas = 2 * time.Second // for which replicas that were slow are not asked

func (s *schedule) checkUndos() (wrong []string) {
	for _, op := range s.undos() {
		if !op.mayBeForgotten() {
			wrong = append(wrong, s.checkUndo(op)...)
		}
	}
	return wrong
}

func (s *schedule) checkUndo(op *operation) (wrong []string) {
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

// forgotten reports for each undo whether nobody knows where it may have put what it took out.
func (s *schedule) forgotten() (all [modelMakers]bool) {
	for _, op := range s.undos() {
		all[op.maker] = s.fresh[op.maker] == ""
	}
	return all
}

// unknownToAll reports whether an undo that died has begun the cart, or one that was judged again.
func (s *schedule) unknownToAll(key stored) bool {
	return key.count("u") > 0 && !slices.ContainsFunc(s.undos(), func(op *operation) bool {
		return s.fresh[op.maker] != "" && key.key == (caller{-1, op.freshToken()}).ref(s.world).CartKey()
	})
}

// keepsOut reports whether a customer's requests do not merge the cart of the token: an undo of this customer has made it.
func (s *schedule) keepsOut(who caller) bool {
	key := caller{-1, who.token}.ref(s.world).CartKey()
	return slices.ContainsFunc(s.found, func(k stored) bool { return k.key == key && k.member("u") == who.ref(s.world).String() })
}

func (p *plan) drawUndos(c cast) {
	who := caller{c.IntN(c.customers), c.IntN(c.tokens)}
	n := 1
	if c.tokens > 1 {
		n += c.IntN(modelMakers)
	}
	for maker := range n {
		p.ops = append(p.ops, &operation{name: string(rune('A' + len(p.ops))), verb: reads, tries: []caller{who}})
		o := &operation{verb: undoes, maker: maker, insists: c.IntN(3) == 0, tries: []caller{who.owner()}}
		for range c.IntN(3) {
			o.tries = append(o.tries, who.owner())
		}
		if c.IntN(4) == 0 {
			o.tries[0].token = who.token
		}
		p.add(o, c)
		who.token = (who.token + 1) % c.tokens
	}
	for range c.IntN(3) {
		o := c.operation(int64(len(p.ops)))
		o.tries = []caller{{-1, modelTokens + c.IntN(n)}}
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
