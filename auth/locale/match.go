package locale

import (
	"errors"
	"slices"
	"strconv"
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
//
// Only the parser of tags is from golang.org/x/text. Its matcher drops weights of 0, so it answers
// "en-US, en;q=0, ar;q=0.1" in English. For one malformed member, it ignores the whole header. It
// takes 11 × the time.
func Match(acceptLanguage string, fallback Locale) Locale {
	if acceptLanguage == "" {
		return fallback
	}
	languages := All()
	scores, others := make([]score, len(languages)), score(0) // others is that of "*"
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
			others.add(weight, lastPlace, true) // after every named language of the same weight
			continue
		}
		l, regional := languageOf(tag)
		if i := slices.Index(languages, l); i >= 0 {
			scores[i].add(weight, place, !regional)
		}
	}
	for i := range scores {
		if scores[i] == 0 {
			scores[i] = others
		}
	}
	best := slices.Max(scores)
	first := slices.Index(scores, best)
	if slices.Contains(scores[first+1:], best) {
		return fallback
	}
	return languages[first]
}

// cut truncates the header to the members that fit into maxBytes.
func cut(header string) string {
	if len(header) <= maxBytes {
		return header
	}
	return header[:strings.LastIndexByte(header[:maxBytes+1], ',')+1]
}

// lastPlace is after the place of every member that is read.
const lastPlace = 2 * maxMembers

// score ranks languages: by weight, then by place. 0: not mentioned.
type score int

const refused score = -1

// add adds one member of the header, with its weight in thousandths. Only a member for the whole
// language can refuse it, and a refusal is final.
func (s *score) add(weight, place int, whole bool) {
	switch {
	case weight == 0 && whole:
		*s = refused
	case weight > 0 && *s != refused:
		*s = max(*s, score((weight+1)*lastPlace-place))
	}
}

// languageOf returns the language of a tag, "" if the tag is malformed or names none, and whether
// the tag is narrower than the language. Usual tags, such as "en" and "en-US", do not need the full
// parser, which allocates.
func languageOf(tag string) (l Locale, narrowed bool) {
	base, region, narrowed := strings.Cut(tag, "-")
	if len(base) == 2 && (!narrowed || len(region) == 2 && letter(region[0]) && letter(region[1])) {
		return Locale(strings.ToLower(base)), narrowed // no other two letters are an alias of "en" or "ar"
	}
	parsed, err := language.All.Parse(tag)
	if _, unregistered := errors.AsType[language.ValueError](err); err != nil && !unregistered {
		return "", false // malformed. A tag with an unregistered subtag still has a language
	}
	parsedBase, confidence := parsed.Base()
	if confidence != language.Exact {
		return "", false // guessed from a script or a region
	}
	return Locale(parsedBase.String()), strings.ContainsAny(tag, "-_")
}

func letter(c byte) bool {
	c |= 0x20
	return 'a' <= c && c <= 'z'
}

// parseMember splits one member, such as "en-US;q=0.8", into its tag, which it does not check, and
// its weight in thousandths (RFC 9110, section 12.4.2). ok is false if the weight is malformed.
func parseMember(member string) (tag string, weight int, ok bool) {
	tag, parameter, weighted := strings.Cut(member, ";")
	if !weighted {
		return trim(tag), 1000, true
	}
	name, value, _ := strings.Cut(trim(parameter), "=")
	whole, decimals, _ := strings.Cut(value, ".")
	if !strings.EqualFold(name, "q") || whole != "0" && whole != "1" || len(decimals) > 3 {
		return "", 0, false
	}
	weight, err := strconv.Atoi(whole + (decimals + "000")[:3])
	return trim(tag), weight, err == nil && weight <= 1000
}

func trim(s string) string { return strings.Trim(s, " \t") }
