package money

import (
	"cmp"
	"math/bits"
	"slices"
)

// Split divides whole among parts in proportion to their weights, which must not be
// negative and sum to at least whole. The parts sum to whole exactly, and none exceeds its
// weight. Each is the exact share rounded down; the rest goes, one minor unit each, to the
// parts with the largest remainders, and among equal ones to the earlier.
func Split(whole Amount, weights []Amount) []Amount {
	parts := make([]Amount, len(weights))
	if whole == 0 {
		return parts
	}
	var sum Amount
	for _, weight := range weights {
		sum += weight
	}
	type remainder struct {
		part int
		of   uint64 // of sum
	}
	remainders, left := make([]remainder, len(weights)), whole
	for i, weight := range weights {
		hi, lo := bits.Mul64(uint64(whole), uint64(weight))
		quotient, rest := bits.Div64(hi, lo, uint64(sum)) // fits, because whole is at most sum
		parts[i], remainders[i] = Amount(quotient), remainder{i, rest}
		left -= parts[i]
	}
	slices.SortStableFunc(remainders, func(a, b remainder) int { return cmp.Compare(b.of, a.of) })
	for _, r := range remainders[:left] {
		parts[r.part]++
	}
	return parts
}
