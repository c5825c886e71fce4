// Package share lets a cart share a copy of its lines, which anyone with the code can open: see "Sharing" in docs/design.md. A
// share is kept before it is listed. If a request dies between, nobody knows the code, and a repeat with the same key lists it.
package share

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"
	"time"

	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/service"
)

// Shares has the calls with shares.
type Shares struct {
	carts *service.Carts
	wrong *limit.Window
}

// New returns the Shares of carts. wrong limits the codes that do not exist; nil: no limit.
func New(carts *service.Carts, wrong *limit.Window) *Shares { return &Shares{carts, wrong} }

// NewLimit returns the limit of different wrong codes of a client, which counts as c says, except for its name and rates.
func NewLimit(c limit.Config) *limit.Window {
	c.Name, c.Rates = "shares", []limit.Rate{{Uses: 40, Per: 10 * time.Minute}}
	return limit.NewWindow(c)
}

// Share returns a link to the lines of the visit's cart, and whether an earlier request with the same Idempotency-Key,
// "" for none, has made it. Errors: problem.CartEmpty, problem.RateLimited, those of keep, and
// problem.NotFound without a key for codes.
func (s *Shares) Share(ctx context.Context, v *service.Visit, key string) (_ service.Link, replayed bool, _ error) {
	if s.carts.Keys == nil {
		return service.Link{}, false, cart.ErrNoCode
	}
	c, err := s.carts.Look(ctx, v)
	if err == nil && c.ID == "" {
		err = cart.ErrEmpty
	}
	if err != nil {
		return service.Link{}, false, err
	}
	limited, done := v.Within(ctx)
	defer done()
	codes := s.codes(v, c.ID, key)
	for i := 0; i < len(codes) && !replayed; i++ {
		if _, err := load(limited, s.carts.Redis, v.Ref(), codes[i]); err == nil {
			codes, replayed = append(codes[i:], codes[:i]...), true
		} else if !errors.Is(err, cart.ErrNoCode) {
			return service.Link{}, false, err
		}
	}
	lines := Copy(c.Lines, c.Products, s.carts.Limits.Quantity)
	switch text := cart.StoredText(lines); {
	case replayed:
	case len(lines) == 0:
		return service.Link{}, false, cart.ErrEmpty
	default:
		if tooMuch := s.carts.RefuseCreation(v, text); tooMuch != nil {
			return service.Link{}, false, tooMuch
		}
	}
	k := keeping{s.carts.Redis, v.Ref(), c.ID, lines, codes}
	ends, err := k.keep(limited)
	if err == nil && !replayed {
		s.carts.CountCreation(ctx, v, cart.StoredText(lines))
	}
	return service.LinkTo(v, "share", codes[0], ends), replayed, unsure("share cart", err, key)
}

// codes returns the code that a share gets, and the one that it has if it was made under the previous key.
func (s *Shares) codes(v *service.Visit, cartID, key string) (codes []string) {
	if key == "" {
		key = s.carts.NewName(26)
	}
	for _, name := range []string{s.carts.Keys.Name(), s.carts.Keys.Previous()} {
		if sum, ok := s.carts.Keys.Derive(name, "share", strconv.FormatInt(v.Store.ID, 10), cartID, key); ok {
			codes = append(codes, name+base64.RawURLEncoding.EncodeToString(sum[:16]))
		}
	}
	return codes
}

// open returns the lines of a share. Errors: problem.NotFound, and problem.RateLimited for a client that has sent too
// many wrong codes.
func (s *Shares) open(ctx context.Context, v *service.Visit, code string) (shared cart.Cart, err error) {
	err = s.guarded(ctx, v, code, func(ctx context.Context) error {
		shared, err = load(ctx, s.carts.Redis, v.Ref(), code)
		shared.ID = "" // that of the cart that has shared
		return err
	})
	return shared, err
}

// SharedCart returns the lines of a share at current prices. It fails like open.
func (s *Shares) SharedCart(ctx context.Context, v *service.Visit, code string) (price.Priced, error) {
	shared, err := s.open(ctx, v, code)
	if err != nil {
		return price.Priced{}, err
	}
	priced, err := s.carts.PriceCart(ctx, v, shared)
	for _, l := range priced.Lines {
		l.AddedPrice = l.Unit.Total()
	}
	return priced, err
}

// additions returns the requests to add the lines of a share. It fails like open.
func (s *Shares) additions(ctx context.Context, v *service.Visit, code string) (all []cart.Addition, err error) {
	shared, err := s.open(ctx, v, code)
	for _, l := range shared.Lines {
		all = append(all, Addition(l))
	}
	return all, err
}

// Unshare deletes a share that the visit's cart has made, or a cart that was merged into it. It fails like open; without an
// Idempotency-Key, "", with problem.OutcomeUnknown if Redis failed.
func (s *Shares) Unshare(ctx context.Context, v *service.Visit, key, code string) error {
	stored, err := s.carts.Load(ctx, v)
	if err != nil {
		return err
	}
	return s.guarded(ctx, v, code, func(ctx context.Context) error {
		return unsure("delete share", remove(ctx, s.carts.Redis, v.Ref(), stored.ID, code), key)
	})
}

// unsure returns the error of a change with an Idempotency-Key, "" for none: without one, it may have been made if Redis failed.
func unsure(doing string, err error, key string) error {
	if failed, ok := errors.AsType[*problem.Error](err); ok && failed.Code == problem.Unavailable && key == "" {
		return cart.OutcomeUnknown(doing, err)
	}
	return err
}

// guarded looks a code up, unless its key is gone, or the client has sent too many wrong ones, for which find returns
// cart.ErrNoCode. Since no code can be guessed, right ones at the same time may be found beyond the limit.
func (s *Shares) guarded(ctx context.Context, v *service.Visit, code string, find func(context.Context) error) error {
	if s.carts.Keys == nil {
		return cart.ErrNoCode
	}
	if tooMany := s.wrong.Take(ctx, v.Client(), "", service.ErrTooManyGuesses); tooMany != nil {
		return tooMany
	}
	var err error = cart.ErrNoCode
	if s.carts.Keys.Knows(code) {
		limited, done := v.Within(ctx)
		defer done()
		err = find(limited)
	}
	if errors.Is(err, cart.ErrNoCode) {
		if tooMany := s.wrong.Take(ctx, v.Client(), digestOf(code), service.ErrTooManyGuesses); tooMany != nil {
			return tooMany
		}
	}
	return err
}
