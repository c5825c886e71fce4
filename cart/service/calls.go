package service

import (
	"context"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
)

// Add adds a product. It is atomic: a refusal changes nothing. A failure is
// problem.Unavailable, or problem.OutcomeUnknown when the change may have been made.
func (s *Carts) Add(ctx context.Context, v *Visit, on Conditions, a cart.Addition) (Changed, error) {
	product, err := s.product(ctx, v, a.ProductID)
	if err != nil {
		return Changed{}, err
	}
	if on.Key == "" {
		if err := s.priceable(ctx, v); err != nil {
			return Changed{}, err
		}
	}
	line, refusal := cart.Resolve(a, product, s.limits)
	return s.makeChange(ctx, v, on, change{redisstore.Add(line, s.limits), refusal, a.QuantityMember, product})
}

// NewQuantity is a shopper's request to change the quantity of a line.
type NewQuantity struct {
	Item     cart.LineID // "" if no line can have the requested ID
	Quantity int64       // 0 removes the line
	Member   string      // name of the request member that held the quantity, for errors
}

// SetQuantity sets the quantity of a line; 0 removes it. It fails like Add.
func (s *Carts) SetQuantity(ctx context.Context, v *Visit, on Conditions, n NewQuantity) (Changed, error) {
	if n.Quantity == 0 || n.Item == "" {
		return s.makeChange(ctx, v, on, change{Change: redisstore.SetQuantity(n.Item, n.Quantity, cart.BoundsOf(nil, s.limits), "")})
	}
	product, err := s.product(ctx, v, n.Item.Product())
	if err != nil {
		return Changed{}, err
	}
	var raise problem.Code
	switch {
	case product == nil:
		raise = problem.ProductNotFound
	case !product.Active:
		raise = problem.ProductInactive
	}
	set := redisstore.SetQuantity(n.Item, n.Quantity, cart.BoundsOf(product, s.limits), raise)
	return s.makeChange(ctx, v, on, change{Change: set, member: n.Member, product: product})
}

// Remove removes a line. Removing a line that does not exist changes nothing and succeeds.
func (s *Carts) Remove(ctx context.Context, v *Visit, on Conditions, item cart.LineID) (Changed, error) {
	return s.makeChange(ctx, v, on, change{Change: redisstore.Remove(item)})
}

// Clear removes all lines and the coupon.
func (s *Carts) Clear(ctx context.Context, v *Visit, on Conditions) (Changed, error) {
	return s.makeChange(ctx, v, on, change{Change: redisstore.Clear()})
}

// CouponCode is a shopper's request to redeem a coupon.
type CouponCode struct {
	Code   string // in the form that cart.NormalCouponCode returns
	Member string // name of the request member that held the code, for errors
}

// RedeemCoupon sets the cart's coupon, and replaces any other.
func (s *Carts) RedeemCoupon(ctx context.Context, v *Visit, on Conditions, c CouponCode) (Changed, error) {
	coupon, err := s.coupon(ctx, v, c.Code)
	if err != nil {
		return Changed{}, err
	}
	priced, err := s.Read(ctx, v)
	if err != nil {
		return Changed{}, err
	}
	refusal := cart.JudgeCoupon(coupon, v.Store, priced.Buyable, s.now(), c.Member)
	return s.makeChange(ctx, v, on, change{redisstore.SetCoupon(c.Code), refusal, c.Member, nil})
}

// DropCoupon removes the coupon, if there is one.
func (s *Carts) DropCoupon(ctx context.Context, v *Visit, on Conditions) (Changed, error) {
	return s.makeChange(ctx, v, on, change{Change: redisstore.SetCoupon("")})
}

// Refuse returns refusal, which is about an invalid request body, unless a replay or
// If-Match takes precedence.
func (s *Carts) Refuse(ctx context.Context, v *Visit, on Conditions, refusal *problem.Error) (Changed, error) {
	if on.Key == "" && on.IfMatch == "" {
		return Changed{}, refusal
	}
	return s.makeChange(ctx, v, on, change{refusal: refusal})
}
