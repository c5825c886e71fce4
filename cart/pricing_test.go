package cart

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

var testLimits = Limits{Lines: 100, Quantity: 999, LineText: 4096, CartText: 65536}

func sold(id int64, price money.Amount) *Product {
	return &Product{ID: id, Name: locale.Named(fmt.Sprintf("P%d", id)), Active: true, MinQuantity: 1, Price: price, OriginalPrice: price}
}

func sells(edit func(*Product)) *Product {
	p := sold(1, 100)
	edit(p)
	return p
}

func stocked(n int64) *Product { return sells(func(p *Product) { p.Stock = &n }) }

func account() *Product {
	return &Product{
		ID: 5, Name: locale.Named("Account"), Active: true, MinQuantity: 1, Price: 1500,
		Plans: []Plan{{ID: 51, Duration: "monthly", Price: 2000}, {ID: 52, Duration: "annually", Price: 20000}},
		Fields: []Field{
			{Name: "email", Required: true},
			{Name: "region", Options: []Option{{Code: "sa", Name: locale.Named("Saudi Arabia")}, {Code: "us", Name: locale.Named("United States"), Price: 525}}},
		},
	}
}

func TestUnitPrice(t *testing.T) {
	t.Parallel()
	p := account()
	for name, tc := range map[string]struct {
		plan   *Plan
		fields []FieldValue
		want   Unit
	}{
		"plain":                    {nil, nil, Unit{Base: 1500}},
		"with a plan":              {&p.Plans[1], nil, Unit{Base: 1500, Plan: 20000}},
		"a text costs nothing":     {nil, []FieldValue{{"email", "us"}}, Unit{Base: 1500}},
		"an option at no charge":   {nil, []FieldValue{{"region", "sa"}}, Unit{Base: 1500}},
		"an option with a charge":  {nil, []FieldValue{{"region", "us"}}, Unit{Base: 1500, Addons: 525}},
		"an option that is gone":   {nil, []FieldValue{{"region", "fr"}}, Unit{Base: 1500}},
		"a field that is gone":     {nil, []FieldValue{{"size", "us"}}, Unit{Base: 1500}},
		"a plan, a text, a charge": {&p.Plans[0], []FieldValue{{"email", "x"}, {"region", "us"}}, Unit{1500, 525, 2000}},
	} {
		got := unitPrice(p, tc.plan, tc.fields)
		assert.That(t, got == tc.want && got.Total() == tc.want.Base+tc.want.Addons+tc.want.Plan,
			"%s: %+v, want %+v", name, got, tc.want)
	}
}

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
		c := Cart{Lines: []Line{{ID: "1", Quantity: tc.quantity}}}
		got := Price(c, &tc.store, map[int64]*Product{1: sold(1, tc.unit)}, testLimits)
		if want := tc.unit * money.Amount(tc.quantity); got.Subtotal != want || got.Lines[0].Total != want {
			t.Errorf("%s: subtotal %d, line %d, want %d", name, got.Subtotal, got.Lines[0].Total, want)
		}
		assert.That(t, got.Tax == tc.tax && got.Total == tc.total,
			"%s: tax %d, total %d, want %d and %d", name, got.Tax, got.Total, tc.tax, tc.total)
	}
}

func TestPrice_GivesStockToLinesInCartOrder(t *testing.T) {
	t.Parallel()
	p := account()
	p.Fields, p.Stock = nil, new(int64(4))
	c := Cart{Lines: []Line{
		{ID: "5.p52", Quantity: 3},
		{ID: "5.p51", Quantity: 2},
		{ID: "1", Quantity: 900},
		{ID: "5.p51.fAAAAAAAAAAAAAAAA", Quantity: 1},
	}}
	got := Price(c, &store.Store{}, map[int64]*Product{5: p, 1: sold(1, 1)}, testLimits)
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
	p := account()
	c := Cart{Lines: []Line{
		{ID: "404", Quantity: 2, AddedPrice: 9900},
		{ID: "5.p59", Quantity: 2, Fields: []FieldValue{{"email", "x"}}},
	}}
	got := Price(c, &store.Store{}, map[int64]*Product{5: p}, testLimits)
	if l := got.Lines[0]; l.Product != nil || l.Unit != (Unit{}) || l.Total != 0 || l.Issue.Code != problem.ProductNotFound {
		t.Errorf("a product that is gone: %+v", l)
	}
	if l := got.Lines[1]; l.Plan != nil || l.Unit != (Unit{Base: 1500}) || l.Issue.Code != problem.PlanUnavailable {
		t.Errorf("a plan that is gone: %+v", l)
	}
	assert.Equal(t, got.Subtotal, 3000, "subtotal")
}

func TestCart_CountAndProductIDs(t *testing.T) {
	t.Parallel()
	c := Cart{Lines: []Line{{ID: "5.p52", Quantity: 3}, {ID: "1", Quantity: 2}, {ID: "5.p51", Quantity: 1}}}
	assert.That(t, c.Count() == 6, "count %d", c.Count())
	assert.Equal(t, c.ProductIDs(), []int64{1, 5}, "products")
}

func taxed(id int64, price money.Amount, rate int64) *Product {
	p := sold(id, price)
	p.TaxRate = &rate
	return p
}

func TestPrice_TaxesEachRateOnce(t *testing.T) {
	t.Parallel()
	lines := func(ids ...LineID) Cart {
		c := Cart{Coupons: []string{"C"}}
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
