package transfer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/deploy/assert"
)

func cartOf(lines ...cart.Line) cart.Cart {
	return cart.Cart{ID: "C", Version: 1, Mark: "M", Lines: lines}
}

var anyQuantity = cart.Bounds{Stock: -1, Min: 1, Max: 99}

func TestMerge_StrategiesDecideWhatBothHold(t *testing.T) {
	t.Parallel()
	own := cartOf(cart.Line{ID: "1", Quantity: 2, AddedPrice: 300}, cart.Line{ID: "2", Quantity: 5})
	guest := cartOf(cart.Line{ID: "2", Quantity: 3}, cart.Line{ID: "1", Quantity: 4, AddedPrice: 500, Notice: "n"}, cart.Line{ID: "3", Quantity: 1})
	bounds := map[cart.LineID]cart.Bounds{"1": anyQuantity, "2": anyQuantity, "3": anyQuantity}
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
		got := Merge(cart.Cart{Coupons: strings.Fields(test.own)}, cart.Cart{Coupons: strings.Fields(test.guest)}, MergeRules{Combine: combine},
			Offers{Coupons: strings.Fields(test.offered)})
		assert.Equal(t, strings.Join(got.Coupons, " "), test.want, "%s", name)
		assert.Equal(t, strings.Join(got.Came.Coupons, " "), test.came, "%s: what came", name)
		again := Merge(cart.Cart{}, cart.Cart{Coupons: strings.Fields(test.guest)}, MergeRules{Combine: combine}, got.Offers)
		assert.That(t, again.Coupons == nil && again.Report == nil, "%s, again: %q", name, again.Coupons)
	}
}

// The lines of a product share its stock in the order of the guest's. No line of the customer gets less.
func TestMerge_LinesOfAProductShareItsStock(t *testing.T) {
	t.Parallel()
	five := cart.Bounds{Stock: 5, Min: 1, Max: 9}
	bounds := map[cart.LineID]cart.Bounds{"1.p1": five, "1.p2": five}
	guest := cartOf(cart.Line{ID: "1.p2", Quantity: 3}, cart.Line{ID: "1.p1", Quantity: 1})
	for by, want := range map[Strategy][]int64{Sum: {4, 1}, KeepGuest: {1, 1}, KeepCustomer: {4, 1}} {
		got := Merge(cartOf(cart.Line{ID: "1.p1", Quantity: 4}), guest, MergeRules{Strategy: by, Bounds: bounds}, Offers{})
		cut := got.Report.Adjusted[0]
		assert.That(t, got.Lines[0].Quantity == want[0] && got.Lines[1].Quantity == want[1], "%s: %+v", by, got.Lines)
		assert.That(t, cut.Line == "1.p2" && cut.Requested == 3 && cut.Kept == 1 && cut.Code == problem.InsufficientStock, "%s: %+v", by, cut)
	}
}

// A failover may lose a claim: the guest's cart is back, and grows. What it gained is merged, whatever the strategy.
func TestMerge_GrowthArrives(t *testing.T) {
	t.Parallel()
	bounds := map[cart.LineID]cart.Bounds{"1": anyQuantity}
	for by, want := range map[Strategy]int64{Sum: 3, Max: 3, KeepGuest: 3, KeepCustomer: 1} {
		first := Merge(cartOf(), cartOf(cart.Line{ID: "1", Quantity: 3}), MergeRules{Strategy: by, Bounds: bounds}, Offers{})
		now := cart.SetQuantity(cart.Item{ID: "1"}, 1, anyQuantity, "")(&cart.Cell{Cart: first.Cart}, cart.Limits{}, time.Time{}).Cart
		again := Merge(now, cartOf(cart.Line{ID: "1", Quantity: 5}), MergeRules{Strategy: by, Bounds: bounds}, first.Offers)
		assert.Equal(t, again.Lines[0].Quantity, want, "%s: got %+v", by, again.Lines)
		emptied := Merge(cartOf(), cartOf(cart.Line{ID: "1", Quantity: 5}), MergeRules{Strategy: by, Bounds: bounds}, first.Offers)
		assert.That(t, emptied.Lines[0].Quantity == 2, "%s: a line that the customer has removed meanwhile: %+v", by, emptied.Lines)
	}
}

func TestParseStrategy(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"sum", "max", "guest", "customer"} {
		got, err := ParseStrategy(s)
		assert.That(t, err == nil && string(got) == s, "%q: %q, %v", s, got, err)
	}
	for _, s := range []string{"", "Sum", "sum ", "min"} {
		got, err := ParseStrategy(s)
		assert.That(t, err != nil, "%q was taken for %q", s, got)
	}
}

