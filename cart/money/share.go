package money

import "math/bits"

// million is the denominator of rates: 15 % is 150,000 parts per million.
const million = 1_000_000

// Share returns a × partsPerMillion / 1,000,000, rounded once, half away from zero. It
// panics if the rate is negative, or if the result does not fit into an Amount, which
// cannot happen for rates up to 2,000,000 and |a| < 2^62.
func Share(a Amount, partsPerMillion int64) Amount {
	return proportion(a, partsPerMillion, million)
}

// IncludedShare returns the share that is included in a: a × r / (1,000,000 + r), rounded
// like Share. For every a and r, IncludedShare(a+Share(a, r), r) is Share(a, r). It panics
// if the rate is negative.
func IncludedShare(a Amount, partsPerMillion int64) Amount {
	return proportion(a, partsPerMillion, million+uint64(partsPerMillion))
}

// proportion returns a × part / whole, rounded, with a 128-bit product.
func proportion(a Amount, part int64, whole uint64) Amount {
	if part < 0 {
		panic("money: negative rate")
	}
	hi, lo := bits.Mul64(magnitude(a), uint64(part))
	lo, carry := bits.Add64(lo, whole/2, 0) // rounds half up; an odd whole has no halves
	hi += carry
	if hi >= whole {
		panic("money: share out of range")
	}
	quotient, _ := bits.Div64(hi, lo, whole)
	if int64(quotient) < 0 {
		panic("money: share out of range")
	}
	if a < 0 {
		return -Amount(quotient)
	}
	return Amount(quotient)
}
