package service

import (
	"cmp"
	"context"
	"slices"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/redisstore"
)

// Conditions are what a client sends with a change beside what it changes.
type Conditions = redisstore.Conditions

type Changed struct {
	price.Priced
	Durability string // confirmed or unconfirmed; "" when changes do not wait for replicas
	Replayed   bool   // an earlier request made this change; nothing changed now
	At         int64  // when that was, in ms by Redis' clock, if it had the same key

	// Item is the line that an addition or an edit changed; "" when the cart does not hold
	// it. nil for other changes.
	Item *cart.LineID

	Ops *Outcomes // of a list; nil for other changes

	Agent string // of the cart, as in cart.Cell

	// Replaced are the codes that have left for the one that was added now. nil for other changes.
	Replaced *[]string
}

// change is what one call changes, and the details of the error if the cart refuses it.
type change struct {
	cart.Change
	member  string         // request member that a refusal by the cart names
	product *cart.Product  // that a refusal by the cart names; nil for none
	line    *cart.LineID   // the line that the request names; "" for none. See Changed.Item
	ops     []change       // of a list; nil for other changes
	needs   *needed        // what the rule has asked for; nil if it asks for nothing
	redeems bool           // it adds a code
	refusal *problem.Error // of a request that is refused by itself; nil for others
}

// refuse makes c a change that is refused by itself, whatever the cart holds.
func (c *change) refuse(refusal *problem.Error) { c.Rule, c.refusal = cart.RefusedBy(refusal), refusal }

// makeChange makes a change and returns the changed cart.
func (s *Carts) makeChange(ctx context.Context, v *Visit, on Conditions, c change) (Changed, error) {
	if !c.List {
		c.Rule = s.withinText(v, c.Rule)
	}
	o, err := s.send(ctx, v, on, c)
	s.noteText(ctx, v, o, err)
	switch {
	case err != nil:
		return Changed{}, err
	case o.Status == cart.Refused:
		return Changed{}, s.refused(ctx, v, c, o)
	}
	s.replicated(o.Durability)
	priced, err := s.PriceCart(ctx, v, o.Cart)
	if err != nil && o.Status == cart.Applied && on.Key == "" {
		err = cart.OutcomeUnknown("show cart", err) // the change was made; a repeat would count twice
	}
	changed := Changed{Priced: priced, Durability: o.Durability, Replayed: o.Status == cart.Replayed, At: o.At, Agent: o.Stored.Agent}
	if c.line != nil {
		line := cmp.Or(o.ChangedLine, *c.line)
		if !o.Cart.Has(line) {
			line = ""
		}
		changed.Item = &line
	}
	if c.redeems {
		changed.Replaced = &o.Effect.Replaced // the effect of a replay is zero
	}
	if c.List {
		changed.Ops = s.outcomes(c.ops, o)
	}
	return changed, err
}

func (s *Carts) refused(ctx context.Context, v *Visit, c change, o redisstore.Outcome) error {
	if o.Effect.Ops != nil {
		return s.refusedOps(c.ops, o.Effect.Ops)
	}
	if o.Effect.Problem != nil {
		return o.Effect.Problem
	}
	switch o.Effect.Refusal.Code {
	case problem.VersionMismatch:
		return s.VersionMismatch(ctx, v, o.Cart)
	case problem.IdempotencyConflict:
		return ErrKeyReused
	case problem.RateLimited:
		return s.TooManyCarts(v)
	}
	return s.problem(c, o.Effect)
}

// VersionMismatch is the refusal of a change whose If-Match does not allow it. It shows the cart as it is.
func (s *Carts) VersionMismatch(ctx context.Context, v *Visit, c cart.Cart) error {
	priced, err := s.PriceCart(ctx, v, c)
	if err != nil {
		return err
	}
	return ErrVersionMismatch.WithData(&priced)
}

// durability returns the Durability of a response about an earlier write to a cart: by a transfer, or by the request that this one
// repeats. "" when changes do not wait for replicas.
func (s *Carts) durability(ctx context.Context, of redisstore.Ref) (durability string) {
	if s.Redis.Durable {
		_ = s.Step(ctx, func(ctx context.Context) error {
			durability = s.Redis.Replicate(ctx, of)
			return nil
		})
	}
	return durability
}

// replicated counts an answer with a Durability.
func (s *Carts) replicated(durability string) {
	if durability != "" {
		s.Events.Replicated(durability == redisstore.Confirmed)
	}
}

// problem is why a rule has refused a change.
func (s *Carts) problem(c change, e cart.Effect) *problem.Error {
	if e.Problem != nil {
		return e.Problem
	}
	return e.Refusal.Problem(c.member, c.product, s.Limits)
}

