package subscriptionshttp

import (
	"cmp"
	"maps"
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

type listing struct {
	filter  subscriptions.Filter
	page    int // 0: not given
	perPage int

	// link is the opaque part of a page link, "" for a page by number. It has not been verified.
	link string

	// kept is the part of the query that every URL of the answer repeats: filters and
	// page size as given, each after an ampersand.
	kept string
}

// listParameters are the parameters of the list, in the order in which URLs repeat them.
var listParameters = []parameter[listing]{
	kept("per_page", into(func(l *listing) *int { return &l.perPage }, wholeNumber(maxPerPage)), textNumber, "per_page", maxPerPage),
	kept("customerEmail", into(func(l *listing) *string { return &l.filter.Email }, parseEmail), textEmail),
	kept("customerPhone", into(func(l *listing) *subscriptions.Phone { return &l.filter.Phone }, subscriptions.ParsePhone), textPhone),
	kept("customerCountryCode", into(func(l *listing) *string { return &l.filter.CallingCode }, parseCallingCode), textCallingCode),
	kept("status", into(func(l *listing) *subscriptions.StatusSet { return &l.filter.Statuses }, subscriptions.ParseStatuses), textStatuses),
	kept("externalCustomerId", into(func(l *listing) *string { return &l.filter.ExternalCustomerID }, parseExternalCustomer), textExternalCustomer),
	{"page", into(func(l *listing) *int { return &l.page }, parsePage), textNumber.With("page", maxPage)},
	{linkParameter, into(func(l *listing) *string { return &l.link }, parseLink), textLink.With()},
}

// kept returns a parameter that every URL of the answer repeats as it was given.
func kept(name string, read func(l *listing, value string) bool, invalid locale.Text, args ...any) parameter[listing] {
	return parameter[listing]{name, func(l *listing, value string) bool {
		l.kept += "&" + name + "=" + url.QueryEscape(value)
		return read(l, value)
	}, invalid.With(args...)}
}

// parseListing reads a raw query. Its problem.Error names every parameter at fault.
func parseListing(query string) (listing, error) {
	l := listing{perPage: defaultPerPage}
	if query == "" {
		return l, nil
	}
	faults := readQuery(query, &l, listParameters, textEmpty, textUnknown)
	atFault := func(f problem.Fault) bool { return f.Member == "page" || f.Member == "per_page" }
	linked := l.link != "" && l.page <= maxLinkedPage // and finds its rows by ID
	if !linked && (l.page > maxPage || (l.page-1)*l.perPage > maxSkip) && !slices.ContainsFunc(faults, atFault) {
		faults = append(faults, fault("page", textTooFar))
	}
	return l, refused(faults)
}

// parseEmail checks only enough to refuse a name or SQL, which would otherwise be an
// address without subscriptions.
func parseEmail(s string) (string, bool) {
	local, domain, found := strings.Cut(s, "@")
	return s, found && local != "" && domain != "" && !strings.Contains(domain, "@") &&
		utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxEmail &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

func parseCallingCode(s string) (string, bool) {
	return s, len(s) <= subscriptions.MaxCallingCode && digitsOnly(s) && s[0] != '0'
}

// parseExternalCustomer refuses only what no stored ID can be.
func parseExternalCustomer(s string) (string, bool) {
	return s, utf8.ValidString(s) && utf8.RuneCountInString(s) <= subscriptions.MaxExternalCustomer && !strings.Contains(s, "\x00")
}

func parseLink(s string) (string, bool) { return s, len(s) <= maxLink }

// parsePage reads a page's number. All that are too large for a link are the same: too far.
func parsePage(s string) (int, bool) {
	n, ok := wholeNumber(maxLinkedPage)(s)
	if !ok && digitsOnly(s) && s[0] != '0' {
		return maxLinkedPage + 1, true
	}
	return n, ok
}

// wholeNumber returns a function that reads a number from 1 to limit without a sign, leading
// zeros or a fraction.
func wholeNumber(limit int) func(string) (int, bool) {
	return func(s string) (int, bool) {
		if len(s) > len("9223372036854775807") || !digitsOnly(s) || s[0] == '0' {
			return 0, false
		}
		n, err := strconv.Atoi(s)
		return n, err == nil && n <= limit
	}
}

func digitsOnly(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

type parameter[T any] struct {
	name    string
	read    func(into *T, value string) bool // false for an invalid value
	invalid locale.Sentence                  // for an invalid value
}

// into returns a function that reads a value into a field, and reports whether it is valid.
func into[T, V any](field func(*T) *V, parse func(string) (V, bool)) func(*T, string) bool {
	return func(t *T, value string) (ok bool) {
		*field(t), ok = parse(value)
		return ok
	}
}

// wholeQuery stands for the query itself where no parameter can be named.
const wholeQuery = "query"

// readQuery reads a raw query. It returns a fault for each parameter that is repeated, empty,
// invalid or not among the accepted ones, so that none is silently ignored.
func readQuery[T any](query string, into *T, accepted []parameter[T], empty, unknown locale.Text) []problem.Fault {
	values, err := url.ParseQuery(query)
	if err != nil {
		return []problem.Fault{fault(wholeQuery, textUnreadable)}
	}
	var faults []problem.Fault
	for _, p := range accepted {
		given, present := values[p.name]
		delete(values, p.name)
		switch {
		case !present:
		case len(given) > 1:
			faults = append(faults, fault(p.name, textRepeated))
		case given[0] == "":
			faults = append(faults, fault(p.name, empty))
		case !p.read(into, given[0]):
			faults = append(faults, problem.Fault{Member: p.name, Sentence: p.invalid})
		}
	}
	const maxNames, maxBytes = 10, 64 // bound how much of a query the response repeats
	names := slices.Sorted(maps.Keys(values))
	for _, name := range names[:min(len(names), maxNames)] {
		name = strings.ToValidUTF8(name[:min(len(name), maxBytes)], "\uFFFD")
		faults = append(faults, fault(cmp.Or(name, wholeQuery), unknown))
	}
	return faults
}

func fault(parameter string, text locale.Text) problem.Fault {
	return problem.Fault{Member: parameter, Sentence: text.With()}
}

// refused returns the error for faults of a query, nil if there are none.
func refused(faults []problem.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &problem.Error{Code: problem.InvalidParameter, Faults: faults}
}
