package service

import (
	"cmp"
	"context"
	"errors"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
)

// Conditions are what a client sends with a change beside what it changes.
type Conditions = redisstore.Conditions

// Changed is the cart after a change.
type Changed struct {
	cart.Priced
	Durability string // confirmed or unconfirmed; "" when changes do not wait for replicas
	Replayed   bool   // an earlier request made this change; nothing changed now

	// Item is the line that an addition or an edit changed; "" when the cart does not hold
	// it. nil for other changes.
	Item *cart.LineID
}

// change is what one call changes, and the details of the error if the cart refuses it.
type change struct {
	redisstore.Change
	refusal *problem.Error // why the request is invalid by itself; nil when it is valid
	member  string         // request member that a refusal by the cart names
	product *cart.Product  // that a refusal by the cart names; nil for none
	line    *cart.LineID   // the line that the request names; "" for none. See Changed.Item
}

// makeChange makes a change and returns the changed cart. For a request that is refused by
// itself it runs only the replay and If-Match checks, which take precedence.
func (s *Carts) makeChange(ctx context.Context, v *Visit, on Conditions, c change) (Changed, error) {
	if c.refusal != nil {
		c.Change = redisstore.Judge()
	}
	o, err := s.send(ctx, v, on, c.Change)
	if err != nil {
		return Changed{}, err
	}
	if c.refusal != nil && o.Word == redisstore.Applied {
		return Changed{}, c.refusal
	}
	return s.conclude(ctx, v, on, c, o)
}

// conclude turns an outcome into the priced cart, or into an error.
func (s *Carts) conclude(ctx context.Context, v *Visit, on Conditions, c change, o redisstore.Outcome) (Changed, error) {
	switch code := problem.Code(o.Word); {
	case o.Word == redisstore.Applied || o.Word == redisstore.Replayed:
		if o.Durability != "" {
			s.events.Replicated(o.Durability == redisstore.Confirmed)
		}
		priced, err := s.price(ctx, v, o.Cart)
		if err != nil && o.Word == redisstore.Applied && on.Key == "" {
			err = cart.OutcomeUnknown("show cart", err) // the change was made; a repeat would count twice
		}
		return Changed{Priced: priced, Durability: o.Durability, Replayed: o.Word == redisstore.Replayed, Item: c.item(o)}, err
	case code == problem.VersionMismatch:
		priced, err := s.price(ctx, v, o.Cart)
		if err != nil {
			return Changed{}, err
		}
		return Changed{}, problem.New(code, "If-Match", textVersionMismatch).WithData(&priced)
	case code == problem.IdempotencyConflict:
		return Changed{}, problem.New(code, "Idempotency-Key", textKeyReused)
	case code == cart.LineChanged:
		return Changed{}, errLineChanged
	case code == problem.RateLimited:
		return Changed{}, s.tooManyCarts(v)
	default:
		return Changed{}, cart.Refusal{Code: code, Held: o.InCart}.Problem(c.member, c.product, s.limits)
	}
}

// item returns the line that a change has changed, if the cart holds it. See Changed.Item.
func (c change) item(o redisstore.Outcome) *cart.LineID {
	if c.line == nil {
		return nil
	}
	line := cmp.Or(o.Moved, *c.line)
	if !o.Cart.Has(line) {
		line = ""
	}
	return &line
}

// send sends a change to Redis, and finishes unfinished merges first. If a merge cannot be
// finished now, the change is made without it. But the first attempt of the change may have
// gone to a guest's cart that is not merged yet, or that another customer has claimed, so send
// looks its key or stamp up there first.
func (s *Carts) send(ctx context.Context, v *Visit, on Conditions, c redisstore.Change) (redisstore.Outcome, error) {
	with := redisstore.Attempt{CartID: s.newCartIDFor(v)}
	// After a merge, the customer's own keys decide about another request with the same key.
	if earlier := v.waiting.RepeatOf(on); earlier != nil && (v.Postponed || !earlier.Conflict) {
		return s.repeats(ctx, v, earlier)
	}
	var unmerged []redisstore.Ref
	if v.Postponed && (on.Key != "" || !v.asked) {
		unmerged = []redisstore.Ref{v.guest}
	}
	for ctx.Err() == nil {
		if o, err := s.repeatElsewhere(ctx, v, on, unmerged); err != nil || o.Word != "" {
			return o, err
		}
		o, err := s.sendOnce(ctx, v, on, with, c)
		if err != nil || o.Word != redisstore.Resume {
			return o, err
		}
		with.PassBy, unmerged = o.Notes, nil
		for _, note := range s.resume(ctx, v, o.Notes) {
			unmerged = append(unmerged, note.Guest(v.own))
		}
	}
	return redisstore.Outcome{}, cart.Unavailable("change cart", ctx.Err())
}

func (s *Carts) sendOnce(ctx context.Context, v *Visit, on Conditions, with redisstore.Attempt, c redisstore.Change) (redisstore.Outcome, error) {
	limited, trip := v.budget.spend(ctx)
	o, err := s.redis.Change(limited, v.own, on, with, c)
	trip.done()
	v.learn(o.Held)
	s.noteCreation(ctx, v, with.CartID, o, err)
	return o, err
}

// repeatElsewhere looks for a change's key or stamp in guests' carts that are not merged yet. The
// outcome's Word is "" when none of them has it. A change with only a stamp is made without the
// answer of a Redis that cannot be asked; one with a key fails.
func (s *Carts) repeatElsewhere(ctx context.Context, v *Visit, on Conditions, guests []redisstore.Ref) (redisstore.Outcome, error) {
	if on.Key == "" && on.Stamp == "" {
		return redisstore.Outcome{}, nil
	}
	for _, guest := range guests {
		quick, trip := v.budget.spendHalf(ctx)
		earlier, err := s.redis.RepeatUnder(quick, v.own, guest, on)
		trip.done()
		if err != nil && on.Key != "" {
			return redisstore.Outcome{}, err
		}
		if earlier != nil {
			return s.repeats(ctx, v, earlier)
		}
	}
	return redisstore.Outcome{}, nil
}

// repeats returns the outcome of a change that a guest's cart has applied: Replayed or
// idempotency_conflict.
func (s *Carts) repeats(ctx context.Context, v *Visit, earlier *redisstore.Repeat) (redisstore.Outcome, error) {
	word := redisstore.Replayed
	if earlier.Conflict {
		word = redisstore.Word(problem.IdempotencyConflict)
	}
	held, err := s.loadOwn(ctx, v)
	return redisstore.Outcome{Word: word, Held: held, Moved: earlier.Line}, err
}

// errLineChanged means that an edit was not made, because its line has changed since it was
// read.
var errLineChanged = errors.New("service: the line has changed since it was read")

var (
	textVersionMismatch = locale.Text{
		locale.En: "Your cart has changed in the meantime. Please check it and try again.",
		locale.Ar: "تغيّرت سلتك في هذه الأثناء. يُرجى مراجعتها ثم المحاولة مرة أخرى.",
	}
	textKeyReused = locale.Text{
		locale.En: "This Idempotency-Key was already used for a different request.",
		locale.Ar: "استُخدم مفتاح Idempotency-Key هذا لطلب مختلف.",
	}
)
