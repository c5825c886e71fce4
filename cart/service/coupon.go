package service

import (
	"context"
	"errors"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
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
	if err := s.priceable(ctx, v, on); err != nil {
		return Changed{}, err
	}
	forget, tooMany := s.Guesses.begin(ctx, v.client, v.name())
	if tooMany != nil {
		return s.Refuse(ctx, v, on, tooMany)
	}
	redemption, err := s.redemption(ctx, v, c)
	if err != nil {
		forget()
		return Changed{}, err
	}
	changed, err := s.makeChange(ctx, v, on, redemption)
	if refusal, refused := errors.AsType[*problem.Error](err); !refused || !isCouponRefusal(refusal) {
		forget()
	}
	return changed, err
}

func isCouponRefusal(err *problem.Error) bool {
	_, ok := err.Data.(cart.CouponReason)
	return ok
}

// redemption is the change that gives the cart a coupon, if that takes something off it.
func (s *Carts) redemption(ctx context.Context, v *Visit, c CouponCode) (change, error) {
	coupon, uses, err := s.coupon(ctx, v, c.Code)
	if err != nil {
		return change{}, err
	}
	needs := &needed{map[int64]*cart.Product{}}
	set := cart.SetCoupon(c.Code)
	rule := func(cell *cart.Cell, limits cart.Limits, now time.Time) cart.Effect {
		if c.needsLine && len(cell.Lines) == 0 {
			return cart.Effect{Problem: cart.ErrEmpty}
		}
		if missing := needs.missing(&cell.Cart); len(missing) > 0 {
			return cart.Effect{Needs: missing}
		}
		priced := cart.Price(cell.Cart, v.Store, needs.products, s.Limits)
		if refusal := cart.RefuseCoupon(coupon, &priced, uses, v.Store, s.Now(), c.Member); refusal != nil {
			return cart.Effect{Problem: refusal}
		}
		return set(cell, limits, now)
	}
	return change{Change: cart.Change{Rule: rule}, member: c.Member, needs: needs}, nil
}

// missing lists the products of a cart that are not loaded.
func (n *needed) missing(c *cart.Cart) (ids []int64) {
	for _, id := range c.ProductIDs() {
		if _, ok := n.products[id]; !ok {
			ids = append(ids, id)
		}
	}
	return ids
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
