package service

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"
	"time"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
)

// A share is a copy of a cart's lines that anyone with its code can open: see "Sharing" in docs/design.md. It is
// kept before it is listed, so a request that dies between leaves a copy whose code nobody knows, until it expires.

// Shared is a share that was made.
type Shared struct {
	Code      string
	ExpiresAt time.Time
	URL       string // of the page that shows the share; "" if the store has none
	Replayed  bool   // an earlier request with the same key made it
}

// Share shares the lines of the visit's cart. key is the Idempotency-Key, "" for none. Errors: problem.CartEmpty,
// problem.RateLimited, problem.ValidationFailed for too many shares; problem.NotFound without Config.Keys.
func (s *Carts) Share(ctx context.Context, v *Visit, key string) (Shared, error) {
	if s.Keys == nil {
		return Shared{}, cart.ErrNoCode
	}
	c, err := s.Look(ctx, v)
	if err != nil {
		return Shared{}, err
	}
	if c.ID == "" {
		return Shared{}, cart.ErrEmpty
	}
	codes, err := s.shareCodes(v, c.ID, key)
	if err != nil {
		return Shared{}, err
	}
	limited, trip := v.budget.spend(ctx, 1)
	defer trip.done()
	found, err := s.Redis.FindShare(limited, v.own, c.ID, codes...)
	if err == nil && found.Status == redisstore.ShareFree {
		found, err = s.keepShare(limited, v, found.Code, c)
	}
	switch {
	case err != nil:
		return Shared{}, err
	case found.Status == redisstore.ShareFull:
		return Shared{}, errTooManyShares
	}
	shared := Shared{Code: found.Code, ExpiresAt: found.Expires, Replayed: found.Status != redisstore.ShareFree}
	if v.Store.CartURL != "" {
		shared.URL = v.Store.CartURL + "#share=" + shared.Code
	}
	return shared, nil
}

// shareCodes returns the code of a share, and what it is under the previous key.
func (s *Carts) shareCodes(v *Visit, cartID, key string) ([]string, error) {
	if key == "" {
		random, err := auth.NewCartToken(s.Rand)
		return []string{s.Keys.Name() + random.Reveal()}, err
	}
	var codes []string
	for _, name := range []string{s.Keys.Name(), s.Keys.Previous()} {
		if sum, ok := s.Keys.Derive(name, "share", strconv.FormatInt(v.Store.ID, 10), cartID, key); ok {
			codes = append(codes, name+base64.RawURLEncoding.EncodeToString(sum[:16]))
		}
	}
	return codes, nil
}

func (s *Carts) keepShare(ctx context.Context, v *Visit, code string, c Unpriced) (redisstore.Listing, error) {
	if len(c.Lines) == 0 {
		return redisstore.Listing{}, cart.ErrEmpty
	}
	if s.Creation.Refuse(v.client, errSharesTooFast) != nil {
		return redisstore.Listing{}, s.Creation.Refused(v.client, errSharesTooFast)
	}
	kept, err := s.Redis.KeepShare(ctx, v.own, c.ID, code, cart.Shared(c.Lines, c.Products, s.Limits.Quantity))
	if err == nil && kept.Status == redisstore.ShareFree {
		s.Creation.Use(ctx, v.client)
	}
	return kept, err
}

// SharedCart returns the cart that a share holds, at current prices. Errors: problem.NotFound, and
// problem.RateLimited for a client that has sent too many wrong codes.
func (s *Carts) SharedCart(ctx context.Context, v *Visit, code string) (cart.Priced, error) {
	shared, err := s.shared(ctx, v, code)
	if err != nil {
		return cart.Priced{}, err
	}
	shared.ID = "" // it is not the maker's cart
	priced, err := s.price(ctx, v, shared)
	for _, l := range priced.Lines {
		l.AddedPrice = l.Unit.Total()
	}
	return priced, err
}

// Unshare deletes a share that the visit's cart has made, or a cart that was merged into it. It fails like SharedCart.
func (s *Carts) Unshare(ctx context.Context, v *Visit, code string) error {
	stored, err := s.load(ctx, v)
	if err != nil {
		return err
	}
	return s.guarded(ctx, v, func(ctx context.Context) error {
		deleted, err := s.Redis.Unshare(ctx, v.own, stored.ID, code)
		if err == nil && !deleted {
			err = cart.ErrNoCode
		}
		return err
	})
}

func (s *Carts) shared(ctx context.Context, v *Visit, code string) (shared cart.Cart, err error) {
	err = s.guarded(ctx, v, func(ctx context.Context) error {
		if shared, err = s.Redis.Shared(ctx, v.own, code); err == nil && shared.ID == "" {
			err = cart.ErrNoCode
		}
		return err
	})
	return shared, err
}

// guarded looks a code up, unless the client has sent too many wrong ones. find fails with cart.ErrNoCode if this one
// is wrong.
func (s *Carts) guarded(ctx context.Context, v *Visit, find func(context.Context) error) error {
	if s.Keys == nil {
		return cart.ErrNoCode
	}
	forget, tooMany := s.Guesses.ofShare.Take(ctx, v.client, errTooManyCodes)
	if tooMany != nil {
		return tooMany
	}
	limited, trip := v.budget.spend(ctx, 1)
	err := find(limited)
	trip.done()
	if !errors.Is(err, cart.ErrNoCode) {
		forget()
	}
	return err
}

var (
	errTooManyShares = problem.New(problem.ValidationFailed, "", locale.Text{
		locale.En: "A cart can have at most 10 shared links. Please delete one first.",
		locale.Ar: "لا يمكن أن يكون للسلة أكثر من 10 روابط مشاركة. يُرجى حذف أحدها أولًا.",
	})
	errSharesTooFast = problem.New(problem.RateLimited, "", locale.Text{
		locale.En: "Too many new carts and shared links came from your address. Please try again in a moment.",
		locale.Ar: "أُنشئت سلات وروابط مشاركة كثيرة من عنوانك. يُرجى المحاولة بعد لحظات.",
	})
	errTooManyCodes = problem.New(problem.RateLimited, "", locale.Text{
		locale.En: "Too many links were not valid. Please try again in a few minutes.",
		locale.Ar: "كان عدد كبير جدًا من الروابط غير صالح. يُرجى المحاولة بعد بضع دقائق.",
	})
)
