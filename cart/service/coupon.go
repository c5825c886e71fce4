package service

import (
	"context"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
)

type CouponCode struct {
	Code   string // as the shopper entered it
	Member string // name of the request member that held the code, for errors

	NeedsLine bool // refused while the cart has no line
}

// RedeemCoupon sets the cart's coupon, and replaces any other. A client that has had too
// many codes refused gets problem.RateLimited, unless a replay or If-Match takes
// precedence.
func (s *Carts) RedeemCoupon(ctx context.Context, v *Visit, on Conditions, c CouponCode) (Changed, error) {
	if err := s.priceable(ctx, v, on); err != nil {
		return Changed{}, err
	}
	return s.makeChange(ctx, v, on, s.redemption(v, c, newNeeded()))
}

// redemption is the change that gives the cart a coupon, if that takes something off it. Its rule asks for the code only
// when it is judged, so that the client does not learn what it is from a request that is refused for another reason.
func (s *Carts) redemption(v *Visit, c CouponCode, needs *needed) change {
	rule := func(cell *cart.Cell, limits cart.Limits, now time.Time) cart.Effect {
		if c.NeedsLine && len(cell.Lines) == 0 {
			return cart.Effect{Problem: cart.ErrEmpty}
		}
		code, judged := needs.codes[c.Code]
		missing := needs.missing(&cell.Cart)
		switch {
		case !judged:
			return cart.Effect{Needs: &cart.Needs{Products: missing, Code: c.Code}}
		case code.tooMany != nil:
			return cart.Effect{Problem: code.tooMany}
		case len(missing) > 0:
			return cart.Effect{Needs: &cart.Needs{Products: missing}}
		}
		priced := cart.Price(cell.Cart, v.Store, needs.products, s.Limits)
		if refusal := cart.RefuseCoupon(code.coupon, &priced, code.uses, v.Store, s.Now(), c.Member); refusal != nil {
			return cart.Effect{Problem: refusal}
		}
		return cart.SetCoupon(code.coupon.Code)(cell, limits, now)
	}
	return change{Change: cart.Change{Rule: rule}, member: c.Member, needs: needs}
}

// needed is what rules of a request have asked for.
type needed struct {
	products map[int64]*cart.Product // nil for one that the store does not have
	codes    map[string]code
}

// code is what a coupon's code is found to be.
type code struct {
	coupon  *cart.Coupon // nil if the store does not have it
	uses    cart.Uses
	tooMany *problem.Error // why the client must not learn it; nil when it may
}

func newNeeded() *needed { return &needed{map[int64]*cart.Product{}, map[string]code{}} }

// missing lists the products of a cart that are not loaded.
func (n *needed) missing(c *cart.Cart) (ids []int64) {
	for _, id := range c.ProductIDs() {
		if _, ok := n.products[id]; !ok {
			ids = append(ids, id)
		}
	}
	return ids
}

func (n *needed) load(ctx context.Context, s *Carts, v *Visit, needs *cart.Needs) error {
	products, err := s.Catalog.Products(ctx, v.Store.ID, needs.Products)
	if err != nil {
		return cart.Unavailable("products", err)
	}
	for _, id := range needs.Products {
		n.products[id] = products[id]
	}
	if needs.Code != "" {
		n.codes[needs.Code], err = s.judge(ctx, v, needs.Code)
	}
	return err
}

// judge looks a code up, and counts it if it does not exist.
func (s *Carts) judge(ctx context.Context, v *Visit, entered string) (c code, err error) {
	if c.tooMany = s.Guesses.refuse(v); c.tooMany != nil { // before the code is looked up, since that takes longer for some codes
		return c, nil
	}
	if c.coupon, c.uses, err = s.coupon(ctx, v, entered); err != nil {
		return c, err
	}
	c.tooMany = s.Guesses.judged(ctx, v, entered, c.coupon.Known(s.Now()))
	return c, nil
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
