package rules

import (
	"testing"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/deploy/assert"
)

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
