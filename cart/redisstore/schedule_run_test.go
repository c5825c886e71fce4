package redisstore_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cart"
	"commerce/cart/redisstore"
)

// plan is the input of a schedule: the operations, and how much may go wrong.
type plan struct {
	setting
	base  []base // the lines in the carts at the start
	ops   []*operation
	jumps []time.Duration // by which the clock may move
	budgets
	counted   bool // each add has its own product, and the final lines are counted
	silent    bool // customers finally return without the tokens that they sent
	hasty     bool // customers return immediately, when notes are not old yet
	tardy     bool // delayed commands arrive after everything else has ended
	merged    bool // the first customer has brought the first token's cart at the start, and knows it
	forgetful bool // enough time may pass for carts to expire
	shared    int  // how many shares each cart has at the start
}

// budgets limit how often each kind of event may happen in a schedule; negative for no
// limit.
type budgets struct {
	faults    int
	jumpsLeft int
	failovers int
	stalls    int // how often a replica may stop answering
	switches  int // to another request while the current one could continue
}

type base struct {
	who      caller
	product  int64
	engraved bool
	notice   byte // 0 for none
	coupon   byte // redeemed after the line was added; 0 for none

	label, country byte // of the cart; the name of its label is from the product
}

func (b base) line() int { return (&operation{product: b.product, engraved: b.engraved}).line() }

// list are the operations that lay the line, and what comes with it.
func (b base) list() []*operation {
	all := []*operation{{verb: adds, product: b.product, quantity: 1, engraved: b.engraved, notice: b.notice, label: b.label}}
	if b.label != 0 {
		all = append(all, &operation{verb: labels, product: b.labeled(), label: b.label})
	}
	if b.country != 0 {
		all = append(all, &operation{verb: locates, country: b.country})
	}
	if b.coupon != 0 {
		all = append(all, &operation{verb: redeems, coupon: b.coupon})
	}
	return all
}

// labeled is the number of the label that the cart gets: another one for each line, if lines are counted.
func (b base) labeled() int64 {
	if b.product >= firstBase {
		return b.product
	}
	return min(b.product, modelLabels)
}

type schedule struct {
	*world
	plan plan
	ops  []*operation

	faults, jumps, failovers, stalls, switches int // still allowed

	threads *threads
	live    []*request
	next    []move // the list of moves, used again
	delayed []delayed
	last    *request // the request that ran last
	stopped chan *request
	clock   int64                                 // of the history
	seen    map[caller]etag                       // the version that the client of each cart saw last
	shown   [modelTokens]func(cart.LineID) string // the IDs of lines that the agent of a token has seen last
	found   []stored                              // in Redis after the schedule
	told    map[caller]*cart.MergeReport          // by the last read of each shopper
	tells   bool                                  // its story
	log     []entry
	tried   tried
}

type entry struct {
	who, what string
	cmds      []redis.Cmder // with their replies
}

func newSchedule(w *world, p plan, t *threads) *schedule {
	for _, op := range p.ops {
		if op.verb == follows {
			op.follower = &follower{who: op.tries[0]}
			w.memory.followers = append(w.memory.followers, op.follower)
		}
	}
	return &schedule{
		world: w, plan: p, threads: t, ops: p.ops, stopped: make(chan *request),
		seen: map[caller]etag{}, told: map[caller]*cart.MergeReport{}, tried: w.memory.tried,
		faults: p.budgets.faults, jumps: p.jumpsLeft, failovers: p.budgets.failovers, stalls: p.stalls, switches: p.budgets.switches,
	}
}

func (s *schedule) run(c chooser) {
	for {
		moves := s.moves()
		if len(moves) == 0 {
			return
		}
		m := &moves[c.choose(moves)]
		if m.fault {
			s.faults--
			s.tried["faults"]++
		}
		if m.of != nil {
			if s.last != m.of && s.last != nil && s.last.at != nil {
				s.switches--
			}
			s.last = m.of
		}
		s.make(m)
	}
}

// start sends the (next) request of an operation, up to its first command.
func (s *schedule) start(op *operation) {
	if len(op.attempts) > 0 && op.stamp != "" { // the published client waits before it repeats
		s.advance(1200 * time.Millisecond)
	}
	if len(op.attempts) > 0 && op.verb == orders { // no attempt overlaps with the next
		s.advance(time.Minute + time.Second)
		for _, a := range op.attempts {
			a.overdue = true
		}
	}
	if op.later && len(op.attempts) == 0 && !s.handOver(op) {
		op.tries = nil
		return
	}
	a := s.attempt(op)
	if s.last != nil && s.last.at != nil {
		s.switches--
	}
	s.last = a
	s.spawn(a)
}

