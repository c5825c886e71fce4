package cart

import (
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

// drawnStore is a store with any tax, in a currency with 0, 2, 3 or 4 decimals.
var drawnStore = rapid.Custom(func(t *rapid.T) *store.Store {
	return &store.Store{
		Currency:         rapid.SampledFrom([]string{"JPY", "SAR", "USD", "KWD", "CLF"}).Draw(t, "currency"),
		TaxRate:          rapid.Int64Range(0, MaxTaxRate).Draw(t, "rate"),
		PricesIncludeTax: rapid.Bool().Draw(t, "included"),
		Country:          rapid.SampledFrom([]string{"", "SA", "DE"}).Draw(t, "country"),
		TaxRates:         drawnRates(t),
	}
})

func drawnRates(t *rapid.T) store.TaxRates {
	rates := store.TaxRates{}
	for _, country := range []string{"SA", "DE", "FR"} {
		rates[country] = rapid.MapOf(rapid.SampledFrom(taxClasses), rapid.Int64Range(0, MaxTaxRate)).Draw(t, "rates of "+country)
	}
	return rates
}

var taxClasses = []string{store.StandardTax, "e-book", "course"}

// drawnPriced is a priced cart with products of any tax rate, some gone, inactive or sold out.
func drawnPriced(t *rapid.T, store *store.Store) Priced {
	highest := rapid.SampledFrom([]int64{9, 9999, int64(MaxPrice)}).Draw(t, "highest price")
	products := map[int64]*Product{}
	c := Cart{Coupon: "C", Buyer: Buyer{Country: rapid.SampledFrom([]string{"", "SA", "DE", "FR", "JP"}).Draw(t, "buyer")}}
	for id := range rapid.Int64Range(0, 9).Draw(t, "lines") {
		c.Lines = append(c.Lines, Line{ID: NewLineID(id+1, 0, nil), Quantity: rapid.Int64Range(1, 999).Draw(t, "quantity")})
		p := sold(id+1, money.Amount(rapid.Int64Range(0, highest).Draw(t, "price")))
		p.TaxClass = rapid.SampledFrom(append(taxClasses, "")).Draw(t, "class")
		if rapid.Bool().Draw(t, "own rate") {
			p.TaxRate = new(rapid.SampledFrom([]int64{0, 50_000, 150_000, MaxTaxRate}).Draw(t, "own"))
		}
		p.Active = rapid.IntRange(0, 4).Draw(t, "active") > 0
		if rapid.IntRange(0, 4).Draw(t, "exists") > 0 {
			products[p.ID] = p
		}
	}
	return Price(c, store, products, testLimits)
}

var drawnCoupon = rapid.Custom(func(t *rapid.T) *Coupon {
	c := &Coupon{
		Code: "C", Kind: rapid.SampledFrom([]CouponKind{Percent, Fixed}).Draw(t, "kind"),
		Rate:   rapid.Int64Range(1, 1_000_000).Draw(t, "percent"),
		Amount: money.Amount(rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, 1<<40)).Draw(t, "amount")),
	}
	if rapid.Bool().Draw(t, "restricted") {
		c.Products = []int64{2, 3, 5}
	}
	return c
})

// For every coupon, tax rate and currency, the amounts that a shopper sees add up to the
// total and have no more decimals than the currency.
func TestRedeem_PartsSumToTheTotalInEveryCurrency(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		store, coupon := drawnStore.Draw(t, "store"), drawnCoupon.Draw(t, "coupon")
		got := drawnPriced(t, store)
		coupon.Minimum = money.Amount(rapid.Int64Range(0, 1<<30).Draw(t, "minimum"))
		got.Redeem(coupon, Uses{}, store, time.Now())

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

func TestRedeem_SplitsTheDiscountAmongTheLinesThatTheCouponAppliesTo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		store, coupon := drawnStore.Draw(t, "store"), drawnCoupon.Draw(t, "coupon")
		got := drawnPriced(t, store)
		got.Redeem(coupon, Uses{}, store, time.Now())
		var parts, cost money.Amount
		var applied []*PricedLine
		for i := range got.Lines {
			l := &got.Lines[i]
			parts += l.Discount
			applies := coupon.Products == nil || slices.Contains(coupon.Products, l.ID.Product())
			if applies {
				cost += l.Total
				applied = append(applied, l)
			}
			if l.Discount < 0 || l.Discount > l.Total || l.Discount > 0 && !applies {
				t.Fatalf("line %s costs %d, %d of it is discount", l.ID, l.Total, l.Discount)
			}
		}
		want := min(coupon.Amount, cost)
		if coupon.Kind == Percent {
			want = money.Share(cost, coupon.Rate)
		}
		if got.Discount != want || parts != want {
			t.Fatalf("discount %d and parts of %d, want %d of %d", got.Discount, parts, want, cost)
		}
		for i, l := range recomputed(want, cost, applied) {
			if applied[i].Discount != l {
				t.Fatalf("line %s has %d of the discount, docs/cart.md gives it %d", applied[i].ID, applied[i].Discount, l)
			}
		}
	})
}

