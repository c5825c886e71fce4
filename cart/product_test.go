package cart

import (
	"fmt"
	"testing"

	"commerce/auth/locale"
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
		got := p.UnitPrice(tc.plan, tc.fields)
		assert.That(t, got == tc.want && got.Total() == tc.want.Base+tc.want.Addons+tc.want.Plan,
			"%s: %+v, want %+v", name, got, tc.want)
	}
}

func TestCart_CountAndProductIDs(t *testing.T) {
	t.Parallel()
	c := Cart{Lines: []Line{{ID: "5.p52", Quantity: 3}, {ID: "1", Quantity: 2}, {ID: "5.p51", Quantity: 1}}}
	assert.That(t, c.Count() == 6, "count %d", c.Count())
	assert.Equal(t, c.ProductIDs(), []int64{1, 5}, "products")
}
