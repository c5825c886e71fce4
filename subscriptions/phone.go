package subscriptions

import (
	"slices"
	"strings"
	"unicode"
)

// Phone is a telephone number in the form for comparisons: ASCII digits without leading
// zeros. It may begin with the calling code.
type Phone string

// ParsePhone reads a number in any usual format. Digits may be ASCII or of either Arabic block.
// Spaces, dashes, dots, slashes, parentheses and invisible format characters may separate them, and
// plus signs may precede them. A number has 1 to 20 digits, at least one of which is not zero.
func ParsePhone(s string) (Phone, bool) {
	rest := strings.TrimLeftFunc(s, func(r rune) bool { return r == '+' || separatesDigits(r) })
	other := func(r rune) bool { return phoneDigit(r) < 0 && !separatesDigits(r) }
	digits := strings.Map(phoneDigit, rest)
	bare := trimZeros(digits)
	if bare == "" || len(digits) > 20 || strings.ContainsFunc(rest, other) {
		return "", false
	}
	return Phone(bare), true
}

// phoneDigit returns r as an ASCII digit, -1 if it is none. The function phone_digits of the
// migrations accepts the same ones.
func phoneDigit(r rune) rune {
	for _, zero := range []rune{'0', '\u0660', '\u06F0'} {
		if zero <= r && r <= zero+9 {
			return '0' + r - zero
		}
	}
	return -1
}

// separatesDigits includes characters in numbers that are pasted from documents: no-break
// spaces, typographic dashes and marks of the writing direction.
func separatesDigits(r rune) bool {
	return strings.ContainsRune("./()", r) || unicode.In(r, unicode.Zs, unicode.Pd, unicode.Cf)
}

func trimZeros(digits string) string { return strings.TrimLeft(digits, "0") }

const MaxCallingCode = 4

// Nationals returns the number with and without a calling code of each possible length. An index on
// them finds each customer whom Matches accepts.
func (p Phone) Nationals() []string {
	nationals := []string{string(p)}
	for n := 1; n <= MaxCallingCode && n < len(p); n++ {
		rest := trimZeros(string(p[n:]))
		if rest != "" && !slices.Contains(nationals, rest) {
			nationals = append(nationals, rest)
		}
	}
	return nationals
}

// Matches reports whether this is the number of a customer with a calling code: one of the
// two national numbers, with or without the calling code.
func (p Phone) Matches(callingCode, national, uncoded string) bool {
	for _, asked := range []string{string(p), withoutCode(string(p), callingCode)} {
		if asked != "" && (asked == national || asked == uncoded) {
			return true
		}
	}
	return false
}

func withoutCode(digits, callingCode string) string {
	return trimZeros(strings.TrimPrefix(digits, callingCode))
}

// NationalPhone returns the digits of a customer's number within the country, without leading zeros,
// and without the calling code of a number in international format ("+966 50…", "0096650…").
// uncoded is the other possible reading: the digits without the calling code for a number that begins
// with it in any format ("96650…"), else "". Generated columns in Postgres have the same rules.
func NationalPhone(phone, callingCode string) (national, uncoded string) {
	all := strings.Map(phoneDigit, phone)
	digits := trimZeros(all)
	if callingCode != "" && strings.HasPrefix(digits, callingCode) {
		uncoded = withoutCode(digits, callingCode)
	}
	first := strings.IndexFunc(phone, func(r rune) bool { return phoneDigit(r) >= 0 })
	if strings.HasPrefix(all, "00") || first > 0 && strings.Contains(phone[:first], "+") {
		return withoutCode(digits, callingCode), uncoded
	}
	return digits, uncoded
}
