package locale

import (
	"errors"
	"math"
	"strings"

	"golang.org/x/text/language"
)

// How much of an Accept-Language header is read. Browsers with many languages
// send about 20 members in 200 bytes.
const (
	maxBytes   = 512
	maxMembers = 32
)

// Match chooses the language for an Accept-Language header (RFC 9110, section
// 12.5.4), several of them joined by commas.
//
// The highest weight wins, then the earlier place. A regional tag ("en-GB")
// asks for its language. "*" stands for the languages not named and, where it
// leaves the choice open, means fallback. A weight of 0 on a language, not on
// one region of it, refuses it: "en;q=0" is answered in Arabic even where
// fallback is English. Malformed members and what lies past the first 32
// members or 512 bytes are ignored. Where nothing is left, or everything is refused, the
// answer is fallback as given.
func Match(acceptLanguage string, fallback Locale) Locale {
	if acceptLanguage == "" {
		return fallback
	}
	var en, ar, others wish
	place := 0
	for member := range strings.SplitSeq(cut(acceptLanguage), ",") {
		if place++; place > maxMembers {
			break
		}
		tag, weight, ok := parseMember(member)
		if !ok {
			continue
		}
		if tag == "*" {
			others.add(weight, place, true)
			continue
		}
		l, regional := languageOf(tag)
		switch l {
		case En:
			en.add(weight, place, !regional)
		case Ar:
			ar.add(weight, place, !regional)
		}
	}
	en, ar = en.or(others), ar.or(others)
	switch {
	case en.over(ar):
		return En
	case ar.over(en):
		return Ar
	}
	return fallback
}

// cut drops what lies past maxBytes, and the member that is cut in two there.
func cut(header string) string {
	if len(header) <= maxBytes {
		return header
	}
	return header[:strings.LastIndexByte(header[:maxBytes+1], ',')+1]
}

// languageOf returns the language a tag asks for, empty where it is none of
// ours, and whether the tag narrows that language down.
func languageOf(tag string) (l Locale, narrowed bool) {
	if l, narrowed, ok := plainLanguage(tag); ok {
		return l, narrowed
	}
	parsed, err := language.All.Parse(tag)
	if err != nil {
		// A well-formed tag with a subtag nobody registered still names its
		// language; anything else is nonsense.
		if _, unregistered := errors.AsType[language.ValueError](err); !unregistered {
			return "", false
		}
	}
	base, confidence := parsed.Base()
	if confidence != language.Exact {
		return "", false // guessed from a script or a region
	}
	switch l := Locale(base.String()); l {
	case En, Ar:
		return l, strings.ContainsAny(tag, "-_")
	}
	return "", false
}

// plainLanguage reads what nearly every client sends, "en" or "en-US" of any
// language, without the full parser.
func plainLanguage(tag string) (l Locale, regional, ok bool) {
	regional = len(tag) == 5 && tag[2] == '-' && letter(tag[3]) && letter(tag[4])
	if !regional && len(tag) != 2 {
		return "", false, false
	}
	switch {
	case strings.EqualFold(tag[:2], string(En)):
		return En, regional, true
	case strings.EqualFold(tag[:2], string(Ar)):
		return Ar, regional, true
	}
	// No two-letter code but "en" and "ar" is an alias of either.
	return "", false, letter(tag[0]) && letter(tag[1])
}

func letter(c byte) bool {
	c |= 0x20
	return 'a' <= c && c <= 'z'
}

// wish is how much a client wants one language.
type wish struct {
	weight int // thousandths; 0: not mentioned; refused: not at all
	place  int // of the member that gave the weight, to settle equal weights
}

const refused = -1

// add takes in one member of the header. Only one that means the whole
// language can refuse it, and a refusal is final.
func (w *wish) add(weight, place int, whole bool) {
	switch {
	case weight == 0 && whole:
		w.weight = refused
	case w.weight != refused && weight > w.weight:
		w.weight, w.place = weight, place
	}
}

// or returns w or, for a language that was not mentioned, what was said of all
// others, behind every language wished for by name.
func (w wish) or(others wish) wish {
	if w.weight == 0 {
		return wish{weight: others.weight, place: math.MaxInt}
	}
	return w
}

// over reports whether w comes before v.
func (w wish) over(v wish) bool {
	if w.weight != v.weight {
		return w.weight > v.weight
	}
	return w.weight > 0 && w.place < v.place
}
