package cart

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
)

// MaxCouponCode is the maximum length of a code in characters, as in the schema. Format characters that a shopper
// types or pastes do not count.
const MaxCouponCode = 64

// CouponKey returns the form by which codes are compared: in NFC, trimmed, without format characters, with A to Z
// for a to z and with ASCII digits for those of other scripts. Other letters keep their case: ı is not I, and ß is
// not SS. A text that is too long for a code is not brought into NFC, which takes time.
func CouponKey(code string) string {
	key := strings.TrimSpace(strings.Map(foldRune, code))
	if TooLong(key, MaxCouponCode) {
		return key
	}
	key = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, norm.NFC.String(key))
	return norm.NFC.String(key) // i with a combining dot above is now I with one, which is İ
}

// heldCode returns the place of a code in others: that of exactly this one, or else of the first that compares equal; -1 for none.
func heldCode(codes []string, code string) int {
	if i := slices.Index(codes, code); i >= 0 {
		return i
	}
	key := CouponKey(code)
	return slices.IndexFunc(codes, func(held string) bool { return CouponKey(held) == key })
}

// CouponFolds returns the characters that CouponKey replaces, and what replaces each of them, in order. It drops those
// that have no counterpart. These are arguments of translate in SQL.
func CouponFolds() (from, to string) {
	var digits, values, formats strings.Builder
	n := 0 // every script has its ten digits in order
	rangetable.Visit(unicode.Nd, func(r rune) {
		if r > unicode.MaxASCII {
			digits.WriteRune(r)
			values.WriteByte("0123456789"[n%10])
		}
		n++
	})
	rangetable.Visit(unicode.Cf, func(r rune) {
		if isFormat(r) {
			formats.WriteRune(r)
		}
	})
	return digits.String() + formats.String(), values.String()
}

// folds has CouponFolds by character, with -1 for those that have no counterpart.
var folds = func() map[rune]rune {
	from, to := CouponFolds()
	all, values := map[rune]rune{}, []rune(to)
	for i, r := range []rune(from) {
		all[r] = -1
		if i < len(values) {
			all[r] = values[i]
		}
	}
	return all
}()

func foldRune(r rune) rune {
	if to, folded := folds[r]; folded {
		return to
	}
	return r
}