// recomputed splits a discount as docs/cart.md says, with exact fractions.
func recomputed(discount, cost money.Amount, lines []*PricedLine) []money.Amount {
	parts, fractions := make([]money.Amount, len(lines)), make([]*big.Rat, len(lines))
	left := discount
	for i, l := range lines {
		if l.Total == 0 {
			fractions[i] = new(big.Rat)
			continue
		}
		share := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(int64(discount)), big.NewInt(int64(l.Total))), big.NewInt(int64(cost)))
		down := new(big.Int).Quo(share.Num(), share.Denom())
		parts[i], fractions[i] = money.Amount(down.Int64()), share.Sub(share, new(big.Rat).SetInt(down))
		left -= parts[i]
	}
	for range left {
		largest := 0
		for i := range fractions {
			if fractions[i].Cmp(fractions[largest]) > 0 {
				largest = i
			}
		}
		parts[largest]++
		fractions[largest] = big.NewRat(-1, 1)
	}
	return parts
}

func TestRedeem_AppliesTheDiscount(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	inactive, soldOut := sold(2, 5000), sold(3, 5000)
	inactive.Active, soldOut.Stock = false, new(int64)
	store := &store.Store{Currency: "SAR", PricesIncludeTax: true}
	limited := func(all, customer *int64) Coupon {
		return Coupon{Kind: Fixed, Amount: 500, MaxUses: all, MaxUsesCustomer: customer}
	}
	atLeast2000 := Coupon{Kind: Fixed, Amount: 500, Minimum: 2000}
	for name, tc := range map[string]struct {
		coupon Coupon
		price  money.Amount // of product 1, of which the cart holds one
		other  LineID       // of which it holds one, too; "" for none
		uses   Uses
		want   money.Amount
		issue  CouponReason // "" for none
	}{
		"half a unit rounds up":         {Coupon{Kind: Percent, Rate: 100_000}, 1665, "", Uses{}, 167, ""},
		"100 percent":                   {Coupon{Kind: Percent, Rate: 1_000_000}, 999, "", Uses{}, 999, ""},
		"fixed":                         {Coupon{Kind: Fixed, Amount: 500}, 2000, "", Uses{}, 500, ""},
		"fixed, more than the subtotal": {Coupon{Kind: Fixed, Amount: 500}, 333, "", Uses{}, 333, ""},
		"exactly the minimum":           {atLeast2000, 2000, "", Uses{}, 500, ""},
		"just below the minimum":        {atLeast2000, 1999, "", Uses{}, 0, CouponMinimum},
		"the moment before it expires":  {Coupon{Kind: Fixed, Amount: 500, Expires: now.Add(1)}, 2000, "", Uses{}, 500, ""},
		"the moment it expires":         {Coupon{Kind: Fixed, Amount: 500, Expires: now}, 2000, "", Uses{}, 0, CouponExpired},
		"the moment before it starts":   {Coupon{Kind: Fixed, Amount: 500, Starts: now.Add(1)}, 2000, "", Uses{}, 0, CouponNotStarted},
		"the moment it starts":          {Coupon{Kind: Fixed, Amount: 500, Starts: now}, 2000, "", Uses{}, 500, ""},
		"for this product":              {Coupon{Kind: Fixed, Amount: 500, Products: []int64{1, 9}}, 2000, "", Uses{}, 500, ""},
		"for another product":           {Coupon{Kind: Fixed, Amount: 500, Products: []int64{2}}, 2000, "", Uses{}, 0, CouponNotApplicable},
		"for a product that is gone":    {Coupon{Kind: Fixed, Amount: 500, Products: []int64{404}}, 2000, "404", Uses{}, 0, CouponNotApplicable},
		"subtotal 0":                    {Coupon{Kind: Percent, Rate: 100_000}, 0, "", Uses{}, 0, ""},

		"only buyable lines count: an inactive product": {atLeast2000, 1000, "2", Uses{}, 0, CouponMinimum},
		"one that is sold out":                          {atLeast2000, 1000, "3", Uses{}, 0, CouponMinimum},
		"one that is gone":                              {atLeast2000, 1000, "404", Uses{}, 0, CouponMinimum},
		"enough without the inactive one":               {atLeast2000, 2000, "2", Uses{}, 500, ""},

		"no limits of uses":                 {limited(nil, nil), 2000, "", Uses{All: 900, Customer: 900}, 500, ""},
		"one use left":                      {limited(new(int64(3)), nil), 2000, "", Uses{All: 2}, 500, ""},
		"all used":                          {limited(new(int64(3)), nil), 2000, "", Uses{All: 3}, 0, CouponUsedUp},
		"one left for the customer":         {limited(nil, new(int64(2))), 2000, "", Uses{All: 900, Customer: 1}, 500, ""},
		"none left for the customer":        {limited(nil, new(int64(2))), 2000, "", Uses{All: 2, Customer: 2}, 0, CouponUsedUp},
		"none left for the other customers": {limited(new(int64(9)), new(int64(1))), 2000, "", Uses{All: 8}, 500, ""},
	} {
		c := Cart{Coupon: "C", Lines: []Line{{ID: "1", Quantity: 1}}}
		if tc.other != "" {
			c.Lines = append(c.Lines, Line{ID: tc.other, Quantity: 1})
		}
		got := Price(c, store, map[int64]*Product{1: sold(1, tc.price), 2: inactive, 3: soldOut}, testLimits)
		got.Redeem(&tc.coupon, tc.uses, store, now)
		var issue CouponReason
		if got.Coupon.Issue != nil {
			issue = got.Coupon.Issue.Reason
		}
		assert.That(t, got.Discount == tc.want && got.Total == got.Subtotal-tc.want && issue == tc.issue,
			"%s: %d off %d, issue %q, want %q", name, got.Discount, got.Subtotal, issue, tc.issue)
	}
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
	c := Cart{Coupon: "C", Lines: []Line{{ID: "1", Quantity: 1}}}
	return Price(c, riyals, map[int64]*Product{1: sold(1, 1000)}, testLimits)
}

