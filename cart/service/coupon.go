package service

import (
	"context"

	"commerce/cart"
	"commerce/cart/redisstore"
)

type CouponCode struct {
	Code   string // as the shopper entered it
	Member string // name of the request member that held the code, for errors

	needsLine bool // refused while the cart has no line
}

// RedeemCoupon sets the cart's coupon, and replaces any other. A client that has had too
// many codes refused gets problem.RateLimited, unless a replay or If-Match takes
// precedence.
func (s *Carts) RedeemCoupon(ctx context.Context, v *Visit, on Conditions, c CouponCode) (Changed, error) {
	priced, err := s.Read(ctx, v)
	if err != nil {
		return Changed{}, err
	}
	redemption, err := s.redemption(ctx, v, c, &priced, isOther(priced.Cart, on))
	if err != nil {
		return Changed{}, err
	}
	return s.makeChange(ctx, v, on, redemption)
}

// redemption returns the change that sets a coupon, or its refusal. It does not judge the code if the cart was another
// version: then the client does not learn what the code is.
func (s *Carts) redemption(ctx context.Context, v *Visit, c CouponCode, p *cart.Priced, other bool) (change, error) {
	set := change{member: c.Member}
	switch {
	case other:
		set.refuse(errOtherVersion)
		return set, nil
	case c.needsLine && len(p.Lines) == 0:
		set.refuse(cart.ErrEmpty)
		return set, nil
	}
	refusal := s.Guesses.refuse(v) // before the code is looked up, since that takes longer for some codes
	if refusal == nil {
		coupon, uses, err := s.coupon(ctx, v, c.Code)
		if err != nil {
			return change{}, err
		}
		if coupon != nil {
			set.Change = redisstore.SetCoupon(coupon.Code)
		}
		refusal = cart.RefuseCoupon(coupon, p, uses, v.Store, s.Now(), c.Member)
		exists := refusal == nil || refusal.Data != cart.CouponGone
		if tooMany := s.Guesses.judged(ctx, v, c.Code, exists); tooMany != nil {
			refusal = tooMany
		}
	}
	if refusal != nil {
		set.refuse(refusal)
	}
	return set, nil
}

// coupon returns the coupon of the request's store that a code names, nil when the store does not have it, and
// how often it was used: 0 if that is not known, since checkout counts again.
func (s *Carts) coupon(ctx context.Context, v *Visit, code string) (*cart.Coupon, cart.Uses, error) {
	alike, err := s.Coupons.CouponsByKey(ctx, v.Store.ID, cart.CouponKey(code))
	if err != nil {
		return nil, cart.Uses{}, cart.Unavailable("coupon", err)
	}
	coupon := cart.NamedCoupon(alike, code)
	var uses cart.Uses
	if coupon != nil && coupon.MaxUses != nil {
		uses.All, _ = s.Coupons.Uses(ctx, v.Store.ID, coupon.Code, "", *coupon.MaxUses)
	}
	if coupon != nil && coupon.MaxUsesCustomer != nil && v.customer != "" {
		uses.Customer, _ = s.Coupons.Uses(ctx, v.Store.ID, coupon.Code, v.customer, *coupon.MaxUsesCustomer)
	}
	return coupon, uses, nil
}

// sameCoupon reports whether two codes name the same coupon. If the coupons are unreachable, codes that compare
// equal do.
func (s *Carts) sameCoupon(ctx context.Context, v *Visit, a, b string) bool {
	key := cart.CouponKey(a)
	if key != cart.CouponKey(b) || a == b {
		return a == b
	}
	alike, _ := s.Coupons.CouponsByKey(ctx, v.Store.ID, key)
	return cart.NamedCoupon(alike, a) == cart.NamedCoupon(alike, b)
}
