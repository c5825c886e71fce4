package service

import (
	"context"
	"slices"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/redisstore"
)

type CouponCode struct {
	Code   string // as the shopper entered it
	Member string // name of the request member that held the code, for errors

	NeedsLine bool // refused while the cart has no line
	Joins     bool // refused if it does not combine with those before, which stay
	Held      bool // it is a code that the cart had before, and is not judged again
}

// RedeemCoupon adds a code to the cart. Those that do not combine with it leave. A client that has had too
// many codes refused gets problem.RateLimited, unless a replay or If-Match takes
// precedence.
func (s *Carts) RedeemCoupon(ctx context.Context, v *Visit, on Conditions, c CouponCode) (Changed, error) {
	if err := s.priceable(ctx, v, on); err != nil {
		return Changed{}, err
	}
	return s.makeChange(ctx, v, on, s.redemption(v, c, newNeeded()))
}

// redemption is the change that adds a code to the cart, if it takes something off. Its rule asks for the code only
// when it is judged, so that the client does not learn what it is from a request that is refused for another reason.
func (s *Carts) redemption(v *Visit, c CouponCode, needs *needed) change {
	rule := func(cell *cart.Cell, limits cart.Limits, now time.Time) cart.Effect {
		if c.NeedsLine && len(cell.Lines) == 0 {
			return cart.Effect{Problem: cart.ErrEmpty}
		}
		code, judged := needs.codes[c.Code]
		if c.Held {
			code, judged = needs.held[c.Code]
		}
		missing := needs.missing(&cell.Cart)
		switch {
		case !judged && c.Held:
			return cart.Effect{Needs: &cart.Needs{Products: missing, Held: append(slices.Clone(cell.Coupons), c.Code)}}
		case !judged:
			return cart.Effect{Needs: &cart.Needs{Products: missing, Code: c.Code, Held: cell.Coupons}}
		case code.tooMany != nil:
			return cart.Effect{Problem: code.tooMany}
		case len(missing) > 0 || !needs.hasHeld(cell.Coupons):
			return cart.Effect{Needs: &cart.Needs{Products: missing, Held: cell.Coupons}}
		}
		if c.Held && code.coupon == nil {
			return cart.SetCodes(append(slices.Clone(cell.Coupons), c.Code)...)(cell, limits, now)
		}
		priced := price.Of(cell.Cart, v.Store, needs.products, s.Limits)
		if !c.Held {
			if refusal := price.RefuseCoupon(code.coupon, &priced, code.uses, v.Store, s.Now(), c.Member); refusal != nil {
				return cart.Effect{Problem: refusal}
			}
		}
		codes, left, refusal := priced.WithCode(needs.offered(cell.Coupons), code.coupon, c.Joins, s.Now(), c.Member)
		if refusal != nil {
			return cart.Effect{Problem: refusal}
		}
		effect := cart.SetCodes(codes...)(cell, limits, now)
		effect.Replaced = left
		return effect
	}
	return change{Change: cart.Change{Rule: rule}, member: c.Member, needs: needs, redeems: true}
}

// needed is what rules of a request have asked for.
type needed struct {
	products map[int64]*cart.Product // nil for one that the store does not have
	codes    map[string]code
	held     map[string]code // of codes that the cart has, which are no guesses
}

// code is what a coupon's code is found to be.
type code struct {
	coupon  *price.Coupon // nil if the store does not have it
	uses    price.Uses
	tooMany *problem.Error // why the client must not learn it; nil when it may
}

func newNeeded() *needed {
	return &needed{map[int64]*cart.Product{}, map[string]code{}, map[string]code{}}
}

func (n *needed) hasHeld(codes []string) bool {
	return !slices.ContainsFunc(codes, func(code string) bool { _, ok := n.held[code]; return !ok })
}

func (n *needed) offered(codes []string) []price.Offered {
	all := make([]price.Offered, len(codes))
	for i, code := range codes {
		all[i] = price.Offered{Code: code, Coupon: n.held[code].coupon, Uses: n.held[code].uses}
	}
	return all
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

func (n *needed) load(ctx context.Context, s *Carts, v *Visit, needs *cart.Needs) error {
	products, err := s.Catalog.Products(ctx, v.Store.ID, needs.Products)
	if err != nil {
		return cart.Unavailable("products", err)
	}
	for _, id := range needs.Products {
		n.products[id] = products[id]
	}
	for _, held := range needs.Held {
		var c code
		if c.coupon, c.uses, err = s.coupon(ctx, v, held); err != nil {
			return err
		}
		n.held[held] = c
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
func (s *Carts) coupon(ctx context.Context, v *Visit, code string) (*price.Coupon, price.Uses, error) {
	coupon, err := s.named(ctx, v, code)
	return coupon, s.uses(ctx, v, coupon), err
}

func (s *Carts) named(ctx context.Context, v *Visit, code string) (*price.Coupon, error) {
	alike, err := s.Coupons.CouponsByKey(ctx, v.Store.ID, cart.CouponKey(code))
	if err != nil {
		return nil, cart.Unavailable("coupon", err)
	}
	return price.NamedCoupon(alike, code), nil
}

// uses returns how often a coupon was used: 0 if that is not known.
func (s *Carts) uses(ctx context.Context, v *Visit, coupon *price.Coupon) (uses price.Uses) {
	if coupon != nil && coupon.MaxUses != nil {
		uses.All, _ = s.Coupons.Uses(ctx, v.Store.ID, coupon.Code, "", *coupon.MaxUses)
	}
	if coupon != nil && coupon.MaxUsesCustomer != nil && v.customer != "" {
		uses.Customer, _ = s.Coupons.Uses(ctx, v.Store.ID, coupon.Code, v.customer, *coupon.MaxUsesCustomer)
	}
	return uses
}

// combine returns a function that finds which codes have coupons that combine with others.
func (s *Carts) combine(v *Visit) redisstore.Combine {
	return func(ctx context.Context, codes []string) (map[string]bool, error) {
		combining := map[string]bool{}
		for _, code := range codes {
			coupon, err := s.named(ctx, v, code)
			if err != nil {
				return nil, err
			}
			combining[code] = coupon != nil && coupon.Combines && !coupon.Automatic
		}
		return combining, nil
	}
}

// redeem takes off what the cart's codes and the store's automatic coupons take off.
func (s *Carts) redeem(ctx context.Context, v *Visit, p *price.Priced, automatic []*price.Coupon) (err error) {
	if len(p.Cart.Coupons) == 0 && len(automatic) == 0 {
		return nil
	}
	codes, offered := make([]price.Offered, len(p.Cart.Coupons)), make([]price.Offered, len(automatic))
	for i, code := range p.Cart.Coupons {
		codes[i].Code = code
		if codes[i].Coupon, codes[i].Uses, err = s.coupon(ctx, v, code); err != nil {
			return err
		}
	}
	now := s.Now()
	for i, c := range automatic {
		if offered[i].Coupon = c; p.AsksUses(c, now) {
			offered[i].Uses = s.uses(ctx, v, c)
		}
	}
	p.Redeem(codes, offered, v.Store, now)
	return nil
}
