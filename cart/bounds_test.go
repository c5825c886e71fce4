package cart

import (
	"testing"

	"commerce/deploy/assert"
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
		got := BoundsOf(tc.product, testLimits)
		assert.That(t, got == tc.want, "%s: %+v, want %+v", name, got, tc.want)
	}
}

func cartOf(lines ...Line) Cart { return Cart{ID: "C", Version: 1, Mark: "M", Lines: lines} }
