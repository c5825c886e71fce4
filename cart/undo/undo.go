// Package undo undoes merges: see "Undoing a merge" in docs/design.md.
package undo

import (
	"context"
	"encoding/base64"
	"errors"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/transfer"
)

// To undo a merge, a new guest's cart is stored first, and then the lines are taken out of the customer's. A request may die
// between any two steps. Nobody can know the new token before the request that has taken the lines out, or a repeat of it, tells it.

// Undos has the call that undoes a merge.
type Undos struct{ carts *service.Carts }

// New returns the call that undoes merges into carts.
func New(carts *service.Carts) *Undos { return &Undos{carts} }

// Undone is the customer's cart after an undo, and what it took out.
type Undone struct {
	service.Changed
	Guest    auth.CartToken // of the cart with what was taken out
	Adjusted []cart.Adjustment
}

// Undo undoes a merge into the customer's cart. A repeat has the same result. Of the conditions, only IfMatch counts.
// Errors: problem.Unauthenticated for a guest; problem.NotFound for a merge that is unknown, or too long ago;
// problem.VersionMismatch; problem.RateLimited; problem.Unavailable if nothing was undone; problem.OutcomeUnknown if it may have
// been, after which a repeat completes it.
func (s *Undos) Undo(ctx context.Context, v *service.Visit, on service.Conditions, id string) (Undone, error) {
	if v.Customer() == "" {
		return Undone{}, errCustomerOnly
	}
	for range undoRounds {
		u := undoing{Visit: v, id: id}
		err := s.undo(ctx, &u, on)
		switch {
		case err != nil && u.sent:
			return Undone{}, cart.OutcomeUnknown("undo merge", err)
		case errors.Is(err, transfer.ErrUnknown) && v.Postponed():
			// A failover may have lost the merge, which the request would have made again.
			return Undone{}, cart.AsUnavailable("undo merge", err)
		case errors.Is(err, transfer.ErrUnknown):
			return Undone{}, errNoMerge
		case err != nil:
			return Undone{}, cart.AsUnavailable("undo merge", err)
		case u.came.UndoneAs != "":
			return s.undone(ctx, &u)
		}
	}
	return Undone{}, errAlwaysChanged
}

// errAlwaysChanged means that the cart was another one after each read.
var errAlwaysChanged = cart.Unavailable("undo merge", errors.New("undo: other requests changed the cart after each read"))

// undoRounds is how often an undo is computed from a read before the call fails.
const undoRounds = 5

type undoing struct {
	*service.Visit
	id string // of the merge

	sent bool            // it may be undone
	came transfer.CameIn // not undone if the cart has changed meanwhile
}

// undo makes one attempt. The name, from which the guest's token is derived, is new in each.
func (s *Undos) undo(ctx context.Context, u *undoing, on service.Conditions) error {
	var found redisstore.Undoable
	err := s.carts.Step(ctx, func(ctx context.Context) (err error) {
		found, err = s.carts.Redis.FindMerge(ctx, u.Ref(), u.id)
		return err
	})
	if err != nil {
		return err
	}
	name := s.carts.Keys.Name() + s.carts.NewName(26)
	guest := redisstore.GuestRef(u.Store.ID, s.undoneToken(u, name))
	takesOut := false
	if found.Came.UndoneAs == "" {
		if !on.Allows(&found.Cart) {
			return s.carts.VersionMismatch(ctx, u.Visit, found.Cart)
		}
		takesOut = found.Undone.Guest.InUse()
		if err := s.beginUndone(ctx, u, guest, found.Undone.Guest); err != nil {
			return err
		}
	}
	err = s.carts.Step(ctx, func(ctx context.Context) error {
		u.came, u.sent, err = s.carts.Redis.Undo(ctx, u.Ref(), u.id, name, found)
		return err
	})
	told := err == nil || errors.Is(err, redisstore.ErrUnconfirmed)
	if told && u.came.UndoneAs != name && takesOut {
		s.carts.Redis.DropUndone(ctx, guest)
	}
	return err
}

// beginUndone stores the new guest's cart, unless nothing is taken out.
func (s *Undos) beginUndone(ctx context.Context, u *undoing, guest redisstore.Ref, c cart.Cart) error {
	if !c.InUse() {
		return nil
	}
	text := cart.StoredText(c.Lines) + c.Metadata.StoredText()
	if refusal := s.carts.RefuseCreation(u.Visit, text); refusal != nil {
		return refusal
	}
	c.ID = s.carts.NewCartID()
	err := s.carts.Step(ctx, func(ctx context.Context) error { return s.carts.Redis.BeginUndone(ctx, u.Ref(), guest, c) })
	s.carts.CountCreation(ctx, u.Visit, text)
	if errors.Is(err, redisstore.ErrUnconfirmed) {
		s.carts.Redis.DropUndone(ctx, guest)
	}
	return err
}

// undoneToken is the token of the guest's cart that an undo has made under a name; "" if its key is gone.
func (s *Undos) undoneToken(u *undoing, name string) auth.CartToken {
	sum, ok := s.carts.Keys.Derive(name[:len(s.carts.Keys.Name())], "undo token", u.Ref().String(), u.id, name)
	if !ok {
		return ""
	}
	return auth.CartToken(base64.RawURLEncoding.EncodeToString(sum[:16]))
}

func (s *Undos) undone(ctx context.Context, u *undoing) (Undone, error) {
	token := s.undoneToken(u, u.came.UndoneAs)
	if token == "" {
		return Undone{}, errNoMerge
	}
	changed, err := s.carts.AfterTransfer(ctx, u.Visit, u.Ref())
	if err != nil {
		return Undone{}, cart.OutcomeUnknown("show cart", err) // it is undone
	}
	return Undone{changed, token, u.came.Adjusted}, nil
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
