package money

import "math/bits"

// million is the whole that rates are parts of: 15 % is 150,000 parts.
const million = 1_000_000

// Share returns a × partsPerMillion / 1,000,000, rounded once, halves away from
// zero. It is exact at every step. It panics where the rate is negative, or the
// result no Amount; no rate up to 2,000,000 does that while |a| < 2^62.
func Share(a Amount, partsPerMillion int64) Amount {
	return proportion(a, rate(partsPerMillion), million)
}

// IncludedShare returns the share that a already contains where it was put on
// top: a × r / (1,000,000 + r), rounded as Share does. For every a and rate,
// IncludedShare(a+Share(a, r), r) is Share(a, r). A negative rate panics.
func IncludedShare(a Amount, partsPerMillion int64) Amount {
	r := rate(partsPerMillion)
	return proportion(a, r, million+r)
}

func rate(partsPerMillion int64) uint64 {
	if partsPerMillion < 0 {
		panic("money: negative rate")
	}
	return uint64(partsPerMillion)
}

// proportion returns a × part / whole by way of a product of 128 bits.
func proportion(a Amount, part, whole uint64) Amount {
	hi, lo := bits.Mul64(magnitude(a), part)
	lo, carry := bits.Add64(lo, whole/2, 0) // halves go up, of an odd whole there are none
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
