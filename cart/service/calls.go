package service

import (
	"context"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
)

// Add adds a product. All-or-nothing: a refusal changes nothing.
func (s *Carts) Add(ctx context.Context, v *Visit, on redisstore.Conditions, a cart.Addition) (Changed, error) {
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
	return s.apply(ctx, v, on, change{redisstore.Add(line, s.limits), refusal, a.QuantityMember, product})
}

// NewQuantity is what a shopper asks of a line.
type NewQuantity struct {
	Item     cart.LineID // "" for none that can exist
	Quantity int64       // 0 removes the line
	Member   string      // the request's name for the quantity, which errors name
}

// SetQuantity sets the quantity of a line.
func (s *Carts) SetQuantity(ctx context.Context, v *Visit, on redisstore.Conditions, n NewQuantity) (Changed, error) {
	if n.Quantity == 0 || n.Item == "" {
		return s.apply(ctx, v, on, change{Change: redisstore.SetQuantity(n.Item, n.Quantity, cart.BoundsOf(nil, s.limits), "")})
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
	return s.apply(ctx, v, on, change{Change: set, member: n.Member, product: product})
}

// Remove removes a line. Removing a line that is not there changes nothing.
func (s *Carts) Remove(ctx context.Context, v *Visit, on redisstore.Conditions, item cart.LineID) (Changed, error) {
	return s.apply(ctx, v, on, change{Change: redisstore.Remove(item)})
}

// Clear removes all lines and the coupon.
func (s *Carts) Clear(ctx context.Context, v *Visit, on redisstore.Conditions) (Changed, error) {
	return s.apply(ctx, v, on, change{Change: redisstore.Clear()})
}

// CouponCode is a coupon that a shopper redeems.
type CouponCode struct {
	Code   string // as cart.NormalCouponCode gives it
	Member string // the request's name for it, which errors name
}

// RedeemCoupon gives the cart a coupon, in the place of another.
func (s *Carts) RedeemCoupon(ctx context.Context, v *Visit, on redisstore.Conditions, c CouponCode) (Changed, error) {
	coupon, err := s.coupon(ctx, v, c.Code)
	if err != nil {
		return Changed{}, err
	}
	priced, err := s.Read(ctx, v)
	if err != nil {
		return Changed{}, err
	}
	refusal := cart.JudgeCoupon(coupon, v.Store, priced.Buyable, s.now(), c.Member)
	return s.apply(ctx, v, on, change{redisstore.SetCoupon(c.Code), refusal, c.Member, nil})
}

// DropCoupon removes the coupon.
func (s *Carts) DropCoupon(ctx context.Context, v *Visit, on redisstore.Conditions) (Changed, error) {
	return s.apply(ctx, v, on, change{Change: redisstore.SetCoupon("")})
}

// Refuse returns the refusal of a change whose members cannot be read, unless a replay
// or If-Match takes precedence.
func (s *Carts) Refuse(ctx context.Context, v *Visit, on redisstore.Conditions, refusal *problem.Error) (Changed, error) {
	if on.Key == "" && on.IfMatch == "" {
		return Changed{}, refusal
	}
	return s.apply(ctx, v, on, change{refusal: refusal})
}
