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
			{Code: "GAMES", Kind: cart.Percent, Rate: 200_000, Products: []int64{1}},
			{Code: "LATER", Kind: cart.Percent, Rate: 150_000, Starts: now.AddDate(0, 0, 30)},
			{Code: "ONCE", Kind: cart.Fixed, Amount: 300, MaxUsesCustomer: times(1)},
			{Code: "USED", Kind: cart.Fixed, Amount: 1000, MaxUses: times(1)},
		},
	}
}

func times(n int64) *int64 { return &n }

// CouponUse is an order that used a coupon.
type CouponUse struct {
	Store    int64
	Code     string
	Customer string // the subject of the customer's JWT; "" for a guest
	Order    int64
}

// CouponUses returns the uses of the coupons.
func CouponUses() []CouponUse {
	return []CouponUse{
		{Store: 1, Code: "USED", Customer: "1002", Order: 7001},
		{Store: 1, Code: "ONCE", Customer: "1002", Order: 7002},
	}
}
