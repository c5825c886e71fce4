package cart

import (
	"context"
	"fmt"
	"strings"
	"time"

	"commerce/auth/store"
	"commerce/cart/money"
)

// Coupon lowers a cart's price. A *Coupon is shared between requests: nobody
// changes one.
type Coupon struct {
	Code    string // as NormalCouponCode gives it
	Kind    CouponKind
	Rate    int64        // of a percent coupon: parts per million of the subtotal
	Amount  money.Amount // of a fixed coupon
	Minimum money.Amount // subtotal of lines that can be bought from which it counts; 0 for none
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

// maxCouponCode bounds a code in its normal form, in characters. The schema has the
// same bound.
const maxCouponCode = 64

// NormalCouponCode is the form in which codes are kept and compared: normal text in
// which a to z are A to Z. The case of other letters counts, since the rules differ
// from language to language: ı is not I, and ß is not SS.
func NormalCouponCode(code string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, normalText(code))
}

// expired reports whether the coupon no longer counts.
func (c *Coupon) expired(now time.Time) bool {
	return !c.Expires.IsZero() && !now.Before(c.Expires)
}

// discount is what the coupon takes off a subtotal while its conditions hold:
// rounded once, never more than the subtotal.
func (c *Coupon) discount(subtotal money.Amount) money.Amount {
	if c.Kind == Percent {
		return min(money.Share(subtotal, c.Rate), subtotal)
	}
	return min(c.Amount, subtotal)
}

// judgeCoupon says why a coupon cannot be given to a cart; nil when it can. buyable
// is the subtotal of the lines that can be bought. A nil coupon is one that the store
// does not have.
func judgeCoupon(c *Coupon, store *store.Store, buyable money.Amount, now time.Time, member string) *Error {
	switch {
	case c == nil:
		return refuse(CodeCouponInvalid, member, sayCouponUnknown)
	case c.expired(now):
		return refuse(CodeCouponInvalid, member, sayCouponExpired, c.Code)
	case buyable < c.Minimum:
		return refuse(CodeCouponMinimum, member, sayCouponMinimum, c.Code, plainPrice(c.Minimum, store.Currency))
	}
	return nil
}

// redeem takes the cart's coupon off its price. A coupon that counts nothing now
// stays, with a warning; so does one that no longer exists (nil).
func (p *Priced) redeem(c *Coupon, store *store.Store, now time.Time) {
	p.Coupon = &AppliedCoupon{Code: p.Cart.Coupon}
	if c != nil {
		p.Coupon.Kind, p.Coupon.Rate, p.Coupon.Amount = c.Kind, c.Rate, c.Amount
	}
	if err := judgeCoupon(c, store, p.buyable, now, ""); err != nil {
		p.Coupon.lapsed = &err.faults[0]
		return
	}
	p.Discount = c.discount(p.Subtotal)
	p.Tax, p.Total = taxed(p.Subtotal-p.Discount, store)
}

// AppliedCoupon is the coupon of a cart as it counts now; what it takes off is the
// cart's discount.
type AppliedCoupon struct {
	Code   string
	Kind   CouponKind   // "" for a coupon that no longer exists
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
