package cart

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/problem"
)

func TestBoundsOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		product *Product
		want    Bounds
	}{
		"gone":                 {nil, Bounds{Stock: -1, Min: 1, Max: 999}},
		"no bounds of its own": {&Product{MinQuantity: 1}, Bounds{Stock: -1, Min: 1, Max: 999}},
		"no minimum given":     {&Product{}, Bounds{Stock: -1, Min: 1, Max: 999}},
		"its own":              {&Product{Stock: new(int64(3)), MinQuantity: 2, MaxQuantity: new(int64(5))}, Bounds{Stock: 3, Min: 2, Max: 5}},
		"max past the service": {&Product{MinQuantity: 1, MaxQuantity: new(int64(5000))}, Bounds{Stock: -1, Min: 1, Max: 999}},
		"sold out":             {&Product{Stock: new(int64)}, Bounds{Stock: 0, Min: 1, Max: 999}},
		"per cart and step":    {&Product{MinQuantity: 1, MaxPerCart: new(int64(4)), Step: 2}, Bounds{Stock: -1, PerCart: 4, Min: 1, Max: 999, Step: 2}},
		"oversold":             {&Product{Stock: new(int64(-4))}, Bounds{Stock: 0, Min: 1, Max: 999}},
	} {
		if got := BoundsOf(tc.product, testLimits); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// A line that cannot be bought at all keeps only the service's own limit.
func TestMergeBounds(t *testing.T) {
	t.Parallel()
	sells := func(stock *int64, active bool) *Product {
		return &Product{Active: active, Stock: stock, MinQuantity: 2, MaxQuantity: new(int64(5))}
	}
	guest := cartOf(Line{ID: "1"}, Line{ID: "1.p1"}, Line{ID: "2"}, Line{ID: "3"}, Line{ID: "4"})
	products := map[int64]*Product{1: sells(new(int64(9)), true), 2: sells(new(int64), true), 3: sells(nil, false)}
	sold, stopped := Bounds{Stock: 9, Min: 2, Max: 5}, Bounds{Stock: -1, Max: 999}
	want := map[LineID]Bounds{"1": sold, "1.p1": sold, "2": stopped, "3": stopped, "4": stopped}
	if diff := cmp.Diff(want, MergeBounds(guest, products, testLimits)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestBounds_Cut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		bounds               Bounds
		wanted, held, others int64
		kept                 int64
		by                   problem.Code
	}{
		"fits":                                {Bounds{Stock: 9, PerCart: 9, Min: 1, Max: 9, Step: 1}, 5, 2, 4, 5, ""},
		"the line's maximum":                  {Bounds{Stock: -1, Min: 1, Max: 4}, 5, 2, 0, 4, AboveMaxQuantity},
		"the maximum per cart":                {Bounds{Stock: -1, PerCart: 6, Min: 1, Max: 9}, 5, 2, 3, 3, AboveMaxQuantity},
		"stock":                               {Bounds{Stock: 6, PerCart: 8, Min: 1, Max: 9}, 5, 2, 3, 3, problem.InsufficientStock},
		"stock, then down to a step":          {Bounds{Stock: 6, Min: 1, Max: 9, Step: 2}, 5, 2, 2, 3, problem.InsufficientStock},
		"down to a step":                      {Bounds{Stock: -1, Min: 3, Max: 9, Step: 2}, 6, 3, 0, 5, OffStep},
		"no steps below the minimum":          {Bounds{Stock: -1, Min: 5, Max: 9, Step: 5}, 4, 2, 0, 4, ""},
		"never below the customer's":          {Bounds{Stock: 1, Min: 1, Max: 9}, 5, 3, 2, 3, problem.InsufficientStock},
		"never below the customer's, by step": {Bounds{Stock: -1, Min: 1, Max: 9, Step: 5}, 4, 4, 0, 4, ""},
		"never to nothing":                    {Bounds{Stock: 1, Min: 1, Max: 9}, 2, 0, 5, 1, problem.InsufficientStock},
	} {
		if kept, by := tc.bounds.cut(tc.wanted, tc.held, tc.others); kept != tc.kept || by != tc.by {
			t.Errorf("%s: kept %d, cut by %q, want %d, %q", name, kept, by, tc.kept, tc.by)
		}
	}
}
