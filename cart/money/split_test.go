package money_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"commerce/cart/money"
	"commerce/deploy/assert"
)

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
