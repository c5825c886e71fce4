package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

func (s *schedule) lay() {
	for _, b := range s.plan.base {
		add := operation{verb: adds, product: b.product, quantity: 1, engraved: b.engraved, notice: b.notice}
		s.must(s.inPeace("before", b.who, add).err)
		if b.coupon != 0 {
			s.must(s.inPeace("before", b.who, operation{verb: redeems, coupon: b.coupon}).err)
		}
	}
	s.log, s.clock = nil, 0
}

// settle ends all faults. Then it makes every shopper return, with and without the tokens that
// they sent before, until notes are old and every merge is finished.
func (s *schedule) settle() error {
	for _, sh := range []shard{guestShard, customerShard} {
		s.catchUp(sh)
	}
	for round := range settleRounds {
		if s.found = s.look(); s.quiet() {
			return nil
		}
		if round > 0 || !s.plan.hasty {
			s.advance(noteLife)
		}
		for _, who := range s.returning() {
			r := s.inPeace("end", who, operation{verb: reads})
			if r.err != nil {
				return fmt.Errorf("%s, after all faults ended: %w", who, r.err)
			}
			s.told[who] = r.merge
		}
	}
	s.found = s.look()
	return nil
}

func (s *schedule) quiet() bool {
	waits := map[string]bool{}
	for _, who := range s.returning() {
		if who.logsIn() {
			waits[caller{-1, who.token}.ref(s.store).CartKey()] = true
		}
	}
	for _, key := range s.found {
		if strings.HasSuffix(key.key, ":claimed") || key.count("m") > 0 || waits[key.key] && key.count("i") > 0 {
			return false
		}
	}
	return true
}

// count returns the number of members that begin with one of the letters.
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

// returning lists each customer without a token and, unless the plan is silent, all logins of the
// plan.
func (s *schedule) returning() (all callers) {
	for _, op := range s.ops {
		for _, who := range op.tries {
			if who.logsIn() && !s.plan.silent {
				all.add(who)
			}
		}
	}
	for _, who := range s.everyone() {
		if who.customer >= 0 {
			all.add(who)
		}
	}
	return all
}

// everyone lists the owner of each cart in the plan.
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
func (s *schedule) inPeace(name string, who caller, op operation) result {
	op.name, op.tries = name, []caller{who}
	a := s.attempt(&op)
	s.spawn(a)
	for !a.over {
		s.resume(a, goesOn)
	}
	return a.result
}
