package cart

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/auth/store"
	"commerce/cart/money"
)

// For every coupon, tax rate and currency, the amounts that a shopper sees add up to the
// total and have no more decimals than the currency.
func TestRedeem_PartsSumToTheTotalInEveryCurrency(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		store := &store.Store{
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
		got := Price(c, store, map[int64]*Product{1: p}, testLimits)
		got.Redeem(coupon, store, noon)

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

func TestRedeem_AppliesTheDiscount(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		coupon   Coupon
		subtotal money.Amount
		want     money.Amount
	}{
		"half a unit rounds up":         {Coupon{Kind: Percent, Rate: 100_000}, 1665, 167},
		"100 percent":                   {Coupon{Kind: Percent, Rate: 1_000_000}, 999, 999},
		"fixed":                         {Coupon{Kind: Fixed, Amount: 500}, 2000, 500},
		"fixed, more than the subtotal": {Coupon{Kind: Fixed, Amount: 500}, 333, 333},
		"exactly the minimum":           {Coupon{Kind: Fixed, Amount: 500, Minimum: 2000}, 2000, 500},
		"just below the minimum":        {Coupon{Kind: Fixed, Amount: 500, Minimum: 2000}, 1999, 0},
		"the moment before it expires":  {Coupon{Kind: Fixed, Amount: 500, Expires: now.Add(1)}, 2000, 500},
		"the moment it expires":         {Coupon{Kind: Fixed, Amount: 500, Expires: now}, 2000, 0},
		"subtotal 0":                    {Coupon{Kind: Percent, Rate: 100_000}, 0, 0},
	} {
		store := &store.Store{Currency: "SAR", PricesIncludeTax: true}
		got := Price(Cart{Coupon: "C", Lines: []Line{{ID: "1", Quantity: 1}}}, store, map[int64]*Product{1: sold(1, tc.subtotal)}, testLimits)
		got.Redeem(&tc.coupon, store, now)
		if got.Discount != tc.want || got.Total != tc.subtotal-tc.want {
			t.Errorf("%s: %d off %d", name, got.Discount, tc.subtotal)
		}
	}
}

func TestRedeem_CountsOnlyBuyableLinesTowardTheMinimum(t *testing.T) {
	t.Parallel()
	inactive, soldOut := sold(2, 5000), sold(3, 5000)
	inactive.Active, soldOut.Stock = false, new(int64)
	products := map[int64]*Product{1: sold(1, 1000), 2: inactive, 3: soldOut}
	store := &store.Store{Currency: "SAR", PricesIncludeTax: true}
	five := &Coupon{Code: "FIVE", Kind: Fixed, Amount: 500, Minimum: 2000}
	for name, tc := range map[string]struct {
		lines []Line
		want  money.Amount
	}{
		"an inactive product":             {[]Line{{ID: "1", Quantity: 1}, {ID: "2", Quantity: 1}}, 0},
		"one that is sold out":            {[]Line{{ID: "1", Quantity: 1}, {ID: "3", Quantity: 1}}, 0},
		"one that is gone":                {[]Line{{ID: "1", Quantity: 1}, {ID: "404", Quantity: 1}}, 0},
		"enough without the inactive one": {[]Line{{ID: "1", Quantity: 2}, {ID: "2", Quantity: 1}}, 500},
	} {
		got := Price(Cart{Coupon: "FIVE", Lines: tc.lines}, store, products, testLimits)
		got.Redeem(five, store, time.Now())
		if got.Discount != tc.want || (got.Coupon.Lapsed == nil) != (tc.want > 0) {
			t.Errorf("%s: %d off %d", name, got.Discount, got.Subtotal)
		}
	}
}

func TestNormalCouponCode_FoldsOnlyASCII(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"TEN": "TEN", "ten": "TEN", " tEn\u00a0\n": "TEN", "summer-25_%": "SUMMER-25_%", "": "", " ": "", "\u200b": "",
		"خصم١٠": "خصم١٠", "خصم-ten": "خصم-TEN", "\u0627\u0653": "\u0622",
		"CAF\u00c9": "CAFÉ", "CAFE\u0301": "CAFÉ", "caf\u00e9": "CAFé", "cafe\u0301": "CAFé",
		"fıve": "FıVE", "FİVE": "FİVE", "ﬁve": "ﬁVE", "ſix": "ſIX", "straße": "STRAßE", "ｆｉｖｅ": "ｆｉｖｅ", // none of them FIVE, SIX or STRASSE
	} {
		got := NormalCouponCode(given)
		if got != want || NormalCouponCode(got) != got {
			t.Errorf("%+q is %+q, want %+q", given, got, want)
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
