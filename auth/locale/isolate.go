package locale

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
)

// U+2068 FIRST STRONG ISOLATE and U+2069 POP DIRECTIONAL ISOLATE.
const (
	isolate    = "\u2068"
	endIsolate = "\u2069"
)

// shown returns a word as a sentence in l shows it.
func shown(l Locale, word string) string {
	if turns(l, word) {
		return isolate + word + endIsolate
	}
	return word
}

// turns reports whether a word must be isolated in a sentence in l (Unicode, UAX #9): it has
// letters that are written in the other direction, and a sign at its start or end, or a digit at
// its start. Without isolates, «C++» in an Arabic sentence appears as «++C», and «100 coins» as
// «coins 100».
func turns(l Locale, word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	last, _ := utf8.DecodeLastRuneInString(word)
	if isPartOfWord(first) && !unicode.IsDigit(first) && isPartOfWord(last) {
		return false
	}
	for _, letter := range word {
		properties, _ := bidi.LookupRune(letter)
		switch properties.Class() {
		case bidi.L:
			if l == Ar {
				return true
			}
		case bidi.R, bidi.AL:
			if l != Ar {
				return true
			}
		}
	}
	return false
}

func isPartOfWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
}
