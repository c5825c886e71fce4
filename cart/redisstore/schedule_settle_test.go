package redisstore_test

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"commerce/auth"
	"commerce/cart/handover"
)

func (s *schedule) lay() {
	var list []*operation
	for i, b := range s.plan.base {
		if list = append(list, b.list()...); i+1 == len(s.plan.base) || s.plan.base[i+1].who != b.who {
			s.must(s.inPeace("before", b.who, operation{verb: lists, list: list}).result.err)
			list = nil
		}
	}
	if s.plan.merged {
		login := s.inPeace("before", c1t1, operation{verb: reads}).result
		s.must(login.err)
		for _, op := range s.ops {
			op.merge = login.merge.ID
		}
	}
	for _, op := range s.ops {
		if op.verb == takes && !op.later {
			s.handOver(op)
		}
	}
	if s.plan.shared > 0 {
		for _, who := range s.everyone() {
			s.fillList(who)
		}
	}
	s.log, s.clock = nil, 0
}

// handOver makes the code that an operation redeems, unless there is nothing to hand over.
func (s *schedule) handOver(op *operation) bool {
	v, err := s.services[0].Visit(caller{-1, op.from}.auth(s.world))
	s.must(err)
	priced, err := s.services[0].Read(s.ctx, v)
	s.must(err)
	if len(priced.Lines) == 0 {
		return false
	}
	if op.later {
		op.offered, op.offeredAt, op.offeredIn = contentsOf(priced.Cart), s.passed, s.tick()
	}
	code := handover.New(s.services[0].Carts).OfferOf(v, priced.Cart, op.agent).Code
	sum, _ := s.keys.Derive(s.keys.Name(), "handover token", code, takeKey(op.maker))
	s.codes[op.maker], s.fresh[op.maker] = code, auth.CartToken(base64.RawURLEncoding.EncodeToString(sum[:16]))
	return true
}

// settle ends all faults. Then it makes every shopper return, with and without the tokens that
// they sent before, until notes are old and every merge is finished.
func (s *schedule) settle() error {
	for _, sh := range []shard{guestShard, customerShard} {
		s.catchUp(sh)
	}
	if err := cmp.Or(s.undoAgain(), s.retake()); err != nil {
		return err
	}
	for round := range settleRounds {
		if s.found = s.look(); s.quiet() {
			return nil
		}
		if round > 0 || !s.plan.hasty {
			s.advance(noteLife)
		}
		for _, who := range s.returning() {
			r := s.inPeace("end", who, operation{verb: reads}).result
			if r.err != nil {
				return fmt.Errorf("%s, after all faults ended: %w", who, r.err)
			}
			s.told[who] = r.merge
		}
	}
	s.found = s.look()
	return nil
}

// retake lets redeemers return with the code if a failover or time may have lost the claim.
func (s *schedule) retake() error {
	for _, op := range s.taken() {
		if op == nil || len(op.attempts) == 0 || s.plan.budgets.failovers == 0 && !s.plan.forgetful {
			continue
		}
		s.advance(noteLife)
		r := s.inPeace("end", op.tries[0].owner(), operation{verb: takes, maker: op.maker, from: op.from, agent: op.agent}).result
		if r.unknown() {
			return fmt.Errorf("%s, after all faults ended: %w", op.name, r.err)
		}
	}
	return nil
}

func (s *schedule) quiet() bool {
	waits := map[string]bool{}
	for _, who := range s.returning() {
		if who.logsIn() && !s.keepsOut(who) {
			waits[caller{-1, who.token}.ref(s.world).CartKey()] = true
		}
	}
	for _, key := range s.found {
		if strings.HasSuffix(key.key, ":claimed") || key.count("m") > 0 || waits[key.key] && key.count("i") > 0 {
			return false
		}
	}
	return true
}

// member returns the value of a member of a hash; "" if it does not have it.
func (k stored) member(name string) string {
	for i := 0; i < len(k.members); i += 2 {
		if k.members[i] == name {
			return k.members[i+1]
		}
	}
	return ""
}

func (k stored) count(letters string) (n int) {
	for i := 0; i < len(k.members); i += 2 {
		if strings.Contains(letters, k.members[i][:1]) {
			n++
		}
	}
	return n
}

const (
	settleRounds = 4
	noteLife     = 21 * time.Minute // notes are old by every clock
)

// returning lists each customer without a token and, unless the plan is silent, all logins.
func (s *schedule) returning() (all callers) {
	for _, op := range s.ops {
		for _, who := range op.tries {
			if who.logsIn() && !s.plan.silent {
				all.add(who)
			}
		}
	}
	for _, who := range s.everyone() {
		if who.customer >= 0 || s.taken()[0] != nil {
			all.add(who)
		}
	}
	return all
}

func (s *schedule) everyone() (all callers) {
	note := func(who caller) {
		if who.customer >= 0 {
			all.add(caller{who.customer, -1})
		}
		if who.token >= 0 {
			all.add(caller{-1, who.token})
		}
	}
	for _, b := range s.plan.base {
		note(b.who)
	}
	for _, op := range s.ops {
		for _, who := range op.tries {
			note(who)
		}
		if op.verb == takes {
			note(caller{-1, op.from})
		}
		if op.leads() {
			note(caller{-1, op.freshToken()})
		}
	}
	return all
}

// callers are different ones, in the order in which they were added.
type callers []caller

func (all *callers) add(who caller) {
	if !slices.Contains(*all, who) {
		*all = append(*all, who)
	}
}

// inPeace makes a request without faults, while no other request is running.
func (s *schedule) inPeace(name string, who caller, op operation) *request {
	op.name, op.tries = name, []caller{who}
	a := s.attempt(&op)
	s.spawn(a)
	for !a.over {
		s.resume(a, goesOn)
	}
	return a
}