// attempt returns the next request of an operation, not started yet.
func (s *schedule) attempt(op *operation) *request {
	n := len(op.attempts)
	a := &request{
		schedule: s, op: op, number: n, who: op.tries[n], decide: make(chan decision),
		service: s.services[(int(op.name[0])+n)%len(s.services)],
		call:    s.tick(), startedAt: s.passed,
	}
	if n == 0 {
		op.ifMatch = s.seen[a.who.owner()]
		if op.verb == orders {
			op.shown = s.shown[a.who.token]
		}
	}
	if op.made != nil && op.code == "" {
		op.code = op.made.answered()
	}
	if op.verb == undoes && op.merge == "" {
		op.merge = s.mergeKnown(a.who.customer)
	}
	op.attempts = append(op.attempts, a)
	return a
}

func (s *schedule) spawn(a *request) {
	s.live = append(s.live, a)
	a.thread = s.threads.take()
	a.thread <- func() { a.run(context.WithValue(s.ctx, requestKey{}, a)) }
	s.await()
}

func (s *schedule) resume(a *request, d decision) {
	a.steps++
	s.note(a.String(), d.String(), nil, a.at.cmds)
	if d == arrivesLate {
		s.advance(scheduleBudget + time.Second) // the time until the timeout
	}
	a.decide <- d
	s.await()
}

// await waits until the running request stops before a command or ends.
func (s *schedule) await() {
	a := <-s.stopped
	if !a.over {
		return
	}
	s.threads.give(a.thread)
	a.end, a.endedAt = s.tick(), s.passed
	if c := a.result.cart; c.ID != "" {
		s.seen[a.who.owner()] = etagOf(c)
	}
	s.live = slices.DeleteFunc(slices.Clone(s.live), func(other *request) bool { return other == a })
	s.note(a.String(), "ends: ", a.result, nil)
}

func (s *schedule) abandon(a *request) {
	a.abandoned = true
	s.note(a.String(), "client disconnects, request continues", nil, nil)
}

func (s *schedule) tick() int64 { s.clock++; return s.clock }

// note logs what happens, if the schedule is to tell its story. what and how are put together by then.
func (s *schedule) note(who, what string, how fmt.Stringer, cmds []redis.Cmder) {
	if !s.tells {
		return
	}
	if how != nil {
		what += how.String()
	}
	s.log = append(s.log, entry{who, what, cmds})
}

func (s *schedule) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %+v\n", s.plan.setting)
	for _, line := range s.plan.base {
		fmt.Fprintf(&b, "  before: %s adds %d×1, engraved: %v, notice %q, coupon %q, label %q, country %q\n",
			line.who, line.product, line.engraved, noticeOf(line.notice), couponOf(line.coupon), line.label, line.country)
	}
	for _, op := range s.ops {
		fmt.Fprintf(&b, "  %s\n", op)
	}
	for _, e := range s.log {
		fmt.Fprintf(&b, "  %-4s %s", e.who, s.names(e.cmds))
		if e.what != "" {
			fmt.Fprintf(&b, " · %s", e.what)
		}
		if len(e.cmds) > 0 {
			fmt.Fprintf(&b, " → %s", firstWords(e.cmds))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *schedule) requests() iter.Seq[*request] {
	return func(yield func(*request) bool) {
		for _, op := range s.ops {
			for _, a := range op.attempts {
				if !yield(a) {
					return
				}
			}
		}
	}
}

func (s *schedule) names(cmds []redis.Cmder) string {
	names := make([]string, len(cmds))
	for i, cmd := range cmds {
		names[i] = cmd.Name()
		if cmd.Name() == "evalsha" {
			names[i] = redisstore.ScriptName
		}
		if key := keyOf(cmd); key != "" {
			names[i] += " " + strings.Replace(key, fmt.Sprintf("{%d:", s.store.ID), "{", 1)
		}
	}
	return strings.Join(names, " + ")
}

func firstWords(cmds []redis.Cmder) string {
	words := make([]string, len(cmds))
	for i, cmd := range cmds {
		if cmd.Err() != nil {
			words[i] = cmd.Err().Error()
			continue
		}
		_, reply, _ := strings.Cut(cmd.String(), ": ")
		words[i] = strings.ReplaceAll(reply[:min(len(reply), 60)], "\n", " ")
	}
	return strings.Join(words, " + ")
}
