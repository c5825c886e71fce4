package cart

import (
	"testing"
	"time"

	"commerce/deploy/assert"
)

// What remains of an emptied cart is kept for a day.
func TestCell_IsKeptForItsTTLWhileItHoldsAnything(t *testing.T) {
	t.Parallel()
	const ttl = 720 * time.Hour
	for name, test := range map[string]struct {
		cell Cell
		want time.Duration
	}{
		"a line":              {Cell{Cart: Cart{ID: "C", Lines: []Line{{ID: "1", Quantity: 1}}}}, ttl},
		"only a coupon":       {Cell{Cart: Cart{ID: "C", Coupons: []string{"TEN"}}}, ttl},
		"only metadata":       {Cell{Cart: Cart{ID: "C", Metadata: Metadata{"a": "x"}}}, ttl},
		"a note of a merge":   {Cell{Pending: Notes{{Name: "mA"}}}, ttl},
		"nothing any more":    {Cell{Cart: Cart{ID: "C"}}, 24 * time.Hour},
		"no more than stamps": {Cell{}, StampLife},
	} {
		_, left, renewed := test.cell.Expiring(ttl, decidedAt)
		assert.That(t, left == test.want && renewed, "%s: kept for %v", name, left)
	}
}
