package cart

import (
	"testing"
)

func TestBoundsOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		product *Product
		want    Bounds
	}{
		"gone":                 {nil, Bounds{-1, 1, 999}},
		"no bounds of its own": {&Product{MinQuantity: 1}, Bounds{-1, 1, 999}},
		"no minimum given":     {&Product{}, Bounds{-1, 1, 999}},
		"its own":              {&Product{Stock: ptr(int64(3)), MinQuantity: 2, MaxQuantity: ptr(int64(5))}, Bounds{3, 2, 5}},
		"max past the service": {&Product{MinQuantity: 1, MaxQuantity: ptr(int64(5000))}, Bounds{-1, 1, 999}},
		"sold out":             {&Product{Stock: new(int64)}, Bounds{0, 1, 999}},
		"oversold":             {&Product{Stock: ptr(int64(-4))}, Bounds{0, 1, 999}},
	} {
		if got := BoundsOf(tc.product, testLimits); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
