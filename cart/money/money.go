// Package money counts in whole minor units of a currency (halalas, cents), so
// that nothing is ever rounded but a percentage, and that once.
package money

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
)

// Amount is a sum in minor units: 4950 is 49.50 SAR, 4950 JPY and 4.950 KWD.
type Amount int64

// Digits returns how many decimals a currency has (SAR 2, JPY 0, KWD 3), by its
// ISO 4217 code in capitals. ok is false for a currency nobody knows.
func Digits(code string) (digits int, ok bool) {
	n, ok := currency.GetDigits(code)
	return int(n), ok
}

// AppendMajor appends a in major units of a currency with that many decimals,
// as the shortest JSON number that is exact: 4950 of two decimals is 49.5.
func AppendMajor(dst []byte, a Amount, digits int) []byte {
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

// magnitude is the absolute value, which for the least Amount is no Amount.
func magnitude(a Amount) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

var (
	errCurrency = errors.New("unknown currency")
	errSyntax   = errors.New("not a decimal number")
	errDecimals = errors.New("more decimals than the currency has")
)

// Parse reads an amount in major units, such as "49.50", "49.5" or "-0.05": an
// optional minus, digits, and a point with digits on both sides. Decimals past
// those of the currency must be 0, as it never rounds. The error says what is
// wrong with s and holds no more than its first 32 bytes.
func Parse(s, code string) (Amount, error) {
	a, err := parse(s, code)
	if err != nil {
		return 0, fmt.Errorf("parse amount %.32q of %.8q: %w", s, code, err)
	}
	return a, nil
}

func parse(s, code string) (Amount, error) {
	digits, ok := Digits(code)
	if !ok {
		return 0, errCurrency
	}
	unsigned, negative := strings.CutPrefix(s, "-")
	whole, decimals, pointed := strings.Cut(unsigned, ".")
	if !decimal(whole) || pointed && !decimal(decimals) {
		return 0, errSyntax
	}
	if len(decimals) > digits {
		if strings.Trim(decimals[digits:], "0") != "" {
			return 0, errDecimals
		}
		decimals = decimals[:digits]
	}
	minor := whole + decimals + strings.Repeat("0", digits-len(decimals))
	if negative {
		minor = "-" + minor
	}
	n, err := strconv.ParseInt(minor, 10, 64)
	if err != nil {
		return 0, errors.Unwrap(err) // only ErrRange is left; the text is in the wrap
	}
	return Amount(n), nil
}

// decimal reports whether s is one or more digits and nothing else.
func decimal(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
