package price

import (
	"slices"
	"time"

	"commerce/auth/locale"
	"commerce/cart/money"
)

// Coupon lowers a cart's price. A *Coupon is shared between requests: do not change it.
type Coupon struct {
	Code    string // as the catalog spells it: see cart.CouponKey
	Kind    CouponKind
	Rate    int64        // of a percent coupon: parts per million of what it applies to
	Amount  money.Amount // of a fixed coupon
	Minimum money.Amount // minimum subtotal, counting only lines that can be bought; 0 for none
	Starts  time.Time    // the coupon is valid from this time; zero for always
	Expires time.Time    // the coupon is valid before this time; zero for never expires

	Name        locale.Name // of the discount; zero: its code
	Automatic   bool        // it applies without a code
	Combines    bool        // with others that combine
	MinQuantity int64       // minimum number of pieces that can be bought, and that it applies to; 0 for none

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

// applies reports whether the coupon is for a line's product, which still exists.
func (c *Coupon) applies(l *Line) bool {
	if l.Product == nil || c.Products == nil {
		return l.Product != nil
	}
	_, listed := slices.BinarySearch(c.Products, l.Product.ID)
	return listed
}

// discount returns what a valid coupon takes off its lines: rounded once, never above their cost.
func (c *Coupon) discount(cost money.Amount) money.Amount {
	if c.Kind == Percent {
		return min(money.Share(cost, c.Rate), cost)
	}
	return min(c.Amount, cost)
}

// NamedCoupon returns the coupon that a code names, of those with its cart.CouponKey: the one with exactly this code, or
// else the one with the lowest code, byte by byte; nil if there is none.
func NamedCoupon(alike []*Coupon, code string) (named *Coupon) {
	for _, c := range alike {
		if c.Code == code {
			return c
		}
		if named == nil || c.Code < named.Code {
			named = c
		}
	}
	return named
}
