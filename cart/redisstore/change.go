package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"commerce/cart"
)

// Conditions and Change are what a request is decided by.
type (
	Conditions = cart.Conditions
	Change     = cart.Change
)

// Attempt is what the service adds to one attempt at a change.
type Attempt struct {
	CartID string     // for a cart that this change creates; "": it may not create one, which is problem.RateLimited
	Ignore cart.Notes // merges that cannot be finished now: the change is made without them
	Limits cart.Limits
}

type Outcome struct {
	Status cart.Status
	Effect cart.Effect // of Applied and Refused; of a replayed list, as it would be decided now
	Stored             // the cart after the change

	// ChangedLine is the line that an applied or replayed change has changed, if its request names another; "" for none.
	ChangedLine cart.LineID

	// Ops has the outcome of each operation of an applied or replayed list; nil for a list that is replayed by its stamp,
	// which does not keep them.
	Ops []cart.OpOutcome

	At int64 // when a change that is replayed by its key was applied, in ms by Redis' clock

	Text int64 // bytes of text that an applied change has added; with an error, that it may have added

	Durability string // Confirmed or unconfirmed; "" when changes do not wait for replicas
}

// Change makes a change, atomically. It changes nothing after ctx's deadline, even if Redis gets it later. It is decided
// from the cart as it is, and made only if it still is that cart; otherwise it is decided again. A lost reply is cleared up
// by reading the cart. If that fails, a change without a key is problem.OutcomeUnknown. Other failures are
// problem.Unavailable: nothing changed, or the change has a key.
func (s *Store) Change(ctx context.Context, ref Ref, on Conditions, with Attempt, c Change) (Outcome, error) {
	m := &member{ctx: ctx, done: make(chan struct{}), Request: cart.Request{
		Conditions: on, Change: c, NewID: with.CartID, Ignore: with.Ignore, TTL: s.ttlOf(ref), Limits: with.Limits,
	}}
	if s.alone {
		s.decideAll(ref, []*member{m}, 0)
	} else {
		s.queues.run(s, ref, m)
	}
	o, err := m.result()
	maybe := m.maybeMade.Load()
	switch {
	case err == nil:
		return o, nil
	case maybe == nil:
		return Outcome{}, cart.Unavailable("change cart", err)
	case on.Key != "":
		return Outcome{Text: maybe.Text}, cart.Unavailable("change cart", err)
	}
	return Outcome{Text: maybe.Text}, cart.OutcomeUnknown("change cart", err)
}

// member is one call of Change among those that are decided together.
type member struct {
	ctx context.Context
	cart.Request
	used string // what is stored under the idempotency key; "" for nothing

	// Set when done is closed.
	outcome  Outcome
	err      error
	panicked string // why the decision has panicked; "" if it has not
	done     chan struct{}

	maybeMade atomic.Pointer[cart.Decision] // was sent, and its outcome is not known; nil for none
}

func (m *member) end(o Outcome, err error) {
	m.outcome, m.err = o, err
	close(m.done)
}

// abort makes the callers of those that have not ended panic, each in its own goroutine, whose request then fails alone.
func abort(members []*member, why string) {
	for _, m := range members {
		select {
		case <-m.done:
		default:
			m.panicked = why
			close(m.done)
		}
	}
}

// lastWords is how long a caller whose time is over waits for the change to end, which its group does then too: it may know
// that nothing was sent.
const lastWords = 50 * time.Millisecond

// result waits until the change is decided, or until the caller's time is over.
func (m *member) result() (Outcome, error) {
	select {
	case <-m.done:
	case <-m.ctx.Done():
		select {
		case <-m.done:
		case <-time.After(lastWords):
			return Outcome{}, m.ctx.Err()
		}
	}
	if m.panicked != "" {
		panic(m.panicked)
	}
	return m.outcome, m.err
}

// queues have the changes that wait for each cart of this instance. What waits while a group is decided is the next group.
// A caller who finds nobody before it runs its own, without another goroutine.
type queues struct {
	mu     sync.Mutex
	byCart map[string]*queue
}

type queue struct {
	waiting   []*member
	running   int           // groups
	contended time.Duration // see decideAll
	took      time.Duration // the last group
	slow      int           // how many of them have been running for slowGroup: the next one does not wait for them
}

const (
	maxGroup = 512 // changes that are committed together

	// A group that takes longer no longer holds up the next one: its connection may hang. Until then, groups of one
	// instance do not compete for a cart.
	slowGroup = 75 * time.Millisecond
)

func newQueues() *queues { return &queues{byCart: map[string]*queue{}} }

// run decides a change with those that wait for the same cart. It returns when the change has ended, or will end.
func (q *queues) run(s *Store, ref Ref, m *member) {
	q.mu.Lock()
	own := q.byCart[ref.key]
	if own == nil {
		own = &queue{}
		q.byCart[ref.key] = own
	}
	own.waiting = append(own.waiting, m)
	group := own.next()
	q.mu.Unlock()
	if group == nil {
		return
	}
	if next := q.decide(s, ref, own, group); next != nil {
		go q.serve(s, ref, own, next)
	}
}

func (q *queues) serve(s *Store, ref Ref, own *queue, group []*member) {
	for group != nil {
		group = q.decide(s, ref, own, group)
	}
}

// next takes the next group, unless one is running that is not slow.
func (own *queue) next() []*member {
	if own.running > own.slow {
		return nil
	}
	if len(own.waiting) > maxGroup {
		own.waiting = own.leaveOut()
	}
	n := min(len(own.waiting), maxGroup)
	if n == 0 {
		return nil
	}
	group := own.waiting[:n:n]
	own.waiting = own.waiting[n:]
	own.running++
	return group
}

// leaveOut ends those who have less time left than a group takes, and returns the others. When more callers come than Redis
// can serve, each group would otherwise be of those whose time ends first, and be made for nobody.
func (own *queue) leaveOut() []*member {
	var inTime []*member
	for _, m := range own.waiting {
		if at, bounded := m.ctx.Deadline(); bounded && time.Until(at) < own.took {
			m.end(Outcome{}, errNoTime)
			continue
		}
		inTime = append(inTime, m)
	}
	return inTime
}

var errNoTime = errors.New("redisstore: too many others change the cart at the same time")

// decide decides a group, and returns the next one. If it is slow, another goroutine begins the next one meanwhile.
func (q *queues) decide(s *Store, ref Ref, own *queue, group []*member) []*member {
	q.mu.Lock()
	before := own.contended
	q.mu.Unlock()
	began := time.Now()
	ended, isSlow := false, false
	slow := time.AfterFunc(slowGroup, func() {
		q.mu.Lock()
		if ended {
			q.mu.Unlock()
			return
		}
		isSlow = true
		own.slow++
		next := own.next()
		q.mu.Unlock()
		q.serve(s, ref, own, next)
	})
	contended := s.decideAll(ref, group, before)
	slow.Stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	own.contended, own.took = contended, min(time.Since(began), 2*slowGroup)
	ended = true
	own.running--
	if isSlow {
		own.slow--
	}
	next := own.next()
	if next == nil && own.running == 0 && len(own.waiting) == 0 {
		delete(q.byCart, ref.key)
	}
	return next
}
