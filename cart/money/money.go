// Package money counts in whole minor units of a currency (halalas, cents), so that only
// percentages are ever rounded, and each only once.
package money

import (
	"strconv"

	"github.com/bojanz/currency"
)

// Amount is a sum in minor units: 4950 is 49.50 SAR, 4950 JPY and 4.950 KWD.
type Amount int64

// Digits returns how many decimals a currency has (SAR 2, JPY 0, KWD 3), by its
// ISO 4217 code in capitals. ok is false for an unknown currency, whose amounts
// must not be shown: 4950 of it could be 4950, 49.50 or 4.950.
func Digits(code string) (digits int, ok bool) {
	if withdrawn(code) {
		return withdrawnDigits, true
	}
	n, ok := currency.GetDigits(code)
	return int(n), ok
}

// Known reports whether Digits knows a currency.
func Known(code string) bool {
	_, ok := Digits(code)
	return ok
}

const withdrawnDigits = 2

// withdrawn reports whether CLDR no longer lists a currency that stores and
// subscriptions may still have: those that ISO 4217 withdrew since 2021.
func withdrawn(code string) bool {
	switch code {
	case "ANG", // 2025, for XCG
		"BGN", // 2026, for EUR
		"CUC", // 2021, for CUP
		"HRK", // 2023, for EUR
		"SLL", // 2024, for SLE
		"ZWL": // 2024, for ZWG
		return true
	}
	return false
}

// AppendMajor appends a in major units of a currency with digits decimals, as the shortest
// exact JSON number: 4950 with two decimals is 49.5.
func AppendMajor(dst []byte, a Amount, digits int) []byte {
	if a == 0 { // most discounts and surcharges
		return append(dst, '0')
	}
	if a < 0 {
		dst = append(dst, '-')
	}
	var buf [20]byte
	minor := strconv.AppendUint(buf[:0], magnitude(a), 10)

	whole := max(len(minor)-digits, 0)
	decimals := len(minor)
	for decimals > whole && minor[decimals-1] == '0' {
		decimals--
	}
	if whole == 0 {
		dst = append(dst, '0')
	}
	dst = append(dst, minor[:whole]...)
	if decimals == whole {
		return dst
	}
	dst = append(dst, '.')
	for range digits - len(minor) {
		dst = append(dst, '0')
	}
	return append(dst, minor[whole:decimals]...)
}

// magnitude returns the absolute value. That of math.MinInt64 does not fit into an Amount.
func magnitude(a Amount) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}
