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

// MaxCouponCode bounds a code in its normal form, in characters. The schema has the
// same bound.
const MaxCouponCode = 64

// NormalCouponCode is the form in which codes are kept and compared: normal text in
// which a to z are A to Z. The case of other letters counts, since the rules differ
// from language to language: ı is not I, and ß is not SS.
func NormalCouponCode(code string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, NormalText(code))
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

// JudgeCoupon says why a coupon cannot be given to a cart; nil when it can. buyable
// is the subtotal of the lines that can be bought. A nil coupon is one that the store
// does not have.
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

// Redeem takes the cart's coupon off its price. A coupon that counts nothing now
// stays, with a warning; so does one that no longer exists (nil).
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

// AppliedCoupon is the coupon of a cart as it counts now; what it takes off is the
// cart's discount.
type AppliedCoupon struct {
	Code   string
	Kind   CouponKind   // "" for a coupon that no longer exists
	Rate   int64        // of a percent coupon
	Amount money.Amount // of a fixed one

	Lapsed *locale.Sentence // why it counts nothing now; nil when it counts
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
		locale.En: "Coupon %s requires a subtotal of at least %s, without items that cannot be bought.",
		locale.Ar: "تتطلب القسيمة %s مجموعًا لا يقل عن %s دون العناصر التي لا يمكن شراؤها.",
	}
)
