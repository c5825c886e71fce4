package platform

import (
	"net/url"
	"regexp"
	"strings"

	"commerce/auth"
)

// The grammar of a dictionary (RFC 8941, section 3.2), one member at a time.
const (
	fieldKey    = `[a-z*][a-z0-9_.*-]*`
	fieldString = `"(?:[ !#-\[\]-~]|\\["\\])*"`
	fieldItem   = `(?:` + fieldString + "|[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*" + `|-?[0-9]+(?:\.[0-9]+)?|:[A-Za-z0-9+/=]*:|\?[01])`
	fieldParams = `(?:; *` + fieldKey + `(?:=` + fieldItem + `)?)*`
	fieldList   = `\( *(?:` + fieldItem + fieldParams + `(?: +` + fieldItem + fieldParams + `)*)? *\)`
)

var (
	fieldMember = regexp.MustCompile(`^(` + fieldKey + `)(?:=(` + fieldItem + `|` + fieldList + `))?` + fieldParams)
	fieldComma  = regexp.MustCompile(`^[ \t]*,[ \t]*`)
	unescape    = strings.NewReplacer(`\"`, `"`, `\\`, `\`)
)

// ParseAgent returns the URL of the platform's profile from a UCP-Agent header, whose lines are joined by
// commas. ok is false if the header is no dictionary (RFC 8941), or has no member profile that is a string.
func ParseAgent(header string) (url string, ok bool) {
	rest := strings.Trim(header, " ")
	for {
		m := fieldMember.FindStringSubmatch(rest)
		if m == nil {
			return "", false
		}
		if m[1] == "profile" { // the last one counts
			url, ok = "", strings.HasPrefix(m[2], `"`)
			if ok {
				url = unescape.Replace(m[2][1 : len(m[2])-1])
			}
		}
		if rest = rest[len(m[0]):]; rest == "" {
			return url, ok
		}
		comma := fieldComma.FindString(rest)
		if comma == "" {
			return "", false
		}
		rest = rest[len(comma):]
	}
}

const maxURL = 2048 // bytes

// parseURL parses the URL of a profile. It returns false for a URL that is never fetched. An http URL is
// one of this machine.
func parseURL(text string) (u *url.URL, ok bool) {
	notURI := func(r rune) bool { return r <= ' ' || r > '~' || r == '#' }
	if len(text) > maxURL || strings.ContainsFunc(text, notURI) {
		return nil, false
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return nil, false
	}
	switch u.Scheme {
	case "https":
		return u, u.Port() == "" || u.Port() == "443"
	case "http":
		return u, auth.IsLoopback(u.Hostname())
	}
	return nil, false
}
