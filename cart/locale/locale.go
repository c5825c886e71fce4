// Package locale names the languages the service speaks and chooses one for a
// request. It knows nothing of what is said in them.
package locale

// Locale is a language the service has texts for, as its BCP 47 tag.
type Locale string

// The languages every text exists in.
const (
	En Locale = "en"
	Ar Locale = "ar"
)

// Text is one text in several languages.
type Text map[Locale]string

// In returns the text in l, or in English where l is missing or empty.
func (t Text) In(l Locale) string {
	if s := t[l]; s != "" {
		return s
	}
	return t[En]
}
