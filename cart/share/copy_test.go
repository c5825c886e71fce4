package share_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/share"
	"commerce/deploy/assert"
)

const written = "what the shopper wrote"

// Whatever the lines have, a share has their quantities, and of the answers only the options that the catalog has now.
func TestCopy_HasNothingThatTheShopperWrote(t *testing.T) {
	t.Parallel()
	account := carttest.Account()
	account.Fields = append(account.Fields, cart.Field{Name: "size", Options: []cart.Option{{Code: "s"}, {Code: "xl"}}})
	products := map[int64]*cart.Product{1: carttest.Sold(1, 100), 5: account} // 9 is gone
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cart.Line {
			product := rapid.SampledFrom([]int64{1, 5, 9}).Draw(t, "product")
			l := cart.Line{
				Quantity: rapid.Int64Range(1, 999).Draw(t, "quantity"), AddedPrice: 7,
				Notice: rapid.SampledFrom([]string{"", written}).Draw(t, "notice"), Metadata: cart.Metadata{"note": written},
			}
			if product != 1 {
				for _, f := range []cart.FieldValue{{Name: "email", Value: written}, {Name: "gone", Value: written}, {Name: "region", Value: "us"}, {Name: "region", Value: written}, {Name: "size", Value: "xl"}} {
					if rapid.Bool().Draw(t, f.Name) {
						l.Fields = append(l.Fields, f)
					}
				}
			}
			l.ID = cart.NewLineID(product, rapid.SampledFrom([]int64{0, 51}).Draw(t, "plan"), l.Fields)
			return l
		}), 0, 8).Draw(t, "lines")
		shared := share.Copy(lines, products, 999)
		if text := fmt.Sprintf("%+v", shared); strings.Contains(text, written) {
			t.Fatalf("it has what the shopper wrote: %s", text)
		}
		held, kept := map[string]int64{}, map[string]int64{}
		for _, l := range lines {
			held[l.ID.Item()] += l.Quantity
		}
		for i, l := range shared {
			kept[l.ID.Item()] += l.Quantity
			if l.ID != cart.NewLineID(l.ID.Product(), l.ID.Plan(), l.Fields) || l.Quantity > 999 || l.AddedPrice != 0 {
				t.Fatalf("line %d is %+v", i, l)
			}
			added, refusal := cart.Resolve(share.Addition(l), products[l.ID.Product()], carttest.Limits)
			if refusal == nil && (added.ID != l.ID || added.Quantity != l.Quantity) {
				t.Fatalf("line %+v is added as %+v", l, added)
			}
		}
		for item, n := range held {
			if kept[item] > n || kept[item] < min(n, 999) {
				t.Fatalf("it has %d of %s, and the cart %d", kept[item], item, n)
			}
		}
		if diff := cmp.Diff(shared, share.Copy(shared, products, 999)); diff != "" {
			t.Fatalf("-copy +copy of it\n%s", diff)
		}
	})
}

func TestCopy_SumsLinesThatBecomeEqual(t *testing.T) {
	t.Parallel()
	line := func(quantity int64, fields ...cart.FieldValue) cart.Line {
		return cart.Line{ID: cart.NewLineID(5, 51, fields), Quantity: quantity, Fields: fields}
	}
	us, email := cart.FieldValue{Name: "region", Value: "us"}, cart.FieldValue{Name: "email", Value: "a@b.c"}
	got := share.Copy([]cart.Line{line(600, email), line(2, email, us), line(600), line(1, us)}, map[int64]*cart.Product{5: carttest.Account()}, 999)
	assert.Equal(t, got, []cart.Line{line(999), line(3, us)}, "shared")
}