func TestRedeem_NamesTheFirstReasonThatHolds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i, want := range inOrder {
		coupon, uses := lost(now, inOrder[:i]...)
		p := tenRiyals()
		p.Redeem(coupon, uses, riyals, now)
		assert.That(t, p.Coupon.Issue != nil && p.Coupon.Issue.Reason == want && p.Discount == 0 && p.Lines[0].Discount == 0,
			"without %v: %+v, discount %d, want %s", inOrder[:i], p.Coupon.Issue, p.Discount, want)
		coupon, uses = lost(now, slices.Delete(slices.Clone(inOrder), i, i+1)...)
		p = tenRiyals()
		p.Redeem(coupon, uses, riyals, now)
		assert.That(t, p.Coupon.Issue != nil && p.Coupon.Issue.Reason == want, "with %s alone: %+v", want, p.Coupon.Issue)
	}
	coupon, uses := lost(now, inOrder...)
	p := tenRiyals()
	p.Redeem(coupon, uses, riyals, now)
	assert.That(t, p.Coupon.Issue == nil && p.Discount == 100, "without faults: %+v, discount %d", p.Coupon.Issue, p.Discount)
	p = tenRiyals()
	p.Redeem(nil, Uses{}, riyals, now)
	assert.That(t, p.Coupon.Issue.Reason == CouponGone, "a coupon that is gone: %+v", p.Coupon.Issue)
}

func TestRefuseCoupon_DoesNotRevealACodeBeforeItStarts(t *testing.T) {
	t.Parallel()
	now, p := time.Now(), tenRiyals()
	early, uses := lost(now)
	refusal := RefuseCoupon(early, &p, uses, riyals, now, "coupon")
	assert.Equal(t, refusal, RefuseCoupon(nil, &p, Uses{}, riyals, now, "coupon"),
		"unknown and not started differ (-unknown +not started)")
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
