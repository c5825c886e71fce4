// Package locale names the languages the service speaks and chooses one for a
// request. It has no texts of its own.
package locale

import "fmt"

// Locale is a language the service has texts for, as its BCP 47 tag.
type Locale string

// The languages that every text exists in. A new one also goes into All; a test then names
// the texts that lack it.
const (
	En Locale = "en"
	Ar Locale = "ar"
)

// All lists the languages.
func All() []Locale { return []Locale{En, Ar} }

// Text is one text in several languages.
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
	switch a := argument.(type) {
	case Name:
		if word := a.In(l); len(a.Others) > 0 || turns(l, word) {
			return shown(l, word)
		}
	case string:
		if turns(l, a) {
			return shown(l, a)
		}
	case interface{ In(Locale) string }:
		return a.In(l)
	}
	return argument
}
