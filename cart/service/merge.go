package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"commerce/auth/problem"
	"commerce/auth/timing"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cart/transfer"
)

// The steps of a merge are reserve, claim, apply, finish and forget: see "Merge on login" in
// docs/design.md. If a request dies between two steps, the next request of the customer, or of
// anyone who logs in with that token, finishes the merge with the same result.

// Merge merges the cart of the request's guest token, if there is one. Call it before a
// change. If the merge fails, the change is made without it, unless the change has an
// idempotency key that cannot be looked up (see repeatElsewhere). key is that key's digest, ""
// for none.
func (s *Carts) Merge(ctx context.Context, v *Visit, key string) {
	if !v.logsIn() || v.ReadOnly {
		return
	}
	began := time.Now()
	limited, trip := v.budget.spend(ctx, 2)
	found, err := s.Redis.FindGuest(limited, v.own, v.guest, key)
	trip.done()
	if err != nil {
		s.ended(ctx, nil, began, err)
		v.postponed = true
		return
	}
	v.guestCart, v.guestFound = found, true
	if found.Mergeable() {
		v.postponed = s.merge(ctx, v, found) != nil
	}
}

// resume finishes the merges that earlier requests of this customer left unfinished, and returns
// those that still wait. It begins no merge: it deletes an old note without a claim.
func (s *Carts) resume(ctx context.Context, v *Visit, unfinished cart.Notes) (waiting cart.Notes) {
	if len(unfinished) > 0 {
		_ = s.Observed(ctx, v, func(ctx context.Context) (err error) {
			waiting, err = s.resumeEach(ctx, v, v.own, unfinished)
			return err
		})
	}
	return waiting
}

// Observed runs a merge with a timeout of its own, since it takes several round trips and may
// wait for replicas. A client that disconnects does not stop it halfway. Afterwards the request has
// its full budget again, or half of it if the merge timed out: the Redis that did not answer may have the customer's cart.
func (s *Carts) Observed(ctx context.Context, v *Visit, merge func(context.Context) error) error {
	ctx, traced := timing.Step(context.WithoutCancel(ctx), "merge")
	limited, cancel := context.WithTimeout(ctx, mergeBudgets*s.Budget)
	defer cancel()
	began, earlier := time.Now(), v.merged
	v.merged = nil
	err := merge(limited)
	s.ended(ctx, v.merged, began, err)
	v.merged = cmp.Or(v.merged, earlier)
	traced(err)
	v.budget.left = s.Budget
	if redisstore.TimedOut(err) {
		v.budget.left = s.Budget / 2
	}
	return err
}

// ended counts an attempt, and logs why it was postponed, except for a full cart.
func (s *Carts) ended(ctx context.Context, report *cart.MergeReport, began time.Time, err error) {
	s.Events.Merged(mergeOutcome(report, err), time.Since(began))
	if err != nil && !errors.Is(err, transfer.ErrNoRoom) {
		s.Log.WarnContext(ctx, "merge postponed to a later request", "err", err)
	}
}

// MergeOutcome is how an attempt at a merge ended.
type MergeOutcome string

const (
	MergeDone      MergeOutcome = "merged"
	MergeCut       MergeOutcome = "cut"       // merged, but some quantities were cut to what may be bought
	MergeFull      MergeOutcome = "full"      // the customer's cart has no room for the guest's lines
	MergePostponed MergeOutcome = "postponed" // to a later request, after a failure
	MergeNothing   MergeOutcome = "nothing"   // another request did it, or it added nothing
)

func mergeOutcome(report *cart.MergeReport, err error) MergeOutcome {
	switch {
	case errors.Is(err, transfer.ErrNoRoom):
		return MergeFull
	case err != nil:
		return MergePostponed
	case report == nil || report.Lines == 0:
		return MergeNothing
	case len(report.Adjusted) > 0:
		return MergeCut
	}
	return MergeDone
}