// send sends a change to Redis, and finishes unfinished merges first. If one cannot be finished now,
// the change is made without it. But its first attempt may have gone to a guest's cart that is not
// merged yet, or that another customer has claimed, so send looks its key or stamp up there first.
func (s *Carts) send(ctx context.Context, v *Visit, on Conditions, c change) (redisstore.Outcome, error) {
	with := redisstore.Attempt{CartID: s.newCartIDFor(v), Limits: s.Limits}
	// After a merge, the customer's own keys decide about another request with the same key.
	if earlier := v.guestCart.RepeatOf(on); earlier != nil && (v.postponed || earlier.Status == cart.Replayed) {
		return s.repeated(ctx, v, on, c, earlier, v.guest)
	}
	var unmerged []redisstore.Ref
	if v.postponed && (on.Key != "" || !v.guestFound) {
		unmerged = []redisstore.Ref{v.guest}
	}
	for ctx.Err() == nil {
		if earlier, where, err := s.repeatElsewhere(ctx, v, on, unmerged); err != nil {
			return redisstore.Outcome{}, err
		} else if earlier != nil {
			return s.repeated(ctx, v, on, c, earlier, where)
		}
		limited, trip := v.budget.spend(ctx, 1)
		o, err := s.Redis.Change(limited, v.own, on, with, c.Change)
		trip.done()
		v.learn(o.Stored)
		s.noteCreation(ctx, v, on, with.CartID, o, err)
		if err == nil && o.Effect.Needs != nil {
			if err := c.needs.load(ctx, s, v, o.Effect.Needs); err != nil {
				return redisstore.Outcome{}, err
			}
			continue
		}
		if err != nil || o.Status != cart.MergeFirst {
			return o, err
		}
		with.Ignore, unmerged = o.Pending, nil
		for _, merge := range s.resume(ctx, v, o.Pending) {
			unmerged = append(unmerged, redisstore.GuestOf(v.own, merge))
		}
	}
	return redisstore.Outcome{}, cart.Unavailable("change cart", ctx.Err())
}

// repeatElsewhere looks for a change's key or stamp in guests' carts that are not merged yet; nil if
// none of them has it. where is the guest's cart that has it. If a Redis cannot be asked, only a change with a key fails.
func (s *Carts) repeatElsewhere(ctx context.Context, v *Visit, on Conditions, guests []redisstore.Ref) (_ *redisstore.Outcome, where redisstore.Ref, _ error) {
	if on.Key == "" && on.Stamp == "" {
		return nil, where, nil
	}
	for _, guest := range guests {
		limited, trip := v.budget.spend(ctx, 2)
		found, err := s.Redis.FindGuest(limited, v.own, guest, on.Key)
		trip.done()
		if err != nil && on.Key != "" {
			return nil, where, err
		}
		if earlier := found.RepeatOf(on); earlier != nil {
			return earlier, guest, nil
		}
	}
	return nil, where, nil
}

// repeated returns the outcome of a repeat of a change of a guest's cart, with the visit's own cart.
func (s *Carts) repeated(
	ctx context.Context, v *Visit, on Conditions, c change, o *redisstore.Outcome, guest redisstore.Ref,
) (_ redisstore.Outcome, err error) {
	if o.Status == cart.Replayed && s.Redis.Durable {
		o.Durability = s.durability(ctx, guest)
		// Since it was found, a failover may have lost the change.
		if earlier, _, err := s.repeatElsewhere(ctx, v, on, []redisstore.Ref{guest}); err != nil || earlier == nil {
			o.Durability = redisstore.Unconfirmed
		}
	}
	o.Stored, err = s.loadOwn(ctx, v)
	for err == nil && slices.ContainsFunc(o.Ops, func(one cart.OpOutcome) bool { return one.Refusal != nil }) {
		// The refusals are explained as they would be decided now.
		if o.Effect = c.Rule(&o.Cell, o.Pending.Left(s.Limits), s.Now()); o.Effect.Needs == nil {
			break
		}
		err = c.needs.load(ctx, s, v, o.Effect.Needs)
	}
	return *o, err
}

var (
	// ErrVersionMismatch refuses a change because of its If-Match.
	ErrVersionMismatch = problem.New(problem.VersionMismatch, "If-Match", locale.Text{
		locale.En: "Your cart has changed in the meantime. Please check it and try again.",
		locale.Ar: "تغيّرت سلتك في هذه الأثناء. يُرجى مراجعتها ثم المحاولة مرة أخرى.",
	})

	// ErrKeyReused refuses a request with the key of another one.
	ErrKeyReused = problem.New(problem.IdempotencyConflict, "Idempotency-Key", locale.Text{
		locale.En: "This Idempotency-Key was already used for a different request.",
		locale.Ar: "استُخدم مفتاح Idempotency-Key هذا لطلب مختلف.",
	})
)
