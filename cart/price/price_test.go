package price

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

func sells(edit func(*cart.Product)) *cart.Product {
	p := carttest.Sold(1, 100)
	edit(p)
	return p
}

func stocked(n int64) *cart.Product { return sells(func(p *cart.Product) { p.Stock = &n }) }

func TestPrice_Totals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		store      store.Store
		unit       money.Amount
		quantity   int64
		tax, total money.Amount
	}{
		"SAR 15 % included":     {store.Store{Currency: "SAR", TaxRate: 150_000, PricesIncludeTax: true}, 4950, 2, 1291, 9900},
		"SAR 15 % on top":       {store.Store{Currency: "SAR", TaxRate: 150_000}, 4950, 1, 743, 5693}, // 742.5 halalas
		"USD no tax":            {store.Store{Currency: "USD"}, 1200, 3, 0, 3600},
		"USD 8.875 % on top":    {store.Store{Currency: "USD", TaxRate: 88_750}, 1999, 1, 177, 2176},
		"JPY 10 % included":     {store.Store{Currency: "JPY", TaxRate: 100_000, PricesIncludeTax: true}, 980, 1, 89, 980},
		"JPY 10 % on top":       {store.Store{Currency: "JPY", TaxRate: 100_000}, 985, 1, 99, 1084}, // 98.5 yen
		"KWD 5 % included":      {store.Store{Currency: "KWD", TaxRate: 50_000, PricesIncludeTax: true}, 4950, 1, 236, 4950},
		"rounded once, not per": {store.Store{Currency: "SAR", TaxRate: 150_000}, 3, 10, 5, 35}, // 10 times 0.45, not 10 times 0
	} {
		c := cart.Cart{Lines: []cart.Line{{ID: "1", Quantity: tc.quantity}}}
		got := Of(c, &tc.store, map[int64]*cart.Product{1: carttest.Sold(1, tc.unit)}, carttest.Limits)
		if want := tc.unit * money.Amount(tc.quantity); got.Subtotal != want || got.Lines[0].Total != want {
			t.Errorf("%s: subtotal %d, line %d, want %d", name, got.Subtotal, got.Lines[0].Total, want)
		}
		assert.That(t, got.Tax == tc.tax && got.Total == tc.total,
			"%s: tax %d, total %d, want %d and %d", name, got.Tax, got.Total, tc.tax, tc.total)
	}
}

func TestPrice_GivesStockToLinesInCartOrder(t *testing.T) {
	t.Parallel()
	p := carttest.Account()
	p.Fields, p.Stock = nil, new(int64(4))
	c := cart.Cart{Lines: []cart.Line{
		{ID: "5.p52", Quantity: 3},
		{ID: "5.p51", Quantity: 2},
		{ID: "1", Quantity: 900},
		{ID: "5.p51.fAAAAAAAAAAAAAAAA", Quantity: 1},
	}}
	got := Of(c, &store.Store{}, map[int64]*cart.Product{5: p, 1: carttest.Sold(1, 1)}, carttest.Limits)
	left := []any{nil, int64(1), nil, int64(0)}
	sentences := []string{
		1: "You can buy only 1 of “Account” in addition to the 3 in your cart.",
		3: "Only 4 of “Account” are available, and your cart already holds 5.",
	}
	for i, l := range got.Lines {
		var available any
		if l.Issue != nil {
			available = *l.Issue.Available
			assert.Equal(t, l.Issue.Code, problem.InsufficientStock, "line %s", l.ID)
			assert.Equal(t, l.Issue.Sentence.In(locale.En), sentences[i], "line %s", l.ID)
		}
		assert.That(t, available == left[i], "line %s: %v left, want %v", l.ID, available, left[i])
	}
}

func TestPrice_GoneProductsAndPlansCostNothing(t *testing.T) {
	t.Parallel()
	p := carttest.Account()
	c := cart.Cart{Lines: []cart.Line{
		{ID: "404", Quantity: 2, AddedPrice: 9900},
		{ID: "5.p59", Quantity: 2, Fields: []cart.FieldValue{{Name: "email", Value: "x"}}},
	}}
	got := Of(c, &store.Store{}, map[int64]*cart.Product{5: p}, carttest.Limits)
	if l := got.Lines[0]; l.Product != nil || l.Unit != (cart.Unit{}) || l.Total != 0 || l.Issue.Code != problem.ProductNotFound {
		t.Errorf("a product that is gone: %+v", l)
	}
	if l := got.Lines[1]; l.Plan != nil || l.Unit != (cart.Unit{Base: 1500}) || l.Issue.Code != problem.PlanUnavailable {
		t.Errorf("a plan that is gone: %+v", l)
	}
	assert.Equal(t, got.Subtotal, 3000, "subtotal")
}

