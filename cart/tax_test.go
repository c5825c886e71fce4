package cart

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

func taxed(id int64, price money.Amount, rate int64) *Product {
	p := sold(id, price)
	p.TaxRate = &rate
	return p
}

func TestPrice_TaxesEachRateOnce(t *testing.T) {
	t.Parallel()
	lines := func(ids ...LineID) Cart {
		c := Cart{Coupon: "C"}
		for _, id := range ids {
			c.Lines = append(c.Lines, Line{ID: id, Quantity: 1})
		}
		return c
	}
	products := map[int64]*Product{
		1: sold(1, 1003), 2: taxed(2, 1003, 0), 3: taxed(3, 1003, 50_000), 4: sold(4, 1003), 5: taxed(5, 1003, 150_000),
	}
	all := &Coupon{Code: "C", Kind: Percent, Rate: 100_000}
	for name, tc := range map[string]struct {
		cart     Cart
		included bool
		coupon   *Coupon
		want     []TaxLine
		total    money.Amount
	}{
		"an empty cart":                    {lines(), true, nil, nil, 0},
		"a product that is gone":           {lines("404"), true, nil, nil, 0},
		"the store's rate":                 {lines("1", "4"), true, nil, []TaxLine{{150_000, 1744, 262}}, 2006},
		"the store's rate on top":          {lines("1", "4"), false, nil, []TaxLine{{150_000, 2006, 301}}, 2307},
		"a product's own, equal rate":      {lines("1", "5"), false, nil, []TaxLine{{150_000, 2006, 301}}, 2307},
		"untaxed alone":                    {lines("2"), false, nil, []TaxLine{{0, 1003, 0}}, 1003},
		"the highest first":                {lines("2", "3", "1"), false, nil, []TaxLine{{150_000, 1003, 150}, {50_000, 1003, 50}, {0, 1003, 0}}, 3209},
		"included":                         {lines("2", "3", "1"), true, nil, []TaxLine{{150_000, 872, 131}, {50_000, 955, 48}, {0, 1003, 0}}, 3009},
		"after the discount":               {lines("2", "1"), false, all, []TaxLine{{150_000, 903, 135}, {0, 902, 0}}, 1940}, // 201 off: 101 and 100
		"after the discount of one":        {lines("2", "1"), false, &Coupon{Kind: Fixed, Amount: 1003, Products: []int64{1}}, []TaxLine{{150_000, 0, 0}, {0, 1003, 0}}, 1003},
		"an untaxed one and one that left": {lines("404", "2"), true, nil, []TaxLine{{0, 1003, 0}}, 1003},
	} {
		store := &store.Store{Currency: "SAR", TaxRate: 150_000, PricesIncludeTax: tc.included}
		got := Price(tc.cart, store, products, testLimits)
		if tc.coupon != nil {
			got.Redeem(tc.coupon, Uses{}, store, time.Now())
		}
		if diff := cmp.Diff(tc.want, got.TaxLines); diff != "" || got.Total != tc.total {
			t.Errorf("%s: total %d, want %d, tax (-want +got):\n%s", name, got.Total, tc.total, diff)
		}
	}
}

// The tax of each rate is what its lines give. The sum of all taxes is the tax, and the sum
// of all taxes and bases is the total.
func TestPrice_TaxLinesSumToTheTaxAndTheTotal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		store := drawnStore.Draw(t, "store")
		got := drawnPriced(t, store)
		if rapid.Bool().Draw(t, "with a coupon") {
			got.Redeem(drawnCoupon.Draw(t, "coupon"), Uses{}, store, time.Now())
		}
		paid := map[int64]money.Amount{}
		for _, l := range got.Lines {
			if l.Product != nil {
				paid[taxRate(l.Product, store)] += l.Total - l.Discount
			}
		}
		var tax, base money.Amount
		for i, line := range got.TaxLines {
			want := TaxLine{line.Rate, paid[line.Rate], money.Share(paid[line.Rate], line.Rate)}
			if store.PricesIncludeTax {
				want.Amount = money.IncludedShare(paid[line.Rate], line.Rate)
				want.Base -= want.Amount
			}
			if line != want {
				t.Fatalf("%+v, want %+v", line, want)
			}
			if i > 0 && got.TaxLines[i-1].Rate <= line.Rate {
				t.Fatalf("the rates are not in order: %+v", got.TaxLines)
			}
			tax, base = tax+line.Amount, base+line.Base
		}
		if len(paid) != len(got.TaxLines) || tax != got.Tax || base+tax != got.Total {
			t.Fatalf("%d rates, want %d; tax %d, want %d; bases and tax make %d, want %d",
				len(got.TaxLines), len(paid), tax, got.Tax, base+tax, got.Total)
		}
	})
}

// Reading a cart is the most frequent call, and almost all carts have one rate.
func TestPrice_TaxOfOneRateAllocatesOnce(t *testing.T) {
	p := tenRiyals()
	for range 5 {
		p.Lines = append(p.Lines, p.Lines...)
	}
	n := testing.AllocsPerRun(100, func() {
		p.TaxLines = nil
		p.addTax(riyals)
	})
	assert.That(t, n <= 1, "%v allocations for %d lines", n, len(p.Lines))
}
