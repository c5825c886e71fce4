package money_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"commerce/cart/money"
	"commerce/deploy/assert"
)

const bound = 1<<62 - 1 // Share accepts all amounts up to this

var (
	amounts = rapid.Custom(func(t *rapid.T) money.Amount {
		return money.Amount(rapid.OneOf(rapid.Int64Range(-bound, bound), rapid.Int64Range(-5000, 5000)).Draw(t, "minor"))
	})
	rates = rapid.OneOf(
		rapid.Int64Range(0, 2_000_000),
		rapid.SampledFrom([]int64{0, 1, 50_000, 100_000, 125_000, 150_000, 500_000, 1_000_000, 2_000_000}),
	)
)

func TestShares(t *testing.T) {
	t.Parallel()
	type of struct {
		amount money.Amount
		ppm    int64
		want   money.Amount
	}
	for _, tc := range []of{
		{4950, 100_000, 495},
		{4950, 150_000, 743}, // 742.5
		{-4950, 150_000, -743},
		{333, 100_000, 33},
		{335, 100_000, 34}, // 33.5
		{-335, 100_000, -34},
		{1, 500_000, 1},
		{1, 499_999, 0},
		{-1, 499_999, 0},
		{0, 150_000, 0},
		{4950, 0, 0},
		{4950, 1_000_000, 4950},
		{100, 2_000_000, 200},
		{bound, 1_000_000, bound},
		{-bound, 2_000_000, -2 * bound},
		{math.MinInt64 + 1, 1_000_000, math.MinInt64 + 1},
	} {
		assert.Equal(t, money.Share(tc.amount, tc.ppm), tc.want, "Share(%d, %d)", tc.amount, tc.ppm)
	}
	for _, tc := range []of{
		{11500, 150_000, 1500},
		{4950, 150_000, 646}, // 645.65…
		{-4950, 150_000, -646},
		{3, 1_000_000, 2}, // 1.5
		{-3, 1_000_000, -2},
		{1, 150_000, 0},
		{4950, 0, 0},
		{0, 150_000, 0},
		{bound, 1_000_000, bound/2 + 1}, // a half
		{math.MinInt64, 1_000_000, math.MinInt64 / 2},
	} {
		assert.Equal(t, money.IncludedShare(tc.amount, tc.ppm), tc.want, "IncludedShare(%d, %d)", tc.amount, tc.ppm)
	}
}

// Both shares are the nearest whole amount, with half away from zero, as computed with
// big.Int.
func TestShares_AreTheNearestAmount(t *testing.T) {
	t.Parallel()
	nearest := func(a money.Amount, part, whole int64) money.Amount {
		product := new(big.Int).Mul(big.NewInt(int64(a)), big.NewInt(part))
		twice := product.Abs(product).Lsh(product, 1)
		twice.Add(twice, big.NewInt(whole)).Quo(twice, big.NewInt(2*whole))
		if a < 0 {
			twice.Neg(twice)
		}
		return money.Amount(twice.Int64())
	}
	rapid.Check(t, func(t *rapid.T) {
		a, r := amounts.Draw(t, "amount"), rates.Draw(t, "ppm")
		if got, want := money.Share(a, r), nearest(a, r, 1_000_000); got != want {
			t.Fatalf("Share = %d, want %d", got, want)
		}
		if got, want := money.IncludedShare(a, r), nearest(a, r, 1_000_000+r); got != want {
			t.Fatalf("IncludedShare = %d, want %d", got, want)
		}
	})
}

func TestShares_PanicOutOfRange(t *testing.T) {
	t.Parallel()
	for name, share := range map[string]func() money.Amount{
		"negative rate":          func() money.Amount { return money.Share(100, -1) },
		"negative included rate": func() money.Amount { return money.IncludedShare(100, -1) },
		"one bit too many":       func() money.Amount { return money.Share(math.MaxInt64, 1_500_000) },
		"more than a word":       func() money.Amount { return money.Share(math.MaxInt64, math.MaxInt64) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() { _ = recover() }()
			t.Errorf("no panic, but %d", share())
		})
	}
}
