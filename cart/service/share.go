package service

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"

	"commerce/auth/problem"
	"commerce/cart"
)

// A share is a copy of a cart's lines that anyone with its code can open: see "Sharing" in docs/design.md. It is kept
// before it is listed. If a request dies between, nobody knows the code, and a repeat with the same key lists it.

// Share returns a link to the lines of the visit's cart, and whether an earlier request with the same Idempotency-Key,
// "" for none, has made it. Errors: problem.CartEmpty, problem.RateLimited, those of redisstore.KeepShare, and
// problem.NotFound without Config.Keys.
func (s *Carts) Share(ctx context.Context, v *Visit, key string) (_ Link, replayed bool, _ error) {
	if s.Keys == nil {
		return Link{}, false, cart.ErrNoCode
	}
	c, err := s.Look(ctx, v)
	if err == nil && c.ID == "" {
		err = cart.ErrEmpty
	}
	if err != nil {
		return Link{}, false, err
	}
	limited, trip := v.budget.spend(ctx, 1)
	defer trip.done()
	codes := s.shareCodes(v, c.ID, key)
	for i := 0; i < len(codes) && !replayed; i++ {
		if _, err := s.Redis.Shared(limited, v.own, codes[i]); err == nil {
			codes, replayed = append(codes[i:], codes[:i]...), true
		} else if !errors.Is(err, cart.ErrNoCode) {
			return Link{}, false, err
		}
	}
	lines := cart.Shared(c.Lines, c.Products, s.Limits.Quantity)
	tooMany, tooMuch := s.Creation.Refuse(v.client, errTooManyCarts), s.tooMuchText(v.client, cart.StoredText(lines))
	switch {
	case replayed:
	case len(lines) == 0:
		return Link{}, false, cart.ErrEmpty
	case tooMany != nil:
		return Link{}, false, tooMany
	case tooMuch != nil:
		return Link{}, false, tooMuch
	}
	ends, err := s.Redis.KeepShare(limited, v.own, c.ID, lines, codes...)
	if err == nil && !replayed {
		s.Creation.Use(ctx, v.client)
		s.Text.UseN(ctx, v.client, cart.StoredText(lines))
	}
	return linkTo(v, "share", codes[0], ends), replayed, err
}

// shareCodes returns the code that a share gets, and the one that it has if it was made under the previous key.
func (s *Carts) shareCodes(v *Visit, cartID, key string) (codes []string) {
	if key == "" {
		key = s.newName(26)
	}
	for _, name := range []string{s.Keys.Name(), s.Keys.Previous()} {
		if sum, ok := s.Keys.Derive(name, "share", strconv.FormatInt(v.Store.ID, 10), cartID, key); ok {
			codes = append(codes, name+base64.RawURLEncoding.EncodeToString(sum[:16]))
		}
	}
	return codes
}

// shared returns the lines of a share. Errors: problem.NotFound, and problem.RateLimited for a client that has sent too
// many wrong codes.
func (s *Carts) shared(ctx context.Context, v *Visit, code string) (shared cart.Cart, err error) {
	err = s.guarded(ctx, v, code, func(ctx context.Context) error {
		shared, err = s.Redis.Shared(ctx, v.own, code)
		shared.ID = "" // that of the cart that has shared
		return err
	})
	return shared, err
}

// SharedCart returns the lines of a share at current prices. It fails like shared.
func (s *Carts) SharedCart(ctx context.Context, v *Visit, code string) (cart.Priced, error) {
	shared, err := s.shared(ctx, v, code)
	if err != nil {
		return cart.Priced{}, err
	}
	priced, err := s.price(ctx, v, shared)
	for _, l := range priced.Lines {
		l.AddedPrice = l.Unit.Total()
	}
	return priced, err
}

func (s *Carts) addShared(ctx context.Context, v *Visit, on Conditions, code string) (Changed, error) {
	shared, err := s.shared(ctx, v, code)
	if refusal, ok := errors.AsType[*problem.Error](err); ok && refusal.Code != problem.Unavailable {
		c := change{Change: cart.Change{List: true}}
		c.refuse(refusal.Within("ops.0").WithData(OpFault{}))
		return s.makeChange(ctx, v, on, c)
	}
	if err != nil {
		return Changed{}, err
	}
	list := List{Each: true}
	for _, l := range shared.Lines {
		list.Ops = append(list.Ops, Op{Add: new(l.Addition())})
	}
	return s.Ops(ctx, v, on, list)
}

// Unshare deletes a share that the visit's cart has made, or a cart that was merged into it. It fails like shared.
func (s *Carts) Unshare(ctx context.Context, v *Visit, code string) error {
	stored, err := s.load(ctx, v)
	if err != nil {
		return err
	}
	return s.guarded(ctx, v, code, func(ctx context.Context) error { return s.Redis.Unshare(ctx, v.own, stored.ID, code) })
}

// guarded looks a code up, unless its key is gone, or the client has sent too many wrong ones, for which find returns
// cart.ErrNoCode. Since no code can be guessed, right ones at the same time may be found beyond the limit.
func (s *Carts) guarded(ctx context.Context, v *Visit, code string, find func(context.Context) error) error {
	if s.Keys == nil {
		return cart.ErrNoCode
	}
	if tooMany := s.Guesses.ofShare.Take(ctx, v.client, "", errTooManyGuesses); tooMany != nil {
		return tooMany
	}
	var err error = cart.ErrNoCode
	if s.Keys.Knows(code) {
		limited, trip := v.budget.spend(ctx, 1)
		defer trip.done()
		err = find(limited)
	}
	if errors.Is(err, cart.ErrNoCode) {
		if tooMany := s.Guesses.ofShare.Take(ctx, v.client, guessOf("", code), errTooManyGuesses); tooMany != nil {
			return tooMany
		}
	}
	return err
}