// A line that cannot be bought at all keeps only the service's own limit.
func TestMergeBounds(t *testing.T) {
	t.Parallel()
	sells := func(stock *int64, active bool) *cart.Product {
		return &cart.Product{Active: active, Stock: stock, MinQuantity: 2, MaxQuantity: new(int64(5))}
	}
	guest := cartOf(cart.Line{ID: "1"}, cart.Line{ID: "1.p1"}, cart.Line{ID: "2"}, cart.Line{ID: "3"}, cart.Line{ID: "4"})
	products := map[int64]*cart.Product{1: sells(new(int64(9)), true), 2: sells(new(int64), true), 3: sells(nil, false)}
	sold, stopped := cart.Bounds{Stock: 9, Min: 2, Max: 5}, cart.Bounds{Stock: -1, Max: 999}
	want := map[cart.LineID]cart.Bounds{"1": sold, "1.p1": sold, "2": stopped, "3": stopped, "4": stopped}
	assert.Equal(t, MergeBounds(guest, products, carttest.Limits), want, "result")
}

func TestBounds_Cut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		bounds               cart.Bounds
		wanted, held, others int64
		kept                 int64
		by                   problem.Code
	}{
		"fits":                                {cart.Bounds{Stock: 9, PerCart: 9, Min: 1, Max: 9, Step: 1}, 5, 2, 4, 5, ""},
		"the line's maximum":                  {cart.Bounds{Stock: -1, Min: 1, Max: 4}, 5, 2, 0, 4, cart.AboveMaxQuantity},
		"the maximum per cart":                {cart.Bounds{Stock: -1, PerCart: 6, Min: 1, Max: 9}, 5, 2, 3, 3, cart.AboveMaxQuantity},
		"stock":                               {cart.Bounds{Stock: 6, PerCart: 8, Min: 1, Max: 9}, 5, 2, 3, 3, problem.InsufficientStock},
		"stock, then down to a step":          {cart.Bounds{Stock: 6, Min: 1, Max: 9, Step: 2}, 5, 2, 2, 3, problem.InsufficientStock},
		"down to a step":                      {cart.Bounds{Stock: -1, Min: 3, Max: 9, Step: 2}, 6, 3, 0, 5, cart.OffStep},
		"no steps below the minimum":          {cart.Bounds{Stock: -1, Min: 5, Max: 9, Step: 5}, 4, 2, 0, 4, ""},
		"never below the customer's":          {cart.Bounds{Stock: 1, Min: 1, Max: 9}, 5, 3, 2, 3, problem.InsufficientStock},
		"never below the customer's, by step": {cart.Bounds{Stock: -1, Min: 1, Max: 9, Step: 5}, 4, 4, 0, 4, ""},
		"never to nothing":                    {cart.Bounds{Stock: 1, Min: 1, Max: 9}, 2, 0, 5, 1, problem.InsufficientStock},
	} {
		kept, by := cut(tc.bounds, tc.wanted, tc.held, tc.others)
		assert.That(t, kept == tc.kept && by == tc.by, "%s: kept %d, cut by %q, want %d, %q", name, kept, by, tc.kept, tc.by)
	}
}

func TestMerge_FillsTheBuyerOnce(t *testing.T) {
	t.Parallel()
	german, french := cart.Buyer{Country: "DE", Source: cart.ByShopper}, cart.Buyer{Country: "FR", Source: cart.ByAgent}
	for name, test := range map[string]struct {
		own, guest, offered, want, came cart.Buyer
	}{
		"the customer's stays":     {german, french, cart.Buyer{}, german, cart.Buyer{}},
		"the guest's fills":        {cart.Buyer{}, french, cart.Buyer{}, french, french},
		"nobody":                   {cart.Buyer{}, cart.Buyer{}, cart.Buyer{}, cart.Buyer{}, cart.Buyer{}},
		"removed since, not again": {cart.Buyer{}, french, french, cart.Buyer{}, cart.Buyer{}},
	} {
		got := Merge(cart.Cart{Buyer: test.own}, cart.Cart{Buyer: test.guest}, MergeRules{Strategy: Sum}, Offers{Buyer: test.offered})
		assert.That(t, got.Buyer == test.want && got.Came.Buyer == test.came && (got.Report != nil) == (test.came != cart.Buyer{}),
			"%s: %v, came: %v, report: %v", name, got.Buyer, got.Came.Buyer, got.Report)
	}
}
