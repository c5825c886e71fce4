package redisstore_test

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
	"commerce/cart/price"
	"commerce/cart/redisstore"
)

// A catalog that breaks a cart in many ways at once: one list of its fixes is not refused, and mends
// what the shopper does not have to decide. The same list again changes nothing.
func TestOps_FixesMendAnyCart(t *testing.T) {
	t.Parallel()
	redis := openStore(t)
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		ref := redisstore.CustomerRef(newStoreID(), "c")
		products := map[int64]*cart.Product{1: breakingProduct(t, 1), 2: breakingProduct(t, 2)}
		send := func(list []cart.Rule) cart.Cart {
			o, err := redis.Change(ctx, ref, redisstore.Conditions{}, redisstore.Attempt{CartID: "C", Limits: carttest.Limits}, redisstore.Listed(false, list))
			if err != nil || o.Status != cart.Applied {
				t.Fatalf("%v, %s %+v", err, o.Status, o.Effect)
			}
			return o.Cart
		}
		broken := send(lines(t))
		mended := send(fixesOf(t, broken, products))
		priced := price.Of(mended, &store.Store{}, products, carttest.Limits)
		for _, i := range slices.Concat(price.Validate(&priced).Issues, price.Warnings(&priced)) {
			switch i.Code {
			case problem.PlanUnavailable, problem.FieldMissing, problem.CartEmpty, cart.LowStock:
			default:
				t.Fatalf("still %s of %s, in\n%+v", i.Code, i.Line.ID, mended.Lines)
			}
		}
		if again := send(fixesOf(t, broken, products)); again.Version != mended.Version {
			t.Fatalf("the fixes change a mended cart\n%+v to\n%+v", mended.Lines, again.Lines)
		}
		wantMostKept(t, broken, mended, products)
	})
}

// fixesOf returns the fixes of a cart, of which no line has two.
func fixesOf(t *rapid.T, c cart.Cart, products map[int64]*cart.Product) (list []cart.Rule) {
	priced := price.Of(c, &store.Store{}, products, carttest.Limits)
	fixed := map[cart.LineID]bool{}
	for _, i := range slices.Concat(price.Validate(&priced).Issues, price.Warnings(&priced)) {
		f := i.Fix
		if f == nil {
			continue
		}
		if fixed[f.Line] || f.Line != i.Line.ID {
			t.Fatalf("line %s has the fix %+v", i.Line.ID, f)
		}
		fixed[f.Line] = true
		edit := cart.Edit{AcceptPrice: f.Price}
		if f.Quantity > 0 {
			edit.Quantity = &f.Quantity
		}
		if f.Remove {
			list = append(list, cart.Remove(cart.Item{ID: f.Line, OnlyIDs: true}))
			continue
		}
		list = append(list, cart.EditLine(cart.Item{ID: f.Line, OnlyIDs: true}, func(l cart.Line) (cart.EditedLine, *problem.Error) {
			return edit.Resolve(l, i.Line.Product, carttest.Limits)
		}))
	}
	return list
}

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
		if priced := price.Of(c, &store.Store{}, products, carttest.Limits); priced.Lines[i].Issue == nil {
			t.Fatalf("%d of %s are kept, but %d could be", kept[l.ID], l.ID, more)
		}
	}
}

func breakingProduct(t *rapid.T, id int64) *cart.Product {
	p := carttest.Sold(id, money.Amount(rapid.Int64Range(0, 2).Draw(t, "price")))
	p.Active = rapid.IntRange(0, 9).Draw(t, "active") > 0
	p.Stock = rapid.Ptr(rapid.Int64Range(-1, 12), true).Draw(t, "stock")
	p.MinQuantity, p.Step = rapid.Int64Range(1, 4).Draw(t, "minimum"), rapid.Int64Range(0, 3).Draw(t, "step")
	p.MaxQuantity = rapid.Ptr(rapid.Int64Range(1, 9), true).Draw(t, "maximum")
	p.MaxPerCart = rapid.Ptr(rapid.Int64Range(1, 12), true).Draw(t, "maximum per cart")
	if rapid.Bool().Draw(t, "plans") {
		p.Plans = []cart.Plan{{ID: 1}, {ID: 2}, {ID: 3, Price: 1}, {ID: 4, Retired: true}}
	}
	if rapid.IntRange(0, 9).Draw(t, "field") == 0 {
		p.Fields = []cart.Field{{Name: "asked", Required: true}}
	}
	return p
}

// lines adds up to five lines of each product, and of one that is gone.
func lines(t *rapid.T) (adds []cart.Rule) {
	for _, n := range rapid.SliceOfNDistinct(rapid.Int64Range(5, 19), 0, 12, rapid.ID).Draw(t, "lines") {
		id := cart.NewLineID(n/5, n%5, nil)
		adds = append(adds, cart.Add(cart.NewLine{
			ID: id, Quantity: rapid.Int64Range(1, 12).Draw(t, fmt.Sprint(id)), Price: money.Amount(rapid.Int64Range(0, 3).Draw(t, "added at")),
			Bounds: cart.Bounds{Stock: -1, Min: 1, Max: 12},
		}))
	}
	return adds
}
