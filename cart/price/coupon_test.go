package price

import (
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

// redeemOne redeems the coupon of the cart's only code.
func (p *Priced) redeemOne(c *Coupon, uses Uses, s *store.Store, now time.Time) {
	p.Redeem([]Offered{{Code: "C", Coupon: c, Uses: uses}}, nil, s, now)
}

var inOrder = []CouponReason{CouponNotStarted, CouponExpired, CouponUsedUp, CouponNotApplicable, CouponMinimum}

// lost returns a coupon that does not apply to tenRiyals for any reason but those listed.
func lost(now time.Time, without ...CouponReason) (*Coupon, Uses) {
	c := &Coupon{
		Code: "C", Kind: Fixed, Amount: 100, Minimum: 2000, Starts: now.Add(time.Hour), Expires: now,
		Products: []int64{2}, MaxUses: new(int64(3)), MaxUsesCustomer: new(int64(1)),
	}
	uses := Uses{All: 3, Customer: 1}
	for _, reason := range without {
		switch reason {
		case CouponNotStarted:
			c.Starts = now
		case CouponExpired:
			c.Expires = now.Add(1)
		case CouponUsedUp:
			uses = Uses{All: 2}
		case CouponMinimum:
			c.Minimum = 1000
		case CouponNotApplicable:
			c.Products = []int64{1, 2}
		}
	}
	return c, uses
}

var riyals = &store.Store{Currency: "SAR", PricesIncludeTax: true}

func tenRiyals() Priced {
	c := cart.Cart{Coupons: []string{"C"}, Lines: []cart.Line{{ID: "1", Quantity: 1}}}
	return Of(c, riyals, map[int64]*cart.Product{1: carttest.Sold(1, 1000)}, carttest.Limits)
}

func TestRedeem_NamesTheFirstReasonThatHolds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i, want := range inOrder {
		coupon, uses := lost(now, inOrder[:i]...)
		p := tenRiyals()
		p.redeemOne(coupon, uses, riyals, now)
		assert.That(t, p.Coupons[0].Issue != nil && p.Coupons[0].Issue.Reason == want && p.Discount == 0 && p.Lines[0].Discount == 0,
			"without %v: %+v, discount %d, want %s", inOrder[:i], p.Coupons[0].Issue, p.Discount, want)
		coupon, uses = lost(now, slices.Delete(slices.Clone(inOrder), i, i+1)...)
		p = tenRiyals()
		p.redeemOne(coupon, uses, riyals, now)
		assert.That(t, p.Coupons[0].Issue != nil && p.Coupons[0].Issue.Reason == want, "with %s alone: %+v", want, p.Coupons[0].Issue)
	}
	coupon, uses := lost(now, inOrder...)
	p := tenRiyals()
	p.redeemOne(coupon, uses, riyals, now)
	assert.That(t, p.Coupons[0].Issue == nil && p.Discount == 100, "without faults: %+v, discount %d", p.Coupons[0].Issue, p.Discount)
	p = tenRiyals()
	p.redeemOne(nil, Uses{}, riyals, now)
	assert.That(t, p.Coupons[0].Issue.Reason == CouponGone, "a coupon that is gone: %+v", p.Coupons[0].Issue)
}

func TestRefuseCoupon_DoesNotRevealACodeBeforeItStarts(t *testing.T) {
	t.Parallel()
	now, p := time.Now(), tenRiyals()
	early, uses := lost(now)
	refusal := RefuseCoupon(early, &p, uses, riyals, now, "coupon")
	assert.Equal(t, refusal, RefuseCoupon(nil, &p, Uses{}, riyals, now, "coupon"),
		"unknown and not started differ (-unknown +not started)")
	assert.That(t, !early.Known(now) && !(&Coupon{Automatic: true}).Known(now) && (&Coupon{}).Known(now), "what a shopper may learn")
	assert.That(t, refusal.Data == CouponGone && refusal.Code == problem.CouponInvalid,
		"refused with %s, %v", refusal.Code, refusal.Data)
}

func TestRefuseCoupon_HasACodeAndAReason(t *testing.T) {
	t.Parallel()
	now, p := time.Now(), tenRiyals()
	for reason, code := range map[CouponReason]problem.Code{
		CouponExpired: problem.CouponInvalid, CouponUsedUp: problem.CouponInvalid,
		CouponMinimum: problem.CouponMinimum, CouponNotApplicable: problem.CouponInvalid,
	} {
		others := slices.DeleteFunc(slices.Clone(inOrder), func(r CouponReason) bool { return r == reason })
		coupon, uses := lost(now, others...)
		got := RefuseCoupon(coupon, &p, uses, riyals, now, "code")
		assert.That(t, got != nil && got.Code == code && got.Data == reason && got.Faults[0].Member == "code" && got.Message(locale.Ar) != "",
			"%s: %+v", reason, got)
	}
}

func TestCouponMinimum_HasTheSumInItsLanguage(t *testing.T) {
	t.Parallel()
	sentence := textCouponMinimum.With("FIVE", money.Price{Amount: 2000, Currency: "SAR"})
	for l, want := range map[locale.Locale]string{locale.En: "SAR\u00a020.00", locale.Ar: "20.00\u00a0ر.س."} {
		got := sentence.In(l)
		assert.That(t, strings.Contains(got, want), "%q does not have %q", got, want)
	}
}

func TestNamedCoupon_IsTheOneTypedExactlyOrElseTheLowest(t *testing.T) {
	t.Parallel()
	var alike []*Coupon
	for _, code := range []string{"SAVE١٠", "SAVE10", "S\u200bAVE10", "SAVE１０"} {
		alike = append(alike, &Coupon{Code: code})
	}
	for range alike { // in any order
		alike = append(alike[1:], alike[0])
		for _, c := range alike {
			assert.That(t, NamedCoupon(alike, c.Code) == c, "%+q is another", c.Code)
		}
		for typed, want := range map[string]string{"save10": "SAVE10", "save١٠": "SAVE10", "SAVE۱۰": "SAVE10", "SAVE\u200b10": "SAVE10"} {
			assert.Equal(t, NamedCoupon(alike, typed).Code, want, "%+q", typed)
		}
	}
	without := slices.DeleteFunc(alike, func(c *Coupon) bool { return c.Code == "SAVE10" })
	assert.Equal(t, NamedCoupon(without, "SAVE10").Code, "SAVE١٠", "the lowest of the others")
	assert.That(t, NamedCoupon(nil, "SAVE10") == nil, "none")
}
