package cart

import (
	"strings"
	"testing"

	"commerce/auth/locale"
	"commerce/auth/problem"
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
		got := IssueOf(&tc.line, tc.product, tc.taken, testLimits)
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
