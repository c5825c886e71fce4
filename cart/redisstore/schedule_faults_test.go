package redisstore_test

import (
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
	isLoading            // Redis refuses each command
	isMoving             // Redis refuses the script: its slot moves
)

func (d decision) String() string {
	return [...]string{
		"", "dies before", "dies after", "loses the reply", "loses the guest's part", "sends twice",
		"times out, arrives later", "not confirmed in time", "is loading", "slot moves",
	}[d]
}

// move is what may happen next: a step of a request with a decision, its client's giving up, the start of an operation, the
// arrival of a delayed command, a jump of the clock, or an event of a shard.
type move struct {
	kind   moveKind
	weight int // how often a random schedule takes it, relative to the others
	fault  bool
	of     *request // whose step it is; nil if no request's
	how    decision
	op     *operation
	late   int // the number of the delayed command
	by     time.Duration
	shard  shard
}

type moveKind int

const (
	steps moveKind = iota
	givesUp
	starts
	arrives
	hears // an announcement
	passes
	lags
	isDropped
	catchesUp
	failsOver
)

func (s *schedule) make(m *move) {
	switch m.kind {
	case steps:
		s.resume(m.of, m.how)
	case givesUp:
		s.abandon(m.of)
	case starts:
		s.start(m.op)
	case arrives:
		s.deliver(m.late)
	case hears:
		m.op.follower.hear()
	case passes:
		s.jumps--
		s.tried["clock jumps"]++
		s.advance(m.by)
		for _, a := range s.live {
			a.overdue = a.overdue || m.by > requestLife
		}
		s.note("clock", "moves by ", m.by, nil)
	default:
		s.event(m.kind, m.shard)
	}
}

// event is one of a shard.
func (s *schedule) event(kind moveKind, sh shard) {
	what := ""
	switch kind {
	case lags:
		what = "replica stops answering"
		s.stalls--
		s.fallBehind(sh)
		s.shards[sh].lagsFrom = s.tick()
	case isDropped:
		what = "replica is dropped"
		s.shards[sh].listed = false
	case catchesUp:
		what = "replica catches up"
		s.catchUp(sh)
	case failsOver:
		what = "fails over"
		s.failovers--
		s.tried["failovers"]++
		s.failover(sh)
		s.shards[sh].lost = append(s.shards[sh].lost, span{s.shards[sh].lagsFrom, s.tick()})
	}
	s.note("shard of "+sh.String(), what, nil, nil)
}

// moves lists all that may happen next. The list is valid until the next call.
func (s *schedule) moves() []move {
	all := s.next[:0]
	defer func() { s.next = all }()
	if s.last != nil && s.last.at != nil && s.last.steps == 0 {
		all = s.stepsOf(all, s.last) // it has just begun, and has done nothing yet
		return all
	}
	if s.switches == 0 && s.last != nil && s.last.at != nil {
		all = s.deliveries(s.stepsOf(all, s.last))
		return all
	}
	all = s.deliveries(all)
	for _, a := range s.live {
		all = s.stepsOf(all, a)
	}
	for _, op := range s.ops {
		if op.mayStart(s) {
			all = append(all, move{kind: starts, weight: 30, op: op})
		}
		if op.follower != nil && len(op.follower.inbox) > 0 {
			all = append(all, move{kind: hears, weight: 10, op: op})
		}
	}
	if len(s.live) == 0 && (len(s.delayed) == 0 || s.plan.tardy) {
		return all // time and failovers matter only while a request or command is in flight
	}
	all = s.failures(s.times(all))
	return all
}

func (s *schedule) deliveries(all []move) []move {
	if s.plan.tardy {
		return all
	}
	for i := range s.delayed {
		all = append(all, move{kind: arrives, weight: 10, late: i})
	}
	return all
}

func (s *schedule) stepsOf(all []move, a *request) []move {
	all = append(all, move{kind: steps, weight: 40, of: a, how: goesOn})
	if s.faults == 0 {
		return all
	}
	for _, d := range a.at.faults() {
		all = append(all, move{kind: steps, weight: 1, of: a, fault: true, how: d})
	}
	if a.op.mayGiveUp(a) {
		all = append(all, move{kind: givesUp, weight: 2, of: a, fault: true})
	}
	return all
}

var faultsOfWait = []decision{diesBefore, diesAfter, losesReply, unconfirmed}

func (p *pending) faults() []decision {
	switch {
	case p.named("wait"):
		return faultsOfWait
	case p.asksMaster():
		return faultsOfWait[:3]
	}
	all := append(make([]decision, 0, 8), diesBefore, diesAfter, losesReply, arrivesLate, isLoading)
	if p.named("evalsha") {
		all = append(all, isMoving)
	}
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
func (s *schedule) times(all []move) []move {
	if s.jumps == 0 {
		return all
	}
	for _, d := range s.plan.jumps {
		if s.mayPass(d) {
			all = append(all, move{kind: passes, weight: 4, by: d})
		}
	}
	return all
}

const (
	stampLife = 4*time.Minute + 50*time.Second
	keyLife   = 23*time.Hour + 50*time.Minute

	requestLife = 2 * time.Minute // more than all budgets of a request, one after the other

	codeLife = 44 * time.Minute // of a hand-over, by each clock that is not wrong

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
		// Its redeemer returns in the hour of the code, by the clock of another instance: see retake.
		if apart := (s.plan.skew[0] - s.plan.skew[1]).Abs(); op.verb == takes && len(op.attempts) > 0 && s.passed+d+noteLife > codeLife-min(apart, codeLife/2) {
			return false
		}
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

func (s *schedule) failures(all []move) []move {
	for _, sh := range []shard{guestShard, customerShard} {
		r := &s.shards[sh]
		if !r.lags && s.failovers > 0 && s.stalls != 0 {
			all = append(all, move{kind: lags, weight: 5, shard: sh})
		}
		if !r.lags {
			continue
		}
		if r.listed {
			all = append(all, move{kind: isDropped, weight: 5, shard: sh})
		}
		all = append(all, move{kind: catchesUp, weight: 5, shard: sh})
		if s.failovers > 0 {
			all = append(all, move{kind: failsOver, weight: 5, shard: sh})
		}
	}
	return all
}
