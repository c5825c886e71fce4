package transfer_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/money"
	"commerce/cart/transfer"
)

// A guest's cart is merged into a customer's, who may change it, and undoes the merge. No quantity or coupon is
// lost or doubled, no text but of a line that gives nothing back, and a cart that nobody has changed is as before
// the merge.
func TestUndoMerge_LosesAndAddsNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		own, guest := drawCart(r, "customer's"), drawCart(r, "guest's")
		by := rapid.SampledFrom([]transfer.Strategy{transfer.Sum, transfer.Max, transfer.KeepGuest, transfer.KeepCustomer}).Draw(r, "strategy")
		bounds := map[cart.LineID]cart.Bounds{}
		for _, l := range guest.Lines {
			bounds[l.ID] = cart.Bounds{Stock: rapid.SampledFrom([]int64{-1, 3, 5}).Draw(r, "stock"), Min: 1, Max: 99}
		}
		m := transfer.Merge(own, guest, transfer.MergeRules{Strategy: by, Bounds: bounds, Combine: combining}, transfer.Offers{})
		merged, came := m.Cart, m.Came
		if diff := cmp.Diff(cameIn(own, merged, guest), came, cmpopts.EquateEmpty()); diff != "" {
			r.Fatalf("what the merge has brought (-by both carts +told):\n%s", diff)
		}
		now := merged
		if rapid.Bool().Draw(r, "changed since") {
			now = drawChanges(r, merged)
		}
		u := transfer.UndoMerge(now, came)
		checkUndone(r, u, now, came)
		if !cmp.Equal(now, merged) {
			return
		}
		for i, l := range u.Customer.Lines {
			if came, is := came.Lines[l.ID]; !is || came.After <= came.Before { // a line that a strategy has lowered stays so
				u.Customer.Lines[i].Quantity = own.Line(l.ID).Quantity
			}
		}
		if diff := cmp.Diff(own, u.Customer, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(cart.Cart{}, "Version")); diff != "" || u.Adjusted != nil {
			r.Fatalf("adjusted: %v, the customer's cart (-before the merge +after):\n%s", u.Adjusted, diff)
		}
		if again := transfer.UndoMerge(u.Customer, came); again.Guest.Lines != nil || again.Guest.Coupons != nil || again.Guest.Buyer != (cart.Buyer{}) || again.Guest.Metadata != nil {
			r.Fatalf("undone twice, it takes out %+v", again.Guest)
		}
	})
}

// Two merges, undone in either order, give back what they have brought, and the shopper is told of no change.
func TestUndoMerge_OfTwoMergesGivesBackBoth(t *testing.T) {
	t.Parallel()
	free := map[cart.LineID]cart.Bounds{}
	for _, id := range undoLines {
		free[id] = cart.Bounds{Stock: -1, Min: 1, Max: 99}
	}
	rapid.Check(t, func(r *rapid.T) {
		own := drawCart(r, "customer's")
		first := transfer.Merge(own, drawCart(r, "first guest's"), transfer.MergeRules{Strategy: transfer.Sum, Bounds: free, Combine: combining}, transfer.Offers{})
		second := transfer.Merge(first.Cart, drawCart(r, "second guest's"), transfer.MergeRules{Strategy: transfer.Sum, Bounds: free, Combine: combining}, transfer.Offers{})
		merges := []transfer.CameIn{first.Came, second.Came}
		now := second.Cart
		if rapid.Bool().Draw(r, "oldest first") {
			u := transfer.UndoMerge(now, first.Came, second.Came)
			now, merges = u.Customer, []transfer.CameIn{second.Came.Below(u.Guest.Lines)}
			if u.Adjusted != nil {
				r.Fatalf("told %+v", u.Adjusted)
			}
		}
		for _, came := range slices.Backward(merges) {
			u := transfer.UndoMerge(now, came)
			if now = u.Customer; u.Adjusted != nil {
				r.Fatalf("told %+v", u.Adjusted)
			}
		}
		if diff := cmp.Diff(own, now, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(cart.Cart{}, "Version")); diff != "" {
			r.Fatalf("the customer's cart (-before the merges +after):\n%s", diff)
		}
	})
}

