package cart

import (
	"context"
	"fmt"
	"strings"
	"time"

	"commerce/auth"
	"commerce/cart/money"
)

// Coupon lowers a cart's price. A *Coupon is shared between requests: nobody
// changes one.
type Coupon struct {
	Code    string // upper case, as NormalCouponCode gives it
	Kind    CouponKind
	Rate    int64        // of a percent coupon: parts per million of the subtotal
	Amount  money.Amount // of a fixed coupon
	Minimum money.Amount // subtotal from which it counts; 0 for none
	Expires time.Time    // the first moment at which it no longer counts; zero for never
}

// CouponKind says how a coupon lowers the price.
type CouponKind string

// The kinds.
const (
	Percent CouponKind = "percent"
	Fixed   CouponKind = "fixed"
)

// Coupons answers which coupons a store takes.
type Coupons interface {
	// Coupon returns the store's coupon of a code, nil when there is none such. An
	// error means that the coupons are out of reach.
	Coupon(ctx context.Context, store int64, code string) (*Coupon, error)
}

// maxCouponCode bounds a code, which becomes part of a cart.
const maxCouponCode = 64

// NormalCouponCode is the form in which codes are kept and compared: any case is
// the same code.
func NormalCouponCode(code string) string { return strings.ToUpper(strings.TrimSpace(code)) }

// expired reports whether the coupon no longer counts.
func (c *Coupon) expired(now time.Time) bool {
	return !c.Expires.IsZero() && !now.Before(c.Expires)
}

// discount is what the coupon takes off a subtotal: rounded once, never more than
// the subtotal, 0 while its conditions do not hold.
func (c *Coupon) discount(subtotal money.Amount, now time.Time) money.Amount {
	if c.expired(now) || subtotal < c.Minimum {
		return 0
	}
	if c.Kind == Percent {
		return min(money.Share(subtotal, c.Rate), subtotal)
	}
	return min(c.Amount, subtotal)
}

// judgeCoupon says why a coupon cannot be given to a cart of this subtotal; nil
// when it can. A nil coupon is one that the store does not have.
func judgeCoupon(c *Coupon, store *auth.Store, subtotal money.Amount, now time.Time, member string) *Error {
	switch {
	case c == nil:
		return refuse(CodeCouponInvalid, member, sayCouponUnknown)
	case c.expired(now):
		return refuse(CodeCouponInvalid, member, sayCouponExpired, c.Code)
	case subtotal < c.Minimum:
		return refuse(CodeCouponMinimum, member, sayCouponMinimum, c.Code, plainPrice(c.Minimum, store.Currency))
	}
	return nil
}

// redeem takes the cart's coupon off its price. The code may name no coupon any
// more (nil): it stays, worth nothing, with a warning.
func (p *Priced) redeem(c *Coupon, store *auth.Store, now time.Time) {
	p.Coupon = &AppliedCoupon{Code: p.Cart.Coupon, Kind: Fixed}
	if err := judgeCoupon(c, store, p.Subtotal, now, ""); err != nil {
		p.Coupon.lapsed = &err.faults[0]
	}
	if c == nil {
		return
	}
	p.Coupon.Kind, p.Coupon.Rate, p.Coupon.Amount = c.Kind, c.Rate, c.Amount
	p.Discount = c.discount(p.Subtotal, now)
	p.Tax, p.Total = taxed(p.Subtotal-p.Discount, store)
}

// AppliedCoupon is the coupon of a cart as it counts now; what it takes off is the
// cart's discount.
type AppliedCoupon struct {
	Code   string
	Kind   CouponKind
	Rate   int64        // of a percent coupon
	Amount money.Amount // of a fixed one

	lapsed *fault // why it counts nothing now; nil when it counts
}

// plainPrice is an amount for a sentence: the currency's code, and major units with
// all their decimals.
func plainPrice(a money.Amount, currency string) string {
	digits, _ := money.Digits(currency)
	text := fmt.Sprintf("%0*d", digits+1, int64(a))
	if digits == 0 {
		return currency + " " + text
	}
	return currency + " " + text[:len(text)-digits] + "." + text[len(text)-digits:]
}
