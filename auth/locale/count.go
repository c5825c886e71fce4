package locale

import (
	"cmp"
	"strconv"
	"strings"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// Forms are the forms of a noun after a number, by the plural category of the number (Unicode
// CLDR). {n} is the number; a form may leave it out. Other serves every category without a form.
type Forms map[plural.Form]string

// Noun is what a sentence counts. A language without forms writes only the number. All sentences
// that use a noun must need it in the same grammatical case.
type Noun map[Locale]Forms

// Of returns n of the noun, as an argument of a sentence, for the verb %s.
func (noun Noun) Of(n int64) Count { return Count{n, noun} }

// Count is a number of things.
type Count struct {
	N    int64
	Noun Noun
}

// In returns the number in l, with the noun if it has forms in l.
func (c Count) In(l Locale) string {
	number := strconv.FormatInt(c.N, 10)
	forms := c.Noun[l]
	if forms == nil {
		return number
	}
	category := plural.Cardinal.MatchPlural(language.Make(string(l)), int(c.N), 0, 0, 0, 0)
	return strings.ReplaceAll(cmp.Or(forms[category], forms[plural.Other]), "{n}", number)
}