func checkUndone(r *rapid.T, u transfer.Undone, now cart.Cart, came transfer.CameIn) {
	if names := u.Customer.Metadata.With(u.Guest.Metadata); !maps.Equal(names, now.Metadata) || len(u.Customer.Metadata)+len(u.Guest.Metadata) != len(names) {
		r.Fatalf("metadata: %v and %v", u.Customer.Metadata, u.Guest.Metadata)
	}
	for _, code := range now.Coupons {
		to := map[bool][]string{true: u.Guest.Coupons, false: u.Customer.Coupons}[slices.Contains(came.Coupons, code)]
		if !slices.Contains(to, code) || len(u.Guest.Coupons)+len(u.Customer.Coupons) != len(now.Coupons) {
			r.Fatalf("codes: %q and %q", u.Customer.Coupons, u.Guest.Coupons)
		}
	}
	switch none := (cart.Buyer{}); {
	case u.Guest.Buyer == none && u.Customer.Buyer == now.Buyer && (came.Buyer == none || now.Buyer != came.Buyer):
	case u.Guest.Buyer == came.Buyer && now.Buyer == came.Buyer && u.Customer.Buyer == none:
	default:
		r.Fatalf("buyers: %v and %v", u.Customer.Buyer, u.Guest.Buyer)
	}
	told := map[cart.LineID]cart.Adjustment{}
	for _, a := range u.Adjusted {
		told[a.Line] = a
	}
	for id, in := range came.Lines {
		var was, left, taken cart.Line
		for part, c := range map[*cart.Line]cart.Cart{&was: now, &left: u.Customer, &taken: u.Guest} {
			if c.Has(id) {
				*part = *c.Line(id)
			}
		}
		_, adjusted := told[id]
		changed := in.After > in.Before && (was.Quantity != in.After || in.Notice != "" && was.Notice != in.Notice)
		if taken.Quantity == 0 && in.Before > 0 { // the texts that came are dropped
			if in.Notice == was.Notice {
				taken.Notice = in.Notice
			}
			taken.Metadata = maps.Clone(was.Metadata)
			maps.DeleteFunc(taken.Metadata, func(name, value string) bool { return in.Metadata[name] != value })
		}
		switch {
		case left.Quantity+taken.Quantity != was.Quantity, taken.Quantity > max(0, in.After-in.Before),
			min(was.Quantity, in.Before) > left.Quantity:
			r.Fatalf("line %s: %d of %d stay, %d leave", id, left.Quantity, was.Quantity, taken.Quantity)
		case left.Notice+taken.Notice != was.Notice, !maps.Equal(left.Metadata.With(taken.Metadata), was.Metadata):
			r.Fatalf("line %s: texts %q %v, %q %v", id, left.Notice, left.Metadata, taken.Notice, taken.Metadata)
		case changed && !adjusted, told[id].Kept != taken.Quantity && adjusted, taken.Quantity > 0 && taken.AddedPrice != in.Price:
			r.Fatalf("line %s: told %+v, taken %+v", id, told[id], taken)
		}
	}
	if i := slices.IndexFunc(u.Guest.Lines, func(l cart.Line) bool { return came.Lines[l.ID].After == 0 }); i >= 0 {
		r.Fatalf("%s never came", u.Guest.Lines[i].ID)
	}
}

var undoLines = []cart.LineID{"1", "2", "3.p1"}

