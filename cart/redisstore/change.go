package redisstore

import (
	"context"
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
