package cart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/problem"
	"commerce/deploy/assert"
)

func TestMerge_StrategiesDecideWhatBothHold(t *testing.T) {
	t.Parallel()
	own := cartOf(Line{ID: "1", Quantity: 2, AddedPrice: 300}, Line{ID: "2", Quantity: 5})
	guest := cartOf(Line{ID: "2", Quantity: 3}, Line{ID: "1", Quantity: 4, AddedPrice: 500, Notice: "n"}, Line{ID: "3", Quantity: 1})
	bounds := map[LineID]Bounds{"1": anyQuantity, "2": anyQuantity, "3": anyQuantity}
	for by, want := range map[Strategy][]int64{Sum: {6, 8, 1}, Max: {4, 5, 1}, KeepGuest: {4, 3, 1}, KeepCustomer: {2, 5, 1}} {
		got := Merge(own, guest, MergeRules{Strategy: by, Bounds: bounds}, Offers{})
		report := got.Report
		quantities := []int64{got.Lines[0].Quantity, got.Lines[1].Quantity, got.Lines[2].Quantity}
		assert.That(t, slices.Equal(quantities, want) && got.Version == 2 && got.Lines[0].AddedPrice == 300 && got.Lines[0].Notice == "n",
			"%s: %+v", by, got)
		assert.That(t, report != nil && report.Lines == 3 && len(report.Adjusted) == 0, "%s: report %+v", by, report)
		again := Merge(got.Cart, guest, MergeRules{Strategy: by, Bounds: bounds}, got.Offers)
		diff := cmp.Diff(got.Cart, again.Cart)
		assert.That(t, diff == "" && again.Report == nil, "%s, again: %+v (-first +again)\n%s", by, again.Report, diff)
	}
}

// The customer's codes stay. The guest's follow in their order, up to the first that does not combine with all.
func TestMerge_TakesCodesWhileAllCombine(t *testing.T) {
	t.Parallel()
	combine := map[string]bool{"A": true, "B": true, "C": true, "D": true, "E": true, "F": true}
	for _, test := range []struct{ own, guest, offered, want, came string }{
		{"", "A", "", "A", "A"},
		{"", "X", "", "X", "X"},
		{"", "A B", "", "A B", "A B"},
		{"", "X A", "", "X", "X"},
		{"A", "B C", "", "A B C", "B C"},
		{"A", "B X C", "", "A B", "B"},
		{"A", "A B", "", "A B", "B"},
		{"X", "A", "", "X", ""},
		{"X", "X A", "", "X", ""},
		{"A B C", "D E F", "", "A B C D E", "D E"},
		{"A", "B C", "B", "A C", "C"},
		{"A", "B C", "C B", "A", ""},
	} {
		name := fmt.Sprintf("%q and %q after %q", test.own, test.guest, test.offered)
		got := Merge(Cart{Coupons: strings.Fields(test.own)}, Cart{Coupons: strings.Fields(test.guest)}, MergeRules{Combine: combine},
			Offers{Coupons: strings.Fields(test.offered)})
		assert.Equal(t, strings.Join(got.Coupons, " "), test.want, "%s", name)
		assert.Equal(t, strings.Join(got.Came.Coupons, " "), test.came, "%s: what came", name)
		again := Merge(Cart{}, Cart{Coupons: strings.Fields(test.guest)}, MergeRules{Combine: combine}, got.Offers)
		assert.That(t, again.Coupons == nil && again.Report == nil, "%s, again: %q", name, again.Coupons)
	}
}

// The lines of a product share its stock in the order of the guest's. No line of the customer gets less.
func TestMerge_LinesOfAProductShareItsStock(t *testing.T) {
	t.Parallel()
	five := Bounds{Stock: 5, Min: 1, Max: 9}
	bounds := map[LineID]Bounds{"1.p1": five, "1.p2": five}
	guest := cartOf(Line{ID: "1.p2", Quantity: 3}, Line{ID: "1.p1", Quantity: 1})
	for by, want := range map[Strategy][]int64{Sum: {4, 1}, KeepGuest: {1, 1}, KeepCustomer: {4, 1}} {
		got := Merge(cartOf(Line{ID: "1.p1", Quantity: 4}), guest, MergeRules{Strategy: by, Bounds: bounds}, Offers{})
		cut := got.Report.Adjusted[0]
		assert.That(t, got.Lines[0].Quantity == want[0] && got.Lines[1].Quantity == want[1], "%s: %+v", by, got.Lines)
		assert.That(t, cut.Line == "1.p2" && cut.Requested == 3 && cut.Kept == 1 && cut.Code == problem.InsufficientStock, "%s: %+v", by, cut)
	}
}

// A failover may lose a claim: the guest's cart is back, and grows. What it gained is merged, whatever the strategy.
func TestMerge_GrowthArrives(t *testing.T) {
	t.Parallel()
	bounds := map[LineID]Bounds{"1": anyQuantity}
	for by, want := range map[Strategy]int64{Sum: 3, Max: 3, KeepGuest: 3, KeepCustomer: 1} {
		first := Merge(cartOf(), cartOf(Line{ID: "1", Quantity: 3}), MergeRules{Strategy: by, Bounds: bounds}, Offers{})
		now := made(SetQuantity(Item{ID: "1"}, 1, anyQuantity, ""), first.Cart, roomy).Cart
		again := Merge(now, cartOf(Line{ID: "1", Quantity: 5}), MergeRules{Strategy: by, Bounds: bounds}, first.Offers)
		assert.Equal(t, again.Lines[0].Quantity, want, "%s: got %+v", by, again.Lines)
		emptied := Merge(cartOf(), cartOf(Line{ID: "1", Quantity: 5}), MergeRules{Strategy: by, Bounds: bounds}, first.Offers)
		assert.That(t, emptied.Lines[0].Quantity == 2, "%s: a line that the customer has removed meanwhile: %+v", by, emptied.Lines)
	}
}