func drawCart(r *rapid.T, whose string) cart.Cart {
	c := cart.Cart{Coupons: drawCodes(r), Buyer: drawBuyer(r), Metadata: drawNames(r), Version: 1}
	for _, id := range undoLines {
		if n := rapid.Int64Range(0, 4).Draw(r, whose+" quantity"); n > 0 {
			price := money.Amount(100 * rapid.IntRange(1, 2).Draw(r, "price"))
			c.Lines = append(c.Lines, cart.Line{ID: id, Quantity: n, AddedPrice: price, Notice: drawNotice(r), Metadata: drawNames(r)})
		}
	}
	return c
}

// combining are the codes of coupons that combine.
var combining = map[string]bool{"C1": true, "C2": true, "C3": true, "C4": true, "C5": true}

func drawCodes(r *rapid.T) []string {
	return rapid.SampledFrom([][]string{nil, nil, {"TEN"}, {"FIVE"}, {"C1"}, {"C2", "C1"}, {"C3", "C4", "C5"}}).Draw(r, "codes")
}

func drawBuyer(r *rapid.T) cart.Buyer {
	return rapid.SampledFrom([]cart.Buyer{{}, {}, {Country: "DE", Source: cart.ByShopper}, {Country: "DE", Source: cart.ByAgent}, {Country: "FR", Source: cart.ByShopper}}).
		Draw(r, "buyer")
}

func drawNotice(r *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(r, "notice")
}

func drawNames(r *rapid.T) (m cart.Metadata) {
	return m.With(cart.Metadata{"a": drawNotice(r), "b": drawNotice(r)})
}

func drawChanges(r *rapid.T, c cart.Cart) cart.Cart {
	for range rapid.IntRange(1, 4).Draw(r, "changes") {
		id := rapid.SampledFrom(undoLines).Draw(r, "line")
		n := rapid.Int64Range(0, 9).Draw(r, "quantity")
		free := cart.Bounds{Stock: -1, Min: 1, Max: 99}
		var rule cart.Rule
		switch rapid.IntRange(0, 5).Draw(r, "change") {
		case 0:
			rule = cart.SetQuantity(cart.Item{ID: id, OnlyIDs: true}, n, free, "")
		case 1:
			rule = cart.Add(cart.NewLine{ID: id, Quantity: n + 1, Price: 300, Notice: drawNotice(r), Metadata: drawNames(r), Bounds: free})
		case 2:
			rule = cart.SetCodes(drawCodes(r)...)
		case 3:
			rule = cart.SetMetadata(cart.Metadata{"a": drawNotice(r)})
		case 4:
			rule = cart.SetBuyer(drawBuyer(r))
		default:
			rule = cart.Clear()
		}
		if made := rule(&cart.Cell{Cart: c}, carttest.Limits, time.Now()); !made.Refused() {
			c = made.Cart
		}
	}
	return c
}

// cameIn is what the merge of a guest's cart has brought into a customer's, by what that was before and after.
func cameIn(before, after, guest cart.Cart) transfer.CameIn {
	in := transfer.CameIn{Lines: map[cart.LineID]transfer.CameLine{}, Metadata: added(before.Metadata, after.Metadata)}
	for _, code := range after.Coupons {
		if !slices.Contains(before.Coupons, code) {
			in.Coupons = append(in.Coupons, code)
		}
	}
	if before.Buyer == (cart.Buyer{}) {
		in.Buyer = after.Buyer
	}
	for _, l := range after.Lines {
		var held cart.Line
		if before.Has(l.ID) {
			held = *before.Line(l.ID)
		}
		came := transfer.CameLine{Before: held.Quantity, After: l.Quantity, Metadata: added(held.Metadata, l.Metadata)}
		if held.Notice == "" {
			came.Notice = l.Notice
		}
		if guest.Has(l.ID) && (came.After > came.Before || came.Notice != "" || came.Metadata != nil) {
			came.Price = guest.Line(l.ID).AddedPrice
			in.Lines[l.ID] = came
		}
	}
	return in
}

func added(before, after cart.Metadata) (names cart.Metadata) {
	for name, value := range after {
		if _, held := before[name]; !held {
			names = names.With(cart.Metadata{name: value})
		}
	}
	return names
}
