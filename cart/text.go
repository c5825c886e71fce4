package cart

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// NormalText is the form in which a shopper's text is stored and compared: NFC, without
// spaces around it. Text of nothing but invisible characters is "".
func NormalText(s string) string {
	if !strings.ContainsFunc(s, visible) {
		return ""
	}
	return strings.TrimSpace(norm.NFC.String(s))
}

// visible is false for spaces, control characters and characters that are made to
// be invisible, such as joiners, direction marks and fillers.
func visible(r rune) bool {
	if r < unicode.MaxASCII {
		return r > ' '
	}
	return !unicode.In(r, unicode.White_Space, unicode.Cc, unicode.Cf,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
