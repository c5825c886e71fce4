package price

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

func TestWarningsOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		added money.Amount
		stock *int64
		price locale.Text // of the first warning; nil for any
		want  []problem.Code
	}{
		"no warning":                  {100, nil, nil, nil},
		"more expensive":              {90, nil, textPriceRose, []problem.Code{problem.PriceChanged}},
		"cheaper":                     {110, nil, textPriceFell, []problem.Code{problem.PriceChanged}},
		"plenty left":                 {100, new(int64(6)), nil, nil},
		"few left":                    {100, new(int64(5)), nil, []problem.Code{cart.LowStock}},
		"more expensive and few left": {90, new(int64(1)), textPriceRose, []problem.Code{problem.PriceChanged, cart.LowStock}},
		"was free until now":          {0, nil, nil, []problem.Code{problem.PriceChanged}},
	} {
		p := carttest.Sold(1, 100)
		p.Stock = tc.stock
		var got []problem.Code
		warnings := warningsOf(&Line{Line: &cart.Line{ID: "1", Quantity: 1, AddedPrice: tc.added}, Product: p, Unit: cart.Unit{Base: 100}})
		for _, w := range warnings {
			got = append(got, w.Code)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		} else if want := tc.price.With("P1").In(locale.En); tc.price != nil && warnings[0].Sentence.In(locale.En) != want {
			t.Errorf("%s: %q, want %q", name, warnings[0].Sentence.In(locale.En), want)
		}
	}
}

// A line costs less once its plan or option is gone, but no price has gone down.
func TestWarningsOf_IgnoresThePriceWhenAPartIsGone(t *testing.T) {
	t.Parallel()
	noPlans, noOption, inactive := carttest.Account(), carttest.Account(), carttest.Account()
	noPlans.Plans, noOption.Fields[1].Options, inactive.Active = nil, noOption.Fields[1].Options[:1], false
	email, region := cart.FieldValue{Name: "email", Value: "x"}, cart.FieldValue{Name: "region", Value: "us"}
	for name, tc := range map[string]struct {
		line    cart.Line
		product *cart.Product
		want    []problem.Code
	}{
		"the plan is gone":               {cart.Line{ID: "5.p59", Quantity: 1, AddedPrice: 3500, Fields: []cart.FieldValue{email}}, carttest.Account(), nil},
		"all plans are gone":             {cart.Line{ID: "5.p51", Quantity: 1, AddedPrice: 3500, Fields: []cart.FieldValue{email}}, noPlans, nil},
		"the product now has plans":      {cart.Line{ID: "5", Quantity: 1, AddedPrice: 3500, Fields: []cart.FieldValue{email}}, carttest.Account(), nil},
		"inactive, and the plan is gone": {cart.Line{ID: "5.p59", Quantity: 1, AddedPrice: 3500, Fields: []cart.FieldValue{email}}, inactive, nil},
		"the option is gone":             {cart.Line{ID: "5.p51", Quantity: 1, AddedPrice: 4025, Fields: []cart.FieldValue{email, region}}, noOption, nil},
		"the field is gone":              {cart.Line{ID: "5.p51", Quantity: 1, AddedPrice: 9000, Fields: []cart.FieldValue{{Name: "age", Value: "9"}, email}}, carttest.Account(), nil},
		"nothing is gone, and cheaper":   {cart.Line{ID: "5.p51", Quantity: 1, AddedPrice: 9000, Fields: []cart.FieldValue{email, region}}, carttest.Account(), []problem.Code{problem.PriceChanged}},
		"inactive, and cheaper":          {cart.Line{ID: "5.p51", Quantity: 1, AddedPrice: 9000, Fields: []cart.FieldValue{email}}, inactive, []problem.Code{problem.PriceChanged}},
	} {
		priced := Of(cart.Cart{Lines: []cart.Line{tc.line}}, &store.Store{}, map[int64]*cart.Product{5: tc.product}, carttest.Limits)
		var got []problem.Code
		for _, w := range warningsOf(&priced.Lines[0]) {
			got = append(got, w.Code)
		}
		assert.Equal(t, got, tc.want, "%s", name)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	few := carttest.Sold(2, 100)
	few.Stock = new(int64(3))
	products := map[int64]*cart.Product{1: carttest.Sold(1, 100), 2: few}
	for name, tc := range map[string]struct {
		lines            []cart.Line
		issues, warnings []string
	}{
		"empty":            {nil, []string{"cart_empty"}, nil},
		"valid":            {[]cart.Line{{ID: "1", Quantity: 1, AddedPrice: 100}}, nil, nil},
		"with a warning":   {[]cart.Line{{ID: "1", Quantity: 1, AddedPrice: 99}}, nil, []string{"1 price_changed"}},
		"issue and others": {[]cart.Line{{ID: "404", Quantity: 1}, {ID: "2", Quantity: 2}}, []string{"404 product_not_found"}, []string{"2 price_changed", "2 low_stock"}},
		"no low stock warning with an issue": {
			[]cart.Line{{ID: "2", Quantity: 4, AddedPrice: 100}}, []string{"2 insufficient_stock"}, nil,
		},
		"price warning with an issue": {
			[]cart.Line{{ID: "2", Quantity: 4, AddedPrice: 90}}, []string{"2 insufficient_stock"}, []string{"2 price_changed"},
		},
	} {
		p := Of(cart.Cart{Lines: tc.lines}, &store.Store{}, products, carttest.Limits)
		v := Validate(&p)
		assert.That(t, v.Valid() == (tc.issues == nil), "%s: valid %v", name, v.Valid())
		assert.Equal(t, [][]string{shown(v.Issues), shown(v.Warnings)}, [][]string{tc.issues, tc.warnings},
			"%s: issues and warnings", name)
	}
}

func shown(issues []LineIssue) []string {
	var list []string
	for _, i := range issues {
		text := string(i.Code)
		if i.Line != nil {
			text = string(i.Line.ID) + " " + text
		}
		list = append(list, text)
	}
	return list
}

func TestWarningsOf_ReadWellWithEveryNumber(t *testing.T) {
	t.Parallel()
	for left, want := range map[int64][2]string{
		1: {"Only 1 of “Loot box” is left.", "لم يتبقَّ سوى وحدة واحدة من «Loot box»."},
		2: {"Only 2 of “Loot box” are left.", "لم يتبقَّ سوى وحدتين من «Loot box»."},
	} {
		p := sells(func(p *cart.Product) { p.Name, p.Stock = locale.Named("Loot box"), &left })
		got := warningsOf(&Line{Line: &cart.Line{ID: "1", AddedPrice: 100}, Product: p, Unit: cart.Unit{Base: 100}})[0].Sentence
		assert.Equal(t, [2]string{got.In(locale.En), got.In(locale.Ar)}, want, "%d are left", left)
	}
}
