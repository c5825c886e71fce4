package cart

import (
	"fmt"
	"strings"
	"time"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart/money"
)

// Coupon lowers a cart's price. A *Coupon is shared between requests: do not change it.
type Coupon struct {
	Code    string // in the form that NormalCouponCode returns
	Kind    CouponKind
	Rate    int64        // of a percent coupon: parts per million of the subtotal
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

// The kinds.
const (
	Percent CouponKind = "percent"
	Fixed   CouponKind = "fixed"
)

// MaxCouponCode is the maximum length of a code in its normal form, in characters. The
// schema in deploy/migrations has the same limit.
const MaxCouponCode = 64

// NormalCouponCode returns the form in which codes are stored and compared: NormalText
// with a to z in upper case. Other letters keep their case, since the rules differ
// between languages: ı is not I, and ß is not SS.
func NormalCouponCode(code string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, NormalText(code))
}

// expired reports whether the coupon has expired.
func (c *Coupon) expired(now time.Time) bool {
	return !c.Expires.IsZero() && !now.Before(c.Expires)
}

// discount returns what a valid coupon takes off a subtotal: rounded once, and never more
// than the subtotal.
func (c *Coupon) discount(subtotal money.Amount) money.Amount {
	if c.Kind == Percent {
		return min(money.Share(subtotal, c.Rate), subtotal)
	}
	return min(c.Amount, subtotal)
}

// JudgeCoupon returns why a coupon cannot be redeemed; nil when it can. A nil coupon is
// one that the store does not have. buyable is the subtotal of the lines that can be
// bought. member is the request's member that an error names.
func JudgeCoupon(c *Coupon, store *store.Store, buyable money.Amount, now time.Time, member string) *problem.Error {
	switch {
	case c == nil:
		return problem.New(problem.CouponInvalid, member, textCouponUnknown)
	case c.expired(now):
		return problem.New(problem.CouponInvalid, member, textCouponExpired, c.Code)
	case buyable < c.Minimum:
		return problem.New(problem.CouponMinimum, member, textCouponMinimum, c.Code, plainPrice(c.Minimum, store.Currency))
	}
	return nil
}

// Redeem applies the discount of the cart's coupon. A coupon that is not valid now, or no
// longer exists (nil), stays in the cart with a warning and takes nothing off.
func (p *Priced) Redeem(c *Coupon, store *store.Store, now time.Time) {
	p.Coupon = &AppliedCoupon{Code: p.Cart.Coupon}
	if c != nil {
		p.Coupon.Kind, p.Coupon.Rate, p.Coupon.Amount = c.Kind, c.Rate, c.Amount
	}
	if err := JudgeCoupon(c, store, p.Buyable, now, ""); err != nil {
		p.Coupon.Lapsed = &err.Faults[0].Sentence
		return
	}
	p.Discount = c.discount(p.Subtotal)
	p.Tax, p.Total = taxed(p.Subtotal-p.Discount, store)
}

// AppliedCoupon is the coupon of a priced cart. The amount that it takes off is
// Priced.Discount.
type AppliedCoupon struct {
	Code   string
	Kind   CouponKind   // "" for a coupon that no longer exists
	Rate   int64        // of a percent coupon: parts per million
	Amount money.Amount // of a fixed coupon

	Lapsed *locale.Sentence // why it takes nothing off now; nil when it is valid
}

// plainPrice formats an amount for a sentence: the currency's code, and major units with
// all decimals.
func plainPrice(a money.Amount, currency string) string {
	digits, _ := money.Digits(currency)
	text := fmt.Sprintf("%0*d", digits+1, int64(a))
	if digits == 0 {
		return currency + " " + text
	}
	return currency + " " + text[:len(text)-digits] + "." + text[len(text)-digits:]
}

var (
	textCouponUnknown = locale.Text{
		locale.En: "This coupon does not exist.",
		locale.Ar: "هذه القسيمة غير موجودة.",
	}
	textCouponExpired = locale.Text{
		locale.En: "Coupon %s has expired.",
		locale.Ar: "انتهت صلاحية القسيمة %s.",
	}
	textCouponMinimum = locale.Text{
		locale.En: "Coupon %s requires a subtotal of at least %s, not counting items that cannot be bought.",
		locale.Ar: "تتطلب القسيمة %s مجموعًا فرعيًا لا يقل عن %s، ولا تُحتسب فيه العناصر التي لا يمكن شراؤها.",
	}
)
