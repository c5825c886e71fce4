package subscriptionshttp

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/subscriptions"
)

const (
	defaultPerPage = 15
	maxPerPage     = 100
	maxPage        = 1_000_000 // by number
	maxSkip        = 1_000_000 // rows before a page by number
	maxEmail       = 254       // characters; the maximum of RFC 5321
)

// listing is a request for a page of the list.
type listing struct {
	filter  subscriptions.Filter
	page    int // 0: not given
	perPage int

	// link is the opaque part of a page link, "" for a page by number. It has not been
	// verified.
	link string

	// kept is the part of the query that every URL of the answer repeats: filters and
	// page size as given, each after an ampersand.
	kept string
}

// listParameters are the parameters of the list, in the order in which URLs repeat them.
var listParameters = []parameter[listing]{
	kept("per_page", (*listing).readPerPage, textPerPage),
	kept("customerEmail", (*listing).readEmail, textEmail),
	kept("customerPhone", (*listing).readPhone, textPhone),
	kept("customerCountryCode", (*listing).readCallingCode, textCallingCode),
	kept("status", (*listing).readStatuses, textStatuses),
	kept("externalCustomerId", (*listing).readExternalCustomer, textExternalCustomer),
	{"page", (*listing).readPage, textPage},
	{linkParameter, (*listing).readLink, textLink},
}

// kept returns a parameter that every URL of the answer repeats as it was given.
func kept(name string, read func(l *listing, value string) bool, text locale.Text) parameter[listing] {
	return parameter[listing]{name, func(l *listing, value string) bool {
		l.kept += "&" + name + "=" + url.QueryEscape(value)
		return read(l, value)
	}, text}
}

// parseListing reads a raw query. Its problem.Error names every parameter at fault.
func parseListing(query string) (listing, error) {
	l := listing{perPage: defaultPerPage}
	if query == "" {
		return l, nil
	}
	faults := readQuery(query, &l, listParameters, textEmpty, textUnknown)
	if !slices.ContainsFunc(faults, func(f problem.Fault) bool { return f.Member == "page" || f.Member == "per_page" }) {
		faults = append(faults, l.tooFar()...)
	}
	return l, refused(faults)
}

// tooFar refuses a page by number that would skip too many rows.
func (l *listing) tooFar() []problem.Fault {
	switch {
	case l.link != "":
		return nil // finds its rows by ID
	case l.page > maxPage, (l.page-1)*l.perPage > maxSkip:
		return []problem.Fault{fault("page", textTooFar)}
	}
	return nil
}

func (l *listing) readPage(s string) (ok bool) {
	l.page, ok = wholeNumber(s, maxLinkedPage)
	return ok
}

func (l *listing) readPerPage(s string) (ok bool) {
	l.perPage, ok = wholeNumber(s, maxPerPage)
	return ok
}

// readEmail checks only enough to refuse a name or SQL, which would otherwise be an
// address without subscriptions.
func (l *listing) readEmail(s string) bool {
	l.filter.Email = s
	local, domain, found := strings.Cut(s, "@")
	return found && local != "" && domain != "" && !strings.Contains(domain, "@") &&
		utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxEmail &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

func (l *listing) readPhone(s string) (ok bool) {
	l.filter.Phone, ok = subscriptions.ParsePhone(s)
	return ok
}

func (l *listing) readCallingCode(s string) bool {
	l.filter.CallingCode = s
	return len(s) <= subscriptions.MaxCallingCode && digitsOnly(s)
}

func (l *listing) readStatuses(s string) (ok bool) {
	l.filter.Statuses, ok = subscriptions.ParseStatuses(s)
	return ok
}

// readExternalCustomer refuses only what no stored ID can be.
func (l *listing) readExternalCustomer(s string) bool {
	l.filter.ExternalCustomerID = s
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= subscriptions.MaxExternalCustomer && !strings.Contains(s, "\x00")
}

func (l *listing) readLink(s string) bool {
	l.link = s
	return len(s) <= maxLink
}

// wholeNumber reads a number from 1 to limit without a sign, leading zeros or a fraction.
func wholeNumber(s string, limit int) (n int, ok bool) {
	if len(s) > len("9223372036854775807") || !digitsOnly(s) || s[0] == '0' {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n <= limit
}

func digitsOnly(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