func (s *Carts) resumeEach(ctx context.Context, v *Visit, owner redisstore.Ref, unfinished cart.Notes) (waiting cart.Notes, failed error) {
	results := map[redisstore.Ref]error{}
	for _, pending := range unfinished {
		guest := redisstore.GuestOf(owner, pending)
		err, done := results[guest]
		if !done {
			err = s.CompleteClaimed(ctx, v, owner, guest)
			results[guest] = err
		}
		switch {
		case err != nil:
			waiting = append(waiting, pending)
		case pending.Applied || pending.Old(s.Now()): // no claim is left that it could be about
			err = s.Step(ctx, func(ctx context.Context) error { return s.Redis.ForgetOld(ctx, owner, pending) })
		}
		failed = errors.Join(failed, err)
	}
	return waiting, failed
}

// merge moves the cart of the request's guest token into the customer's cart. After an error
// a later request finishes the merge; the caller's request continues.
func (s *Carts) merge(ctx context.Context, v *Visit, g redisstore.GuestCart) error {
	return s.Observed(ctx, v, func(ctx context.Context) error {
		if g.Claimed {
			if err := s.CompleteClaimed(ctx, v, v.own, v.guest); err != nil {
				return err
			}
		}
		g, err := s.Ready(ctx, v, v.guest, g)
		m := Merging{Owner: v.own, Guest: v.guest, Needs: g.Needs}
		for round := 0; err == nil && m.Needs.CartID != "" && round < mergeRounds; round++ {
			again := false
			m.Note = "m" + s.NewCartID()[:10]
			if again, err = s.MergeCart(ctx, v, &m); !again {
				break
			}
		}
		if errors.Is(err, transfer.ErrNoRoom) {
			// To the minute, so that polls see no change.
			v.noRoom = &cart.MergeReport{ID: transfer.ShortID(m.Needs.CartID), At: s.Now().Truncate(time.Minute), Code: problem.CartFull}
		}
		return err
	})
}

// Ready finishes the merges into a guest's cart, before it is merged itself. Lines that have not arrived
// arrive in the token's next cart. While the catalog is unreachable, nothing is claimed.
func (s *Carts) Ready(ctx context.Context, v *Visit, guest redisstore.Ref, g redisstore.GuestCart) (redisstore.GuestCart, error) {
	if len(g.Pending) > 0 {
		_, _ = s.resumeEach(ctx, v, guest, g.Pending)
		err := s.Step(ctx, func(ctx context.Context) (err error) {
			g, err = s.Redis.FindGuest(ctx, v.own, guest, "")
			return err
		})
		if err != nil {
			return g, err
		}
		if slices.ContainsFunc(g.Pending, func(m cart.Note) bool { return m.Applied }) {
			return g, transfer.ErrMerging
		}
	}
	if _, err := s.Catalog.Products(ctx, v.Store.ID, g.Products); err != nil {
		return g, cart.Unavailable("products of guest cart", err)
	}
	return g, nil
}

// MergeFrom merges another guest's cart into that of the visit's customer, as on any login. Errors: transfer.ErrNoRoom,
// problem.Unavailable.
func (s *Carts) MergeFrom(ctx context.Context, v *Visit, guest redisstore.Ref) error {
	v.guest = guest
	s.Merge(ctx, v, "")
	switch {
	case v.noRoom != nil:
		return transfer.ErrNoRoom
	case v.postponed:
		return cart.Unavailable("merge guest cart", errors.New("service: postponed"))
	}
	return nil
}

// AfterTransfer returns the visit's cart after lines were moved. of is the cart whose replicas must have that.
func (s *Carts) AfterTransfer(ctx context.Context, v *Visit, of redisstore.Ref) (Changed, error) {
	priced, err := s.Read(ctx, v)
	if err != nil {
		return Changed{}, err
	}
	changed := Changed{Priced: priced, Durability: s.durability(ctx, of)}
	s.replicated(changed.Durability)
	return changed, nil
}

// Merging is a guest's cart that is to be merged into an owner's.
type Merging struct {
	Owner, Guest redisstore.Ref
	Note         string           // under which it is claimed; "" only continues an earlier claim
	Needs        cart.Reservation // of the guest's cart
	Moved        string           // the mark of a hand-over, as redisstore.MovedTo has it; "" for none
	On           Conditions       // of which only IfMatch counts, for the owner's cart
}

