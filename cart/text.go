package cart

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// MostShrunk is by how many times NormalText can make a text without surrounding space shorter, in
// bytes: three letters of Hangul become one. A text that is too long all the same need not be
// brought into normal form, which takes milliseconds for some.
const MostShrunk = 3

// NormalText returns the form in which a shopper's text is stored and compared: NFC, with
// surrounding space trimmed. Text without a visible character becomes "".
func NormalText(s string) string {
	if !strings.ContainsFunc(s, visible) {
		return ""
	}
	return strings.TrimSpace(norm.NFC.String(s))
}

// visible is false for spaces, control characters, and invisible ones such as joiners and fillers.
func visible(r rune) bool {
	if r < unicode.MaxASCII {
		return r > ' '
	}
	return !unicode.In(r, unicode.White_Space, unicode.Cc, unicode.Cf,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
