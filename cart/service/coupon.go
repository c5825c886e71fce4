package service

import (
	"context"

	"commerce/cart"
	"commerce/cart/redisstore"
)

type CouponCode struct {
	Code   string // in the form that cart.NormalCouponCode returns
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
	set := change{Change: redisstore.SetCoupon(c.Code), member: c.Member}
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

// coupon returns one coupon of the request's store, nil when the store does not have it, and
// how often it was used: 0 if that is not known, since checkout counts again.
func (s *Carts) coupon(ctx context.Context, v *Visit, code string) (*cart.Coupon, cart.Uses, error) {
	coupon, err := s.Coupons.Coupon(ctx, v.Store.ID, code)
	if err != nil {
		return nil, cart.Uses{}, cart.Unavailable("coupon", err)
	}
	var uses cart.Uses
	if coupon != nil && coupon.MaxUses != nil {
		uses.All, _ = s.Coupons.Uses(ctx, v.Store.ID, code, "", *coupon.MaxUses)
	}
	if coupon != nil && coupon.MaxUsesCustomer != nil && v.customer != "" {
		uses.Customer, _ = s.Coupons.Uses(ctx, v.Store.ID, code, v.customer, *coupon.MaxUsesCustomer)
	}
	return coupon, uses, nil
}
