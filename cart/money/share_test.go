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

// Both shares are what big.Int gives, rounded half away from zero.
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

func TestSplit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		whole         money.Amount
		weights, want []money.Amount
	}{
		"exact shares":                  {30, []money.Amount{100, 200}, []money.Amount{10, 20}},
		"ties go to the earlier":        {2, []money.Amount{1, 1, 1}, []money.Amount{1, 1, 0}},
		"the largest remainder first":   {10, []money.Amount{333, 333, 334}, []money.Amount{3, 3, 4}},
		"a weight of 0 gets nothing":    {1, []money.Amount{0, 7, 0, 7}, []money.Amount{0, 1, 0, 0}},
		"all of it":                     {17, []money.Amount{5, 0, 12}, []money.Amount{5, 0, 12}},
		"nothing":                       {0, []money.Amount{0, 0}, []money.Amount{0, 0}},
		"nothing among none":            {0, nil, []money.Amount{}},
		"products of more than 64 bits": {1 << 61, []money.Amount{1 << 61, 1 << 61}, []money.Amount{1 << 60, 1 << 60}},
	} {
		assert.Equal(t, money.Split(tc.whole, tc.weights), tc.want, "%s", name)
	}
}

// Every part differs from its exact share by less than one minor unit, as computed with
// big.Int, and a part that is rounded up has at least the remainder of one that is not.
func TestSplit_IsExactForAllAmounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		highest := rapid.SampledFrom([]int64{3, 1000, 1 << 50}).Draw(t, "highest")
		var sum money.Amount
		weights := make([]money.Amount, rapid.IntRange(1, 12).Draw(t, "parts"))
		for i := range weights {
			weights[i] = money.Amount(rapid.Int64Range(0, highest).Draw(t, "weight"))
			sum += weights[i]
		}
		whole := money.Amount(rapid.Int64Range(0, int64(sum)).Draw(t, "whole"))

		var total money.Amount
		smallestUp, largestDown, up, down := new(big.Int), new(big.Int), -1, -1
		for i, part := range money.Split(whole, weights) {
			total += part
			if part < 0 || part > weights[i] {
				t.Fatalf("part %d is %d of %d", i, part, weights[i])
			}
			if sum == 0 {
				continue
			}
			product := new(big.Int).Mul(big.NewInt(int64(whole)), big.NewInt(int64(weights[i])))
			floor, rest := new(big.Int).QuoRem(product, big.NewInt(int64(sum)), new(big.Int))
			switch int64(part) - floor.Int64() {
			case 0:
				if c := rest.Cmp(largestDown); down < 0 || c > 0 {
					largestDown, down = rest, i
				}
			case 1:
				if c := rest.Cmp(smallestUp); up < 0 || c <= 0 {
					smallestUp, up = rest, i // the last one
				}
			default:
				t.Fatalf("part %d is %d, its share is %s", i, part, floor)
			}
		}
		if total != whole {
			t.Fatalf("the parts sum to %d, want %d", total, whole)
		}
		if up < 0 || down < 0 {
			return
		}
		if c := smallestUp.Cmp(largestDown); c < 0 || c == 0 && up > down {
			t.Fatalf("part %d with the remainder %s is rounded up, part %d with %s is not", up, smallestUp, down, largestDown)
		}
	})
}