// mergeRounds limits how many carts one request merges, and how often it reserves room
// again, while other requests use the same token.
const mergeRounds = 4

// MergeCart reserves room for a guest's cart and merges it. again means that there may be
// more to merge: another request had claimed an earlier cart, or this one has grown.
func (s *Carts) MergeCart(ctx context.Context, v *Visit, m *Merging) (again bool, err error) {
	err = s.Step(ctx, func(ctx context.Context) error {
		return s.Redis.Reserve(ctx, m.Owner, m.Guest, m.Note, m.Needs, s.Limits, m.On)
	})
	if err != nil {
		return false, err
	}
	again, err = s.complete(ctx, v, *m)
	if grown, ok := errors.AsType[*transfer.GrownError](err); ok {
		m.Needs = grown.Needs
		return true, s.release(ctx, m)
	}
	if errors.Is(err, transfer.ErrNothing) {
		return false, s.release(ctx, m)
	}
	if errors.Is(err, transfer.ErrMerging) {
		err = cmp.Or(s.release(ctx, m), err)
	}
	return again, err
}

// CompleteClaimed completes the merge into an owner's cart for which a guest's cart is claimed. No claim is no error.
func (s *Carts) CompleteClaimed(ctx context.Context, v *Visit, owner, guest redisstore.Ref) error {
	_, err := s.complete(ctx, v, Merging{Owner: owner, Guest: guest})
	if errors.Is(err, transfer.ErrNothing) {
		return nil
	}
	return err
}

// complete runs one merge from claim to forget. again means that the claim was an earlier one, so
// the token may have a newer cart.
func (s *Carts) complete(ctx context.Context, v *Visit, m Merging) (again bool, err error) {
	c, err := s.claim(ctx, m)
	if other, ok := errors.AsType[*transfer.OtherOwnerError](err); ok {
		if err := s.CompleteClaimed(ctx, v, redisstore.RefOfTag(other.Owner), m.Guest); err != nil {
			return false, err
		}
		c, err = s.claim(ctx, m)
	}
	if err != nil {
		return false, err
	}
	products, err := s.Catalog.Products(ctx, v.Store.ID, c.Cart.ProductIDs())
	if err != nil {
		return false, cart.Unavailable("products of guest cart", err)
	}
	rules := transfer.MergeRules{Strategy: s.Strategy, Bounds: transfer.MergeBounds(c.Cart, products, s.Limits)}
	var report *cart.MergeReport
	err = s.Step(ctx, func(ctx context.Context) error {
		report, err = s.Redis.Apply(ctx, m.Owner, c, rules, s.combine(v), s.NewCartID())
		return err
	})
	if m.Owner == v.own && report != nil { // another owner's report is not for this one
		v.merged = report
	}
	if err != nil {
		return false, err
	}
	another := false
	err = s.Step(ctx, func(ctx context.Context) error {
		another, err = s.Redis.Finish(ctx, m.Guest, c)
		return err
	})
	if err != nil || another { // the tries of a hand-over share the note
		return c.Again, err
	}
	return c.Again, s.Step(ctx, func(ctx context.Context) error { return s.Redis.Forget(ctx, m.Owner, c.Note, m.Note) })
}

func (s *Carts) claim(ctx context.Context, m Merging) (c redisstore.Claimed, err error) {
	err = s.Step(ctx, func(ctx context.Context) error {
		c, err = s.Redis.Claim(ctx, m.Owner, m.Guest, m.Note, m.Needs, m.Moved)
		return err
	})
	return c, err
}

func (s *Carts) release(ctx context.Context, m *Merging) error {
	return s.Step(ctx, func(ctx context.Context) error { return s.Redis.Release(ctx, m.Owner, m.Note) })
}

// Step runs one step of a merge, with one request's budget, apart from a wait for replicas: a Redis
// that hangs must not use up the time of the whole merge.
func (s *Carts) Step(ctx context.Context, do func(context.Context) error) error {
	ctx, trip := (&budget{s.Budget}).spend(ctx, 1)
	defer trip.done()
	return do(ctx)
}
