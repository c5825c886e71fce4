package service

import (
	"context"
	"encoding/base64"
	"errors"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cart/transfer"
)

// To undo a merge, a new guest's cart is stored first, and then the lines are taken out of the customer's: see
// "Undoing a merge" in docs/design.md. A request may die between any two steps. Nobody can know the new token before
// the request that has taken the lines out, or a repeat of it, tells it.

// Undone is what an undo took out of the customer's cart.
type Undone struct {
	Guest    auth.CartToken // of the cart with what was taken out
	Adjusted []cart.Adjustment
}

// UndoMerge undoes a merge into the customer's cart. A repeat has the same result. Of the conditions, only IfMatch counts.
// Errors: problem.Unauthenticated for a guest; problem.NotFound for a merge that is unknown, or too long ago;
// problem.VersionMismatch; problem.RateLimited; problem.Unavailable if nothing was undone; problem.OutcomeUnknown if it may have
// been, after which a repeat completes it.
func (s *Carts) UndoMerge(ctx context.Context, v *Visit, on Conditions, id string) (Changed, error) {
	if v.customer == "" {
		return Changed{}, errCustomerOnly
	}
	for range undoRounds {
		u := undoing{Visit: v, id: id}
		err := s.undo(ctx, &u, on)
		switch {
		case err != nil && u.sent:
			return Changed{}, cart.OutcomeUnknown("undo merge", err)
		case errors.Is(err, transfer.ErrUnknown) && v.postponed && v.noRoom == nil:
			// A failover may have lost the merge, which the request would have made again.
			return Changed{}, asUnavailable("undo merge", err)
		case errors.Is(err, transfer.ErrUnknown):
			return Changed{}, errNoMerge
		case err != nil:
			return Changed{}, asUnavailable("undo merge", err)
		case u.came.UndoneAs != "":
			return s.undone(ctx, &u)
		}
	}
	return Changed{}, errAlwaysChanged
}

// undoRounds is how often an undo is computed from a read before the call fails.
const undoRounds = 5

type undoing struct {
	*Visit
	id string // of the merge

	sent bool        // it may be undone
	came cart.CameIn // not undone if the cart has changed meanwhile
}

// undo makes one attempt. The name, from which the guest's token is derived, is new in each.
func (s *Carts) undo(ctx context.Context, u *undoing, on Conditions) error {
	var found redisstore.Undoable
	err := s.step(ctx, func(ctx context.Context) (err error) {
		found, err = s.Redis.FindMerge(ctx, u.own, u.id)
		return err
	})
	if err != nil {
		return err
	}
	name := s.Keys.Name() + s.newName(idSize)
	guest := redisstore.GuestRef(u.Store.ID, s.undoneToken(u, name))
	takesOut := false
	if found.Came.UndoneAs == "" {
		if !on.Allows(&found.Cart) {
			return s.versionMismatch(ctx, u.Visit, found.Cart)
		}
		takesOut = found.Undone.Guest.InUse()
		if err := s.beginUndone(ctx, u, guest, found.Undone.Guest); err != nil {
			return err
		}
	}
	err = s.step(ctx, func(ctx context.Context) error {
		u.came, u.sent, err = s.Redis.Undo(ctx, u.own, u.id, name, found)
		return err
	})
	told := err == nil || errors.Is(err, redisstore.ErrUnconfirmed)
	if told && u.came.UndoneAs != name && takesOut {
		s.Redis.DropUndone(ctx, guest)
	}
	return err
}

// beginUndone stores the new guest's cart, unless nothing is taken out.
func (s *Carts) beginUndone(ctx context.Context, u *undoing, guest redisstore.Ref, c cart.Cart) error {
	if !c.InUse() {
		return nil
	}
	if refusal := s.Creation.Refuse(u.client, errTooManyCarts); refusal != nil {
		return refusal
	}
	text := cart.StoredText(c.Lines) + c.Metadata.StoredText()
	if refusal := s.tooMuchText(u.client, text); refusal != nil {
		return refusal
	}
	c.ID = s.newCartID()
	err := s.step(ctx, func(ctx context.Context) error { return s.Redis.BeginUndone(ctx, u.own, guest, c) })
	s.Creation.Use(ctx, u.client)
	s.Text.UseN(ctx, u.client, text)
	if errors.Is(err, redisstore.ErrUnconfirmed) {
		s.Redis.DropUndone(ctx, guest)
	}
	return err
}

// undoneToken is the token of the guest's cart that an undo has made under a name; "" if its key is gone.
func (s *Carts) undoneToken(u *undoing, name string) auth.CartToken {
	sum, ok := s.Keys.Derive(name[:keyName], "undo token", u.own.String(), u.id, name)
	if !ok {
		return ""
	}
	return auth.CartToken(base64.RawURLEncoding.EncodeToString(sum[:16]))
}

func (s *Carts) undone(ctx context.Context, u *undoing) (Changed, error) {
	token := s.undoneToken(u, u.came.UndoneAs)
	if token == "" {
		return Changed{}, errNoMerge
	}
	priced, err := s.Read(ctx, u.Visit)
	if err != nil {
		return Changed{}, cart.OutcomeUnknown("show cart", err) // it is undone
	}
	changed := Changed{Priced: priced, Undone: &Undone{token, u.came.Adjusted}, Durability: s.durability(ctx, u.own)}
	s.replicated(changed.Durability)
	return changed, nil
}

var (
	errCustomerOnly = problem.New(problem.Unauthenticated, "Authorization", locale.Text{
		locale.En: "Please log in first.",
		locale.Ar: "يُرجى تسجيل الدخول أولًا.",
	})
	errNoMerge = problem.New(problem.NotFound, "id", locale.Text{
		locale.En: "This can no longer be undone.",
		locale.Ar: "لم يعد التراجع عن هذا ممكنًا.",
	})
)
