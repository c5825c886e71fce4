package price

import (
	"fmt"
	"testing"

	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/deploy/assert"
)

func TestPrice_FixesLines(t *testing.T) {
	t.Parallel()
	limited := func(minimum, maximum, step, perCart, stock int64) *cart.Product {
		return sells(func(p *cart.Product) {
			p.MinQuantity, p.MaxQuantity, p.Step, p.MaxPerCart, p.Stock = minimum, &maximum, step, &perCart, &stock
		})
	}
	planned := func(p *cart.Product) *cart.Product {
		p.Plans = []cart.Plan{{ID: 1}, {ID: 2}, {ID: 3, Retired: true}}
		return p
	}
	lines := func(quantities ...int64) (lines []cart.Line) {
		for i, n := range quantities {
			lines = append(lines, cart.Line{ID: cart.LineID(fmt.Sprint("1.p", i+1)), Quantity: n, AddedPrice: 100})
		}
		return lines
	}
	one := func(quantity int64) []cart.Line { return []cart.Line{{ID: "1", Quantity: quantity, AddedPrice: 100}} }
	for name, tc := range map[string]struct {
		product *cart.Product
		lines   []cart.Line
		want    string // each line's fix, of its issue or its warning
	}{
		"nothing wrong":                         {carttest.Sold(1, 100), one(2), "-"},
		"gone":                                  {nil, one(2), "remove"},
		"inactive":                              {sells(func(p *cart.Product) { p.Active = false }), one(2), "remove"},
		"out of stock":                          {stocked(0), one(2), "remove"},
		"oversold":                              {stocked(-3), one(2), "remove"},
		"few left":                              {stocked(1), one(2), "1"},
		"above the maximum":                     {limited(1, 4, 1, 9, 9), one(5), "4"},
		"above the service's limit":             {carttest.Sold(1, 100), one(1000), "999"},
		"off its step":                          {limited(3, 9, 2, 9, 9), one(6), "5"},
		"few left, off its step":                {limited(3, 9, 2, 9, 6), one(8), "5"},
		"below the minimum":                     {limited(3, 9, 2, 9, 9), one(2), "3"},
		"the minimum is not in stock":           {limited(3, 9, 2, 9, 2), one(2), "remove"},
		"less than the minimum left":            {limited(3, 9, 2, 9, 2), one(5), "remove"},
		"the minimum exceeds the maximum":       {limited(3, 2, 1, 9, 9), one(2), "remove"},
		"a price that rose":                     {carttest.Sold(1, 120), one(2), "price 120"},
		"now free":                              {carttest.Sold(1, 0), one(2), "price 0"},
		"few left, at another price":            {sells(func(p *cart.Product) { p.Stock, p.Price = new(int64(1)), 120 }), one(2), "1 price 120"},
		"out of stock, at another price":        {sells(func(p *cart.Product) { p.Stock, p.Price = new(int64), 120 }), one(2), "remove"},
		"lines share stock":                     {planned(stocked(4)), lines(3, 2), "- 1"},
		"lines share the maximum per cart":      {planned(limited(1, 9, 1, 4, 9)), lines(3, 2), "- 1"},
		"an earlier line leaves nothing":        {planned(stocked(4)), lines(5, 2), "4 remove"},
		"an earlier line leaves what is needed": {planned(limited(1, 2, 1, 9, 4)), lines(5, 2), "2 2"},
		"the customer decides about the plan":   {planned(stocked(4)), lines(1, 1, 9), "- - -"},
		"a retired plan keeps its share":        {planned(stocked(4)), []cart.Line{{ID: "1.p3", Quantity: 4}, {ID: "1.p1", Quantity: 1, AddedPrice: 100}}, "- remove"},
		"room for the minimum":                  {planned(limited(2, 9, 1, 9, 4)), lines(1, 2), "2 -"},
		"an earlier line makes room for it":     {planned(limited(2, 4, 1, 9, 6)), lines(9, 1), "4 2"},
		"a later line has the room":             {planned(limited(2, 9, 1, 9, 4)), lines(1, 3), "remove -"},
		"a later line has it, and too many":     {planned(limited(2, 9, 1, 9, 4)), lines(1, 5), "remove 4"},
	} {
		priced := Of(cart.Cart{Lines: tc.lines}, &store.Store{}, map[int64]*cart.Product{1: tc.product}, carttest.Limits)
		var got []string
		for i := range priced.Lines {
			l := &priced.Lines[i]
			fixes := fixesOf(l)
			assert.That(t, len(fixes) < 2, "%s: line %s has the fixes %q", name, l.ID, fixes)
			got = append(got, append(fixes, "-")[0])
		}
		assert.Equal(t, fmt.Sprint(got), "["+tc.want+"]", "%s", name)
	}
}

func fixesOf(l *Line) (fixes []string) {
	issues := warningsOf(l)
	if l.Issue != nil {
		issues = append(issues, *l.Issue)
	}
	for _, i := range issues {
		switch f := i.Fix; {
		case f == nil:
		case f.Remove:
			fixes = append(fixes, "remove")
		case f.Price == nil:
			fixes = append(fixes, fmt.Sprint(f.Quantity))
		case f.Quantity == 0:
			fixes = append(fixes, fmt.Sprint("price ", *f.Price))
		default:
			fixes = append(fixes, fmt.Sprint(f.Quantity, " price ", *f.Price))
		}
	}
	return fixes
}
