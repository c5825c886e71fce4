package subscriptions

import (
	"slices"
	"strings"
)

// Filter narrows a list down to some customers; "" does not.
type Filter struct {
	Email       string // in any case
	Phone       Phone
	CallingCode string // digits
}

// byCustomer reports whether customers have to be found first.
func (f Filter) byCustomer() bool { return f.Email != "" || f.Phone != "" }

// Phone is what a telephone number is known by: its digits, without any zeros
// before them. They may begin with the calling code.
type Phone string

// ParsePhone reads a number in any usual spelling: digits, which spaces, hyphens,
// dots, slashes and parentheses may part, and a plus sign before them. A number
// has 1 to 20 digits, and not zeros alone.
func ParsePhone(s string) (Phone, bool) {
	digits := make([]byte, 0, 20)
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digits = append(digits, c)
		case c == '+' && len(digits) == 0:
		case !strings.ContainsRune(" -./()", rune(c)):
			return "", false
		}
		if len(digits) > 20 {
			return "", false
		}
	}
	bare := strings.TrimLeft(string(digits), "0")
	return Phone(bare), bare != ""
}

const maxCallingCode = 4 // digits

// Nationals returns what the number would be without a calling code of any
// possible length, itself first. An index over national numbers finds every
// customer that Matches accepts under one of these.
func (p Phone) Nationals() []string {
	nationals := []string{string(p)}
	for n := 1; n <= maxCallingCode && n < len(p); n++ {
		rest := strings.TrimLeft(string(p[n:]), "0")
		if rest != "" && !slices.Contains(nationals, rest) {
			nationals = append(nationals, rest)
		}
	}
	return nationals
}

// Matches reports whether this is the number of a customer: the national one
// alone, or behind the calling code, with or without the 0 that some countries
// dial between the two.
func (p Phone) Matches(callingCode, national string) bool {
	rest, coded := strings.CutPrefix(string(p), callingCode)
	return national != "" && (string(p) == national || coded && (rest == national || rest == "0"+national))
}

// NationalPhone returns the digits that a customer's number has within the
// country: without leading zeros, and without the calling code where the number
// is written as an international one ("+966 50…", "0096650…"). The Postgres
// source has the same rule as a generated column.
func NationalPhone(phone, callingCode string) string {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, phone)
	trimmed := strings.TrimLeft(phone, " ")
	if strings.HasPrefix(trimmed, "+") || strings.HasPrefix(trimmed, "00") {
		digits = strings.TrimPrefix(strings.TrimLeft(digits, "0"), callingCode)
	}
	return strings.TrimLeft(digits, "0")
}
