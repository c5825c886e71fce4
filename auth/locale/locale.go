// Package locale names the service's languages and chooses one for a request.
package locale

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
)

// Locale is a language the service has texts for, as its BCP 47 tag.
type Locale string

// The languages that every text exists in. A new one also goes into All; a test then names
// the texts that lack it.
const (
	En Locale = "en"
	Ar Locale = "ar"
)

func All() []Locale { return []Locale{En, Ar} }

type Text map[Locale]string

// In returns the text in l, or in English where l is missing or empty.
func (t Text) In(l Locale) string {
	if s := t[l]; s != "" {
		return s
	}
	return t[En]
}

// With returns the text with arguments for its verbs, as fmt.Sprintf takes them.
func (t Text) With(args ...any) Sentence { return Sentence{t, args} }

// Sentence is a text and the arguments for its verbs. An argument with a method In(Locale)
// string, such as a Name or a Text, is written in the sentence's language.
type Sentence struct {
	Text Text
	Args []any
}

// In returns the sentence in l, or in English where the text lacks l.
func (s Sentence) In(l Locale) string {
	if len(s.Args) == 0 {
		return s.Text.In(l)
	}
	var few [4]any
	args := append(few[:0], s.Args...)
	for i, a := range args {
		args[i] = in(l, a)
	}
	return fmt.Sprintf(s.Text.In(l), args...)
}

// in returns an argument in l. It returns a name or a word as it is where that is enough,
// because that avoids an allocation; fmt calls the name's String method.
func in(l Locale, argument any) any {
	var word string
	translated := false
	switch a := argument.(type) {
	case Name:
		word, translated = a.In(l), len(a.Others) > 0
	case string:
		word = a
	case interface{ In(Locale) string }:
		return a.In(l)
	}
	switch {
	case turns(l, word):
		return isolate + word + endIsolate
	case translated:
		return word
	}
	return argument
}

// U+2068 FIRST STRONG ISOLATE and U+2069 POP DIRECTIONAL ISOLATE.
const (
	isolate    = "\u2068"
	endIsolate = "\u2069"
)

// turns reports whether a word must be isolated in a sentence in l (Unicode, UAX #9): it has
// letters that are written in the other direction, and a sign at its start or end, or a digit at
// its start. Without isolates, «C++» in an Arabic sentence appears as «++C», and «100 coins» as
// «coins 100». There, «-20%» would appear as «%20-», and «10-20» as «20-10»: so it isolates
// digits with signs too, unless they are Arabic.
func turns(l Locale, word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	last, _ := utf8.DecodeLastRuneInString(word)
	if isPartOfWord(first) && !unicode.IsDigit(first) && isPartOfWord(last) {
		return false
	}
	directed, signs := false, false
	for _, r := range word {
		properties, _ := bidi.LookupRune(r)
		class := properties.Class()
		if l == Ar && class == bidi.L || l != Ar && (class == bidi.R || class == bidi.AL) {
			return true
		}
		directed = directed || class == bidi.R || class == bidi.AL || class == bidi.AN
		signs = signs || !unicode.IsDigit(r)
	}
	return l == Ar && signs && !directed
}

func isPartOfWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
}
