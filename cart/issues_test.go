package cart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

func TestIssueOf(t *testing.T) {
	t.Parallel()
	email := []FieldValue{{"email", "x"}}
	two, zero := int64(2), int64(0)
	sellsNo51 := account()
	sellsNo51.Plans[0].Retired = true
	for name, tc := range map[string]struct {
		line    Line
		product *Product
		taken   int64
		want    problem.Code
	}{
		"nothing wrong":                {Line{ID: "1", Quantity: 1}, sold(1, 100), 0, ""},
		"gone":                         {Line{ID: "1", Quantity: 1}, nil, 0, problem.ProductNotFound},
		"inactive":                     {Line{ID: "1", Quantity: 1}, sells(func(p *Product) { p.Active = false }), 0, problem.ProductInactive},
		"inactive before out of stock": {Line{ID: "1", Quantity: 1}, sells(func(p *Product) { p.Active, p.Stock = false, &zero }), 0, problem.ProductInactive},
		"plan gone":                    {Line{ID: "5.p59", Quantity: 1, Fields: email}, account(), 0, problem.PlanUnavailable},
		"plan retired":                 {Line{ID: "5.p51", Quantity: 1, Fields: email}, sellsNo51, 0, problem.PlanUnavailable},
		"another plan retired":         {Line{ID: "5.p52", Quantity: 1, Fields: email}, sellsNo51, 0, ""},
		"plan now required":            {Line{ID: "5", Quantity: 1, Fields: email}, account(), 0, problem.PlanUnavailable},
		"product no longer has plans":  {Line{ID: "1.p9", Quantity: 1}, sold(1, 100), 0, problem.PlanUnavailable},
		"field gone":                   {Line{ID: "1", Quantity: 1, Fields: email}, sold(1, 100), 0, problem.FieldInvalid},
		"option gone":                  {Line{ID: "5.p51", Quantity: 1, Fields: []FieldValue{{"email", "x"}, {"region", "fr"}}}, account(), 0, problem.FieldInvalid},
		"field now required":           {Line{ID: "5.p51", Quantity: 1, Fields: []FieldValue{{"region", "us"}}}, account(), 0, problem.FieldMissing},
		"invisible answer":             {Line{ID: "5.p51", Quantity: 1, Fields: []FieldValue{{"email", "\u200b"}}}, account(), 0, problem.FieldMissing},
		"valid fields and plan":        {Line{ID: "5.p51", Quantity: 1, Fields: email}, account(), 0, ""},
		"sold out":                     {Line{ID: "1", Quantity: 1}, stocked(0), 0, problem.OutOfStock},
		"too few left":                 {Line{ID: "1", Quantity: 3}, stocked(2), 0, problem.InsufficientStock},
		"lines before take all stock":  {Line{ID: "1", Quantity: 1}, stocked(2), 2, problem.InsufficientStock},
		"just enough":                  {Line{ID: "1", Quantity: 2}, stocked(2), 0, ""},
		"below its minimum":            {Line{ID: "1", Quantity: 1}, sells(func(p *Product) { p.MinQuantity = 2 }), 0, BelowMinQuantity},
		"above its maximum":            {Line{ID: "1", Quantity: 3}, sells(func(p *Product) { p.MaxQuantity = &two }), 0, AboveMaxQuantity},
		"above the service's limit":    {Line{ID: "1", Quantity: 1000}, sold(1, 100), 0, AboveMaxQuantity},
		"more than a cart may hold":    {Line{ID: "1", Quantity: 2}, sells(func(p *Product) { p.MaxPerCart = &two }), 1, AboveMaxQuantity},
		"all that a cart may hold":     {Line{ID: "1", Quantity: 1}, sells(func(p *Product) { p.MaxPerCart = &two }), 1, ""},
		"between two steps":            {Line{ID: "1", Quantity: 6}, sells(func(p *Product) { p.MinQuantity, p.Step = 3, 2 }), 0, OffStep},
		"on a step":                    {Line{ID: "1", Quantity: 7}, sells(func(p *Product) { p.MinQuantity, p.Step = 3, 2 }), 0, ""},
	} {
		got := issueOf(&tc.line, tc.product, tc.taken, testLimits)
		if got == nil {
			assert.That(t, tc.want == "", "%s: no issue, want %s", name, tc.want)
			continue
		}
		assert.That(t, got.Code == tc.want && got.Requested == tc.line.Quantity && !strings.Contains(got.Sentence.In(locale.En), "%!"),
			"%s: %+v %q, want %s", name, got, got.Sentence.In(locale.En), tc.want)
		aboutStock := tc.want == problem.OutOfStock || tc.want == problem.InsufficientStock
		assert.Equal(t, (got.Available != nil), aboutStock, "%s: available %v", name, got.Available)
	}
}

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
		"few left":                    {100, new(int64(5)), nil, []problem.Code{LowStock}},
		"more expensive and few left": {90, new(int64(1)), textPriceRose, []problem.Code{problem.PriceChanged, LowStock}},
		"was free until now":          {0, nil, nil, []problem.Code{problem.PriceChanged}},
	} {
		p := sold(1, 100)
		p.Stock = tc.stock
		var got []problem.Code
		warnings := warningsOf(&PricedLine{Line: &Line{ID: "1", Quantity: 1, AddedPrice: tc.added}, Product: p, Unit: Unit{Base: 100}})
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
	noPlans, noOption, inactive := account(), account(), account()
	noPlans.Plans, noOption.Fields[1].Options, inactive.Active = nil, noOption.Fields[1].Options[:1], false
	email, region := FieldValue{"email", "x"}, FieldValue{"region", "us"}
	for name, tc := range map[string]struct {
		line    Line
		product *Product
		want    []problem.Code
	}{
		"the plan is gone":               {Line{ID: "5.p59", Quantity: 1, AddedPrice: 3500, Fields: []FieldValue{email}}, account(), nil},
		"all plans are gone":             {Line{ID: "5.p51", Quantity: 1, AddedPrice: 3500, Fields: []FieldValue{email}}, noPlans, nil},
		"the product now has plans":      {Line{ID: "5", Quantity: 1, AddedPrice: 3500, Fields: []FieldValue{email}}, account(), nil},
		"inactive, and the plan is gone": {Line{ID: "5.p59", Quantity: 1, AddedPrice: 3500, Fields: []FieldValue{email}}, inactive, nil},
		"the option is gone":             {Line{ID: "5.p51", Quantity: 1, AddedPrice: 4025, Fields: []FieldValue{email, region}}, noOption, nil},
		"the field is gone":              {Line{ID: "5.p51", Quantity: 1, AddedPrice: 9000, Fields: []FieldValue{{"age", "9"}, email}}, account(), nil},
		"nothing is gone, and cheaper":   {Line{ID: "5.p51", Quantity: 1, AddedPrice: 9000, Fields: []FieldValue{email, region}}, account(), []problem.Code{problem.PriceChanged}},
		"inactive, and cheaper":          {Line{ID: "5.p51", Quantity: 1, AddedPrice: 9000, Fields: []FieldValue{email}}, inactive, []problem.Code{problem.PriceChanged}},
	} {
		priced := Price(Cart{Lines: []Line{tc.line}}, &store.Store{}, map[int64]*Product{5: tc.product}, testLimits)
		var got []problem.Code
		for _, w := range warningsOf(&priced.Lines[0]) {
			got = append(got, w.Code)
		}
		assert.Equal(t, got, tc.want, "%s", name)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	few := sold(2, 100)
	few.Stock = new(int64(3))
	products := map[int64]*Product{1: sold(1, 100), 2: few}
	for name, tc := range map[string]struct {
		lines            []Line
		issues, warnings []string
	}{
		"empty":            {nil, []string{"cart_empty"}, nil},
		"valid":            {[]Line{{ID: "1", Quantity: 1, AddedPrice: 100}}, nil, nil},
		"with a warning":   {[]Line{{ID: "1", Quantity: 1, AddedPrice: 99}}, nil, []string{"1 price_changed"}},
		"issue and others": {[]Line{{ID: "404", Quantity: 1}, {ID: "2", Quantity: 2}}, []string{"404 product_not_found"}, []string{"2 price_changed", "2 low_stock"}},
		"no low stock warning with an issue": {
			[]Line{{ID: "2", Quantity: 4, AddedPrice: 100}}, []string{"2 insufficient_stock"}, nil,
		},
		"price warning with an issue": {
			[]Line{{ID: "2", Quantity: 4, AddedPrice: 90}}, []string{"2 insufficient_stock"}, []string{"2 price_changed"},
		},
	} {
		p := Price(Cart{Lines: tc.lines}, &store.Store{}, products, testLimits)
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
