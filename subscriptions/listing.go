package subscriptions

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"commerce/auth/locale"
)

const (
	defaultPerPage = 15
	maxPerPage     = 100
	maxPage        = 1_000_000 // by number
	maxSkip        = 1_000_000 // rows before a page by number
	maxEmail       = 254       // characters; RFC 5321 leaves no room for more
)

// listing is what a caller asks of the list.
type listing struct {
	filter  Filter
	page    int // 0: not given
	perPage int

	// link is the opaque part of a page link, "" where the page is asked for by
	// its number alone. It is not yet checked.
	link string

	// kept is what every URL of the answer repeats of the query: filters and page
	// size as they were given, each after an ampersand.
	kept string
}

// parameters are those the list takes, in the order in which URLs repeat them.
var parameters = []struct {
	name string
	read func(l *listing, value string) bool
	kept bool
	text locale.Text // of a value that cannot be read
}{
	{"per_page", (*listing).readPerPage, true, textPerPage},
	{"customerEmail", (*listing).readEmail, true, textEmail},
	{"customerPhone", (*listing).readPhone, true, textPhone},
	{"customerCountryCode", (*listing).readCallingCode, true, textCallingCode},
	{"page", (*listing).readPage, false, textPage},
	{linkParameter, (*listing).readLink, false, textLink},
}

// parseListing reads a raw query. What it does not know it refuses, with an *Error
// that names every parameter at fault: a misspelt filter must not list everybody.
func parseListing(query string) (listing, error) {
	l := listing{perPage: defaultPerPage}
	if query == "" {
		return l, nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return listing{}, refuse(fault{"query", textUnreadable})
	}
	var faults []fault
	for _, p := range parameters {
		given, present := values[p.name]
		delete(values, p.name)
		switch {
		case !present:
		case len(given) > 1:
			faults = append(faults, fault{p.name, textRepeated})
		case given[0] == "":
			faults = append(faults, fault{p.name, textEmpty})
		case !p.read(&l, given[0]):
			faults = append(faults, fault{p.name, p.text})
		case p.kept:
			l.kept += "&" + p.name + "=" + url.QueryEscape(given[0])
		}
	}
	faults = append(faults, unknown(values)...)
	if !slices.ContainsFunc(faults, func(f fault) bool { return f.parameter == "page" || f.parameter == "per_page" }) {
		faults = append(faults, l.tooFar()...)
	}
	if faults != nil {
		return listing{}, refuse(faults...)
	}
	return l, nil
}

// tooFar refuses a page that is asked for by its number and would skip too many rows.
func (l *listing) tooFar() []fault {
	switch {
	case l.link != "":
		return nil // finds its rows by id
	case l.page > maxPage, (l.page-1)*l.perPage > maxSkip:
		return []fault{{"page", textTooFar}}
	}
	return nil
}

// unknown names what is left, as far as an answer should repeat it.
func unknown(values url.Values) []fault {
	const most, longest = 10, 64
	var faults []fault
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(faults) == most {
			break
		}
		name = strings.ToValidUTF8(name[:min(len(name), longest)], "\uFFFD")
		faults = append(faults, fault{name, textUnknown})
	}
	return faults
}

func (l *listing) readPage(s string) (ok bool) {
	l.page, ok = wholeNumber(s, maxLinkedPage)
	return ok
}

func (l *listing) readPerPage(s string) (ok bool) {
	l.perPage, ok = wholeNumber(s, maxPerPage)
	return ok
}

// readEmail asks for little more than what keeps a name or an SQL text from being
// taken for an address that nobody has.
func (l *listing) readEmail(s string) bool {
	l.filter.Email = s
	local, domain, found := strings.Cut(s, "@")
	return found && local != "" && domain != "" && !strings.Contains(domain, "@") &&
		utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxEmail &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

func (l *listing) readPhone(s string) (ok bool) {
	l.filter.Phone, ok = ParsePhone(s)
	return ok
}

func (l *listing) readCallingCode(s string) bool {
	l.filter.CallingCode = s
	return len(s) <= maxCallingCode && digitsOnly(s)
}

func (l *listing) readLink(s string) bool {
	l.link = s
	return len(s) <= maxLink
}

// wholeNumber reads a number from 1 to most, written the one usual way: no sign, no
// leading zero, no fraction.
func wholeNumber(s string, most int) (n int, ok bool) {
	if len(s) > len("9223372036854775807") || !digitsOnly(s) || s[0] == '0' {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n <= most
}

func digitsOnly(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
