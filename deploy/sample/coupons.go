package sample

import (
	"time"

	"commerce/cart"
)

// Coupons returns the coupons of each store by the store's id, with dates relative to
// now.
func Coupons(now time.Time) map[int64][]*cart.Coupon {
	return map[int64][]*cart.Coupon{
		1: {
			{Code: "TEN", Kind: cart.Percent, Rate: 100_000},
			{Code: "FIVE", Kind: cart.Fixed, Amount: 500, Minimum: 2000},
			{Code: "OLD", Kind: cart.Percent, Rate: 200_000, Expires: now.AddDate(0, 0, -30)},
		},
	}
}
