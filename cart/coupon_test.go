package cart

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/auth"
	"commerce/cart/money"
)

// Whatever the coupon, the tax and the currency: the parts that a shopper sees, in
// the currency's own decimals, sum to the total.
func TestRedeem_PartsSumToTheTotalInEveryCurrency(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		store := &auth.Store{
			Currency:         rapid.SampledFrom([]string{"SAR", "USD", "JPY", "KWD"}).Draw(t, "currency"),
			TaxRate:          rapid.Int64Range(0, 300_000).Draw(t, "rate"),
			PricesIncludeTax: rapid.Bool().Draw(t, "included"),
		}
		coupon := &Coupon{
			Code: "C", Kind: rapid.SampledFrom([]CouponKind{Percent, Fixed}).Draw(t, "kind"),
			Rate:    rapid.Int64Range(0, 1_000_000).Draw(t, "percent"),
			Amount:  money.Amount(rapid.Int64Range(0, 1<<40).Draw(t, "amount")),
			Minimum: money.Amount(rapid.Int64Range(0, 1<<30).Draw(t, "minimum")),
		}
		p := sold(1, money.Amount(rapid.Int64Range(0, 1<<40).Draw(t, "price")))
		c := Cart{Coupon: "C", Lines: []Line{{ID: "1", Quantity: rapid.Int64Range(1, 999).Draw(t, "quantity")}}}
		got := price(c, store, map[int64]*Product{1: p}, testLimits)
		got.redeem(coupon, store, noon)

		if got.Discount < 0 || got.Discount > got.Subtotal {
			t.Fatalf("discount %d of subtotal %d", got.Discount, got.Subtotal)
		}
		want := got.Subtotal - got.Discount
		if !store.PricesIncludeTax {
			want += got.Tax
		}
		if got.Total != want || got.Tax < 0 || got.Tax > got.Total {
			t.Fatalf("subtotal %d, discount %d and tax %d make %d, want %d", got.Subtotal, got.Discount, got.Tax, got.Total, want)
		}
		digits, _ := money.Digits(store.Currency)
		_, decimals, _ := strings.Cut(string(money.AppendMajor(nil, got.Total, digits)), ".")
		if len(decimals) > digits {
			t.Fatalf("%d shows %d decimals in %s", got.Total, len(decimals), store.Currency)
		}
	})
}

func TestCouponDiscount(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		coupon   Coupon
		subtotal money.Amount
		want     money.Amount
	}{
		"half a unit goes away from zero": {Coupon{Kind: Percent, Rate: 100_000}, 1665, 167},
		"all of it":                       {Coupon{Kind: Percent, Rate: 1_000_000}, 999, 999},
		"fixed":                           {Coupon{Kind: Fixed, Amount: 500}, 2000, 500},
		"fixed, more than there is":       {Coupon{Kind: Fixed, Amount: 500}, 333, 333},
		"just from the minimum":           {Coupon{Kind: Fixed, Amount: 500, Minimum: 2000}, 2000, 500},
		"just below the minimum":          {Coupon{Kind: Fixed, Amount: 500, Minimum: 2000}, 1999, 0},
		"the moment before it expires":    {Coupon{Kind: Fixed, Amount: 500, Expires: now.Add(1)}, 2000, 500},
		"the moment it expires":           {Coupon{Kind: Fixed, Amount: 500, Expires: now}, 2000, 0},
		"nothing in the cart":             {Coupon{Kind: Percent, Rate: 100_000}, 0, 0},
	} {
		if got := tc.coupon.discount(tc.subtotal, now); got != tc.want {
			t.Errorf("%s: %d off %d, want %d", name, got, tc.subtotal, tc.want)
		}
	}
}

func TestPlainPrice_HasAllDecimals(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]money.Amount{"SAR 20.00": 2000, "SAR 0.05": 5, "JPY 20": 20, "KWD 1.250": 1250, "KWD 0.001": 1} {
		if got := plainPrice(of, want[:3]); got != want {
			t.Errorf("%d is %q, want %q", of, got, want)
		}
	}
}
