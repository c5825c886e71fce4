package locale

import (
	"errors"
	"math"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// Bounds of the part of an Accept-Language header that is read. Browsers with many
// languages send about 20 members in 200 bytes.
const (
	maxBytes   = 512
	maxMembers = 32
)

// Match chooses the language for an Accept-Language header (RFC 9110, section 12.5.4).
// Several headers are joined by commas.
//
// The highest weight wins, then the first position. A regional tag ("en-GB") matches its
// language. "*" matches all languages that are not named; if that leaves a tie, the result
// is fallback. A weight of 0 for a language, but not for a region, excludes it: "en;q=0"
// selects Arabic even if fallback is English. Malformed members and all after the first 32
// members or 512 bytes are ignored. If nothing is left or everything is excluded, the
// result is fallback.
func Match(acceptLanguage string, fallback Locale) Locale {
	if acceptLanguage == "" {
		return fallback
	}
	languages := All()
	wishes, others := make([]wish, len(languages)), wish{} // one for each language
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
		if i := slices.Index(languages, l); i >= 0 {
			wishes[i].add(weight, place, !regional)
		}
	}
	if i, ok := best(wishes, others); ok {
		return languages[i]
	}
	return fallback
}

// best is the wish that comes before all others; ok is false where several come first.
func best(wishes []wish, others wish) (first int, ok bool) {
	top, ok := wishes[0].or(others), true
	for i := 1; i < len(wishes); i++ {
		switch w := wishes[i].or(others); {
		case w.over(top):
			top, first, ok = w, i, true
		case !top.over(w):
			ok = false
		}
	}
	return first, ok
}

// cut truncates the header to the members that fit into maxBytes.
func cut(header string) string {
	if len(header) <= maxBytes {
		return header
	}
	return header[:strings.LastIndexByte(header[:maxBytes+1], ',')+1]
}

// languageOf returns the language of a tag, "" if it is not supported, and whether the tag
// is narrower than the language.
func languageOf(tag string) (l Locale, narrowed bool) {
	if l, narrowed, ok := plainLanguage(tag); ok {
		return l, narrowed
	}
	parsed, err := language.All.Parse(tag)
	if err != nil {
		// A well-formed tag with an unregistered subtag still has a language. Any
		// other error means that the tag is malformed.
		if _, unregistered := errors.AsType[language.ValueError](err); !unregistered {
			return "", false
		}
	}
	base, confidence := parsed.Base()
	if confidence != language.Exact {
		return "", false // guessed from a script or a region
	}
	if l := Locale(base.String()); slices.Contains(All(), l) {
		return l, strings.ContainsAny(tag, "-_")
	}
	return "", false
}

// plainLanguage reads the most common tags, such as "en" and "en-US", without the full
// parser.
func plainLanguage(tag string) (l Locale, regional, ok bool) {
	regional = len(tag) == 5 && tag[2] == '-' && letter(tag[3]) && letter(tag[4])
	if !regional && len(tag) != 2 {
		return "", false, false
	}
	for _, l := range All() {
		if strings.EqualFold(tag[:2], string(l)) {
			return l, regional, true
		}
	}
	// No other two-letter code is an alias of "en" or "ar".
	return "", false, letter(tag[0]) && letter(tag[1])
}

func letter(c byte) bool {
	c |= 0x20
	return 'a' <= c && c <= 'z'
}

// wish is a client's preference for one language.
type wish struct {
	weight int // thousandths; 0: not mentioned; refused: not at all
	place  int // of the member that gave the weight, to settle equal weights
}

const refused = -1

// add adds one member of the header. Only a member for the whole language can refuse it,
// and a refusal is final.
func (w *wish) add(weight, place int, whole bool) {
	switch {
	case weight == 0 && whole:
		w.weight = refused
	case w.weight != refused && weight > w.weight:
		w.weight, w.place = weight, place
	}
}

// or returns w. For a language that was not mentioned it returns the preference of "*",
// which ranks after every named language.
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

// parseMember splits one member of an Accept-Language header, such as
// "en-US;q=0.8", into its tag and its weight in thousandths. The tag is not
// checked; ok is false where it is empty or the weight is not one.
func parseMember(s string) (tag string, weight int, ok bool) {
	tag, parameter, weighted := strings.Cut(s, ";")
	tag = trim(tag)
	if !weighted {
		return tag, 1000, tag != ""
	}
	parameter = trim(parameter)
	if len(parameter) < 3 || parameter[0]|0x20 != 'q' || parameter[1] != '=' {
		return "", 0, false
	}
	weight, ok = parseWeight(parameter[2:])
	return tag, weight, ok && tag != ""
}

// parseWeight reads a qvalue (RFC 9110, section 12.4.2), 0 to 1 with at most
// three decimals, in thousandths.
func parseWeight(s string) (weight int, ok bool) {
	whole, decimals, dotted := strings.Cut(s, ".")
	if whole != "0" && whole != "1" || len(decimals) > 3 {
		return 0, false
	}
	weight = int(whole[0]-'0') * 1000
	if !dotted {
		return weight, true
	}
	for i, unit := 0, 100; i < len(decimals); i, unit = i+1, unit/10 {
		if decimals[i] < '0' || decimals[i] > '9' {
			return 0, false
		}
		weight += int(decimals[i]-'0') * unit
	}
	return weight, weight <= 1000
}

// trim drops the optional white space HTTP allows around a member's parts.
func trim(s string) string { return strings.Trim(s, " \t") }
