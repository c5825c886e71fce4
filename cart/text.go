package cart

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// TooLong reports whether the normal form of a text certainly has more characters than a limit.
func TooLong(s string, limit int64) bool { return exceeds(s, utf8.UTFMax*int(limit)) }

// NormalText returns the form in which a shopper's text is stored and compared: NFC, with LF as line ends, and
// trimmed. Text without a visible character becomes "".
func NormalText(s string) string {
	if !strings.ContainsFunc(s, visible) {
		return ""
	}
	return norm.NFC.String(trimText(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")))
}

// exceeds reports whether the normal form of a text certainly has more than so many bytes. To find that takes no time,
// but a normal form of a whole body does.
func exceeds(s string, bytes int) bool {
	const shrinks = 3 // times at most: three letters of Hangul become one
	return len(s) > shrinks*bytes && len(trimText(s)) > shrinks*bytes && strings.ContainsFunc(s, visible)
}

// trimText removes spaces and format characters from both ends.
func trimText(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || isFormat(r) })
}

// isFormat reports whether r is a format character that nobody sees, such as the marks of direction that a chat adds
// to what is copied: those of category Cf that are ignorable by default. Tags (U+E0020 to U+E007F) are not, because
// flags consist of them.
func isFormat(r rune) bool {
	return r > unicode.MaxASCII && unicode.Is(unicode.Cf, r) && !unicode.In(r, unicode.Prepended_Concatenation_Mark, otherFormats)
}

// otherFormats are annotations, controls of hieroglyphs, and tags.
var otherFormats = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0xFFF9, Hi: 0xFFFB, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x13430, Hi: 0x1343F, Stride: 1}, {Lo: 0xE0020, Hi: 0xE007F, Stride: 1}},
}

// visible is false for spaces, control characters, and invisible ones such as joiners and fillers.
func visible(r rune) bool {
	if r < unicode.MaxASCII {
		return r > ' '
	}
	return !unicode.In(r, unicode.White_Space, unicode.Cc, unicode.Cf,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
