package redisstore_test

import (
	"fmt"
	"slices"
	"time"

	"commerce/cart/redisstore"
)

type decision int

const (
	goesOn      decision = iota
	diesBefore           // the process dies before it sends the command
	diesAfter            // the process dies before it has read the reply
	losesReply           // the command runs; the request sees a timeout
	losesGuest           // only the guest's commands in a pipeline fail
	sendsTwice           // the reply is lost and go-redis sends the command again
	arrivesLate          // the request sees a timeout; the command runs later
	unconfirmed          // WAIT ends before the replica has answered
)

func (d decision) String() string {
	return [...]string{
		"", "dies before", "dies after", "loses the reply", "loses the guest's part", "sends twice",
		"times out, arrives later", "not confirmed in time",
	}[d]
}

type move struct {
	weight int // how often a random schedule takes it, relative to the others
	do     func()
	of     *request // whose step it is; nil if no request's
	fault  bool
}

func (s *schedule) moves() []move {
	if s.last != nil && s.last.at != nil && s.last.steps == 0 {
		return s.stepsOf(s.last) // it has just begun, and has done nothing yet
	}
	if s.switches == 0 && s.last != nil && s.last.at != nil {
		return append(s.stepsOf(s.last), s.deliveries()...)
	}
	all := s.deliveries()
	for _, a := range s.live {
		all = append(all, s.stepsOf(a)...)
	}
	for _, op := range s.ops {
		if op.mayStart(s) {
			all = append(all, move{weight: 30, do: func() { s.start(op) }})
		}
	}
	if len(s.live) == 0 && (len(s.delayed) == 0 || s.plan.tardy) {
		return all // time and failovers matter only while a request or command is in flight
	}
	return append(append(all, s.times()...), s.failures()...)
}

func (s *schedule) deliveries() (all []move) {
	if s.plan.tardy {
		return nil
	}
	for i := range s.delayed {
		all = append(all, move{weight: 10, do: func() { s.deliver(i) }})
	}
	return all
}

func (s *schedule) stepsOf(a *request) []move {
	all := []move{{weight: 40, of: a, do: func() { s.resume(a, goesOn) }}}
	if s.faults == 0 {
		return all
	}
	for _, d := range a.at.faults() {
		all = append(all, move{weight: 1, of: a, fault: true, do: func() { s.resume(a, d) }})
	}
	if a.op.mayGiveUp(a) {
		all = append(all, move{weight: 2, of: a, fault: true, do: func() { s.abandon(a) }})
	}
	return all
}

func (p *pending) faults() []decision {
	all := []decision{diesBefore, diesAfter, losesReply}
	switch {
	case p.named("wait"):
		return append(all, unconfirmed)
	case p.asksMaster():
		return all
	}
	all = append(all, arrivesLate)
	if p.repeats() {
		all = append(all, sendsTwice)
	}
	if p.mixed() {
		all = append(all, losesGuest)
	}
	return all
}

// times lists the allowed jumps of the clock: none may delay a repeat past the time for
// which the service promises to recognize it.
func (s *schedule) times() []move {
	if s.jumps == 0 || slices.ContainsFunc(s.live, func(a *request) bool { return a.carries }) {
		return nil
	}
	var all []move
	for _, d := range s.plan.jumps {
		if s.mayPass(d) {
			all = append(all, move{weight: 4, do: func() {
				s.jumps--
				s.tried["clock jumps"]++
				s.advance(d)
				s.note("clock", "moves by "+d.String(), nil)
			}})
		}
	}
	return all
}

const (
	stampLife = 4*time.Minute + 50*time.Second
	keyLife   = 23*time.Hour + 50*time.Minute

	undoLife = 14*time.Minute + 50*time.Second // of what a merge has brought

	replicaLife = redisstore.ReplicasRemembered - time.Minute
)

func (s *schedule) mayPass(d time.Duration) bool {
	for _, sh := range s.shards {
		if sh.lags && s.plan.minReplicas == 0 && s.passed+d-sh.hasAt > replicaLife {
			return false // a replica that is this far behind does not become master
		}
	}
	for _, op := range s.ops {
		if len(op.attempts) == 0 || op.settled() {
			continue
		}
		age := s.passed - op.attempts[0].startedAt + d
		if op.stamp != "" && age > stampLife || op.key != "" && age > keyLife {
			return false
		}
	}
	return true
}

func (s *schedule) failures() []move {
	var all []move
	add := func(what string, sh shard, do func(shard)) {
		all = append(all, move{weight: 5, do: func() {
			do(sh)
			s.note(fmt.Sprintf("shard of %s", sh), what, nil)
		}})
	}
	for _, sh := range []shard{guestShard, customerShard} {
		r := &s.shards[sh]
		if !r.lags && s.failovers > 0 {
			add("replica stops answering", sh, func(sh shard) {
				s.fallBehind(sh)
				s.shards[sh].lagsFrom = s.tick()
			})
		}
		if !r.lags {
			continue
		}
		if r.listed {
			add("replica is dropped", sh, func(sh shard) { s.shards[sh].listed = false })
		}
		add("replica catches up", sh, s.catchUp)
		if s.failovers > 0 {
			add("fails over", sh, func(sh shard) {
				s.failovers--
				s.tried["failovers"]++
				s.failover(sh)
				s.shards[sh].lost = append(s.shards[sh].lost, span{s.shards[sh].lagsFrom, s.tick()})
			})
		}
	}
	return all
}