func taxed(id int64, price money.Amount, rate int64) *cart.Product {
	p := carttest.Sold(id, price)
	p.TaxRate = &rate
	return p
}

func TestPrice_TaxesEachRateOnce(t *testing.T) {
	t.Parallel()
	lines := func(ids ...cart.LineID) cart.Cart {
		c := cart.Cart{Coupons: []string{"C"}}
		for _, id := range ids {
			c.Lines = append(c.Lines, cart.Line{ID: id, Quantity: 1})
		}
		return c
	}
	products := map[int64]*cart.Product{
		1: carttest.Sold(1, 1003), 2: taxed(2, 1003, 0), 3: taxed(3, 1003, 50_000), 4: carttest.Sold(4, 1003), 5: taxed(5, 1003, 150_000),
	}
	all := &Coupon{Code: "C", Kind: Percent, Rate: 100_000}
	for name, tc := range map[string]struct {
		cart     cart.Cart
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
		got := Of(tc.cart, store, products, carttest.Limits)
		if tc.coupon != nil {
			got.redeemOne(tc.coupon, Uses{}, store, time.Now())
		}
		if diff := cmp.Diff(tc.want, got.TaxLines); diff != "" || got.Total != tc.total {
			t.Errorf("%s: total %d, want %d, tax (-want +got):\n%s", name, got.Total, tc.total, diff)
		}
	}
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

var highestLimits = cart.Limits{Lines: cart.MaxLines, Quantity: cart.MaxQuantity, LineText: cart.MaxLineText, CartText: cart.MaxCartText}

// costliest returns a product with the highest prices and the maximum number of fields, and
// a line for it that chooses a surcharge in every field.
func costliest(id int64) (*cart.Product, cart.Line) {
	p := carttest.Sold(id, cart.MaxPrice)
	p.Plans = []cart.Plan{{ID: 1, Duration: "monthly", Price: cart.MaxPrice}}
	var answers []cart.FieldValue
	for i := range cart.MaxFields {
		name := fmt.Sprintf("field %02d", i)
		p.Fields = append(p.Fields, cart.Field{Name: name, Options: []cart.Option{{Code: "x", Name: locale.Named("X"), Price: cart.MaxSurcharge}}})
		answers = append(answers, cart.FieldValue{Name: name, Value: "x"})
	}
	return p, cart.Line{ID: cart.NewLineID(id, 1, answers), Quantity: cart.MaxQuantity, Fields: answers}
}

// Only a merge fills a cart to MergeFactor × MaxLines.
func TestPrice_DoesNotOverflowAtTheMaximums(t *testing.T) {
	t.Parallel()
	products := map[int64]*cart.Product{}
	var c cart.Cart
	for id := range int64(cart.MergeFactor * cart.MaxLines) {
		p, line := costliest(id + 1)
		products[p.ID], c.Lines = p, append(c.Lines, line)
	}
	store := &store.Store{Currency: "KWD", TaxRate: cart.MaxTaxRate}
	got := Of(c, store, products, highestLimits)
	got.redeemOne(&Coupon{Code: "C", Kind: Percent, Rate: 1}, Uses{}, store, time.Now()) // 0.0001 %

	subtotal := new(big.Int).Mul(big.NewInt(cart.MergeFactor*cart.MaxLines*cart.MaxQuantity), big.NewInt(int64(2*cart.MaxPrice+cart.MaxFields*cart.MaxSurcharge)))
	assert.That(t, big.NewInt(int64(got.Subtotal)).Cmp(subtotal) == 0 && 2*got.Subtotal == highestTotal,
		"subtotal %d, want %d", got.Subtotal, subtotal)
	want := 2 * (got.Subtotal - got.Subtotal/1_000_000)
	assert.That(t, got.Total == want && got.Total >= 0, "total %d, want %d", got.Total, want)
	assert.Equal(t, string(money.AppendMajor(nil, got.Total, 3)), "8999991000000000", "the total is shown as")
}
