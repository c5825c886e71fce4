package cart

import (
	"slices"
	"time"

	"commerce/auth/store"
	"commerce/cart/money"
)

// Coupon lowers a cart's price. A *Coupon is shared between requests: do not change it.
type Coupon struct {
	Code    string // as the catalog spells it: see CouponKey
	Kind    CouponKind
	Rate    int64        // of a percent coupon: parts per million of what it applies to
	Amount  money.Amount // of a fixed coupon
	Minimum money.Amount // minimum subtotal, counting only lines that can be bought; 0 for none
	Starts  time.Time    // the coupon is valid from this time; zero for always
	Expires time.Time    // the coupon is valid before this time; zero for never expires

	Products        []int64 // the products that it applies to, sorted; nil for all
	MaxUses         *int64  // by all customers together; nil for no limit
	MaxUsesCustomer *int64  // by each customer; nil for no limit
}

// Uses is how often a coupon was used in orders that checkout has placed. The platform
// counts, the service only reads.
type Uses struct {
	All      int64
	Customer int64 // by the customer whose cart it is; 0 for a guest
}

// CouponKind says how a coupon lowers the price.
type CouponKind string

const (
	Percent CouponKind = "percent"
	Fixed   CouponKind = "fixed"
)

func (c *Coupon) applies(product int64) bool {
	if c.Products == nil {
		return true
	}
	_, listed := slices.BinarySearch(c.Products, product)
	return listed
}

// discount returns what a valid coupon takes off its lines: rounded once, never above their cost.
func (c *Coupon) discount(cost money.Amount) money.Amount {
	if c.Kind == Percent {
		return min(money.Share(cost, c.Rate), cost)
	}
	return min(c.Amount, cost)
}

// Redeem applies the discount of the cart's coupon, and splits it among the lines that the
// coupon applies to. A coupon that is not valid now, or no longer exists (nil), has an issue and
// takes nothing off.
func (p *Priced) Redeem(c *Coupon, uses Uses, store *store.Store, now time.Time) {
	p.Coupon = &AppliedCoupon{Code: p.Cart.Coupon, Issue: c.issue(p, uses, store, now)}
	if c != nil {
		p.Coupon.Code, p.Coupon.Kind, p.Coupon.Rate, p.Coupon.Amount = c.Code, c.Kind, c.Rate, c.Amount
	}
	if p.Coupon.Issue != nil {
		return
	}
	var cost money.Amount
	costs := make([]money.Amount, len(p.Lines)) // 0 for a line that it does not apply to
	for i := range p.Lines {
		if l := &p.Lines[i]; c.applies(l.ID.Product()) {
			costs[i] = l.Total
			cost += l.Total
		}
	}
	p.Discount = c.discount(cost)
	for i, part := range money.Split(p.Discount, costs) {
		p.Lines[i].Discount = part
	}
	p.addTax(store)
}

// AppliedCoupon is the coupon of a priced cart, and takes Priced.Discount off.
type AppliedCoupon struct {
	Code   string       // as the catalog spells it
	Kind   CouponKind   // "" for a coupon that no longer exists
	Rate   int64        // of a percent coupon: parts per million
	Amount money.Amount // of a fixed coupon
	Issue  *CouponIssue // why it takes nothing off now; nil when it is valid
}
