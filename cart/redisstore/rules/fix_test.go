package rules

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/money"
)

// The catalog breaks a cart in all ways at once. Its fixes, in the order of the lines, mend what the
// shopper does not have to decide, and no rule refuses one.
func TestFixes_MendAnyCart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		products := map[int64]*cart.Product{1: brokenProduct(t, 1), 2: brokenProduct(t, 2)}
		broken := brokenCart(t)
		mended := applyFixes(t, broken, broken, products)
		priced := cart.Price(mended, &store.Store{}, products, carttest.Limits)
		for _, w := range slices.Concat(cart.Validate(&priced).Issues, cart.Warnings(&priced)) {
			switch w.Code {
			case problem.PlanUnavailable, problem.FieldMissing, problem.FieldInvalid, cart.CartEmpty, cart.LowStock:
			default:
				t.Fatalf("still %s of %s, in\n%+v", w.Code, w.Line.ID, mended.Lines)
			}
			if w.Fix != nil {
				t.Fatalf("the fix %+v of a mended cart", w.Fix)
			}
		}
		if again := applyFixes(t, broken, mended, products); again.Version != mended.Version {
			t.Fatalf("the fixes change a mended cart\n%+v to\n%+v", mended.Lines, again.Lines)
		}
		wantMostKept(t, broken, mended, products)
	})
}

// applyFixes applies the fixes of a broken cart to a cart.
func applyFixes(t *rapid.T, broken, to cart.Cart, products map[int64]*cart.Product) cart.Cart {
	priced := cart.Price(broken, &store.Store{}, products, carttest.Limits)
	fixed := map[cart.LineID]bool{}
	for _, i := range slices.Concat(cart.Validate(&priced).Issues, cart.Warnings(&priced)) {
		if i.Fix == nil {
			continue
		}
		id, product := i.Fix.Line, products[i.Fix.Line.Product()]
		if fixed[id] || id != i.Line.ID {
			t.Fatalf("line %s has the fix %+v, and another: %v", i.Line.ID, i.Fix, fixed[id])
		}
		fixed[id] = true
		at := slices.IndexFunc(to.Lines, func(l cart.Line) bool { return l.ID == id })
		if i.Fix.Remove {
			if at >= 0 {
				to = without(to, at)
			}
			continue
		}
		line := to.Lines[at]
		edit := cart.Edit{}
		if i.Fix.Quantity != 0 {
			edit.Quantity = &i.Fix.Quantity
		}
		edited, invalid := edit.Resolve(line, product, carttest.Limits)
		changed, _, refusal := Edit(to, id, edited, carttest.Limits)
		if invalid != nil || refusal != nil {
			t.Fatalf("%+v of %+v is refused: %v, %+v", i.Fix, to.Lines, invalid, refusal)
		}
		to = changed
		if i.Fix.Price != nil {
			to.Lines = slices.Clone(to.Lines)
			to.Line(id).AddedPrice = *i.Fix.Price
		}
	}
	return to
}

// wantMostKept fails if a line could have kept more of what it had.
func wantMostKept(t *rapid.T, broken, mended cart.Cart, products map[int64]*cart.Product) {
	kept := map[cart.LineID]int64{}
	for _, l := range mended.Lines {
		kept[l.ID] = l.Quantity
	}
	for i, l := range broken.Lines {
		p := cmp.Or(products[l.ID.Product()], &cart.Product{})
		more := kept[l.ID] + max(p.Step, 1)
		if kept[l.ID] == 0 {
			more = p.MinQuantity
		}
		if more > l.Quantity {
			continue
		}
		c := cart.Cart{Lines: slices.Clone(broken.Lines)}
		for j := range c.Lines {
			c.Lines[j].Quantity = kept[c.Lines[j].ID]
		}
		c.Lines[i].Quantity = more
		if priced := cart.Price(c, &store.Store{}, products, carttest.Limits); priced.Lines[i].Issue == nil {
			t.Fatalf("%d of %s are kept, but %d could be", kept[l.ID], l.ID, more)
		}
	}
}

func brokenProduct(t *rapid.T, id int64) *cart.Product {
	p := carttest.Sold(id, money.Amount(rapid.Int64Range(0, 2).Draw(t, "price")))
	p.Active = rapid.IntRange(0, 9).Draw(t, "active") > 0
	p.Stock = rapid.Ptr(rapid.Int64Range(-1, 12), true).Draw(t, "stock")
	p.MinQuantity, p.Step = rapid.Int64Range(1, 4).Draw(t, "minimum"), rapid.Int64Range(0, 3).Draw(t, "step")
	p.MaxQuantity = rapid.Ptr(rapid.Int64Range(1, 9), true).Draw(t, "maximum")
	p.MaxPerCart = rapid.Ptr(rapid.Int64Range(1, 12), true).Draw(t, "maximum per cart")
	if rapid.Bool().Draw(t, "plans") {
		p.Plans = []cart.Plan{{ID: 1}, {ID: 2}, {ID: 3, Price: 1}, {ID: 4, Retired: rapid.Bool().Draw(t, "retired")}}
	}
	return p
}

// brokenCart returns a cart with up to five lines of each product, and some of a product that is gone.
func brokenCart(t *rapid.T) cart.Cart {
	ids := rapid.SliceOfNDistinct(rapid.IntRange(5, 19), 0, 12, rapid.ID).Draw(t, "lines")
	c := cartOf()
	for _, n := range ids {
		id := cart.NewLineID(int64(n/5), int64(n%5), nil)
		c.Lines = append(c.Lines, cart.Line{
			ID: id, Quantity: rapid.Int64Range(1, 12).Draw(t, fmt.Sprint(id)), AddedPrice: money.Amount(rapid.Int64Range(0, 3).Draw(t, "added at")),
		})
	}
	return c
}
