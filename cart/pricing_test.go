package cart

import (
	"fmt"
	"testing"

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
	for i, l := range got.Lines {
		var available any
		if l.Issue != nil {
			available = *l.Issue.Available
			assert.Equal(t, l.Issue.Code, problem.InsufficientStock, "line %s", l.ID)
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
