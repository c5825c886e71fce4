package subscriptionshttp

import (
	"cmp"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
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
	filter      subscriptions.Filter
	byPeriodEnd bool
	page        int // 0: not given
	perPage     int

	// link is the opaque part of a page link, "" for a page by number. It has not been verified.
	link string

	// kept is the part of the query that every URL of the answer repeats: filters, sort
	// and page size as given, each after an ampersand.
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
	kept("orderId", into(func(l *listing) *int64 { return &l.filter.OrderID }, wholeNumber[int64](math.MaxInt64)), textNumber, "orderId", int64(math.MaxInt64)),
	kept("sort", into(func(l *listing) *bool { return &l.byPeriodEnd }, parseSort), textSort),
	kept("periodEndFrom", into(func(l *listing) *time.Time { return &l.filter.PeriodEndFrom }, parseDay), textDay, "periodEndFrom"),
	kept("periodEndTo", into(func(l *listing) *time.Time { return &l.filter.PeriodEndBefore }, parseLastDay), textDay, "periodEndTo"),
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
	atFault := func(members ...string) bool {
		return slices.ContainsFunc(faults, func(f problem.Fault) bool { return slices.Contains(members, f.Member) })
	}
	linked := l.link != "" && l.page <= maxLinkedPage // and finds its rows by an index
	if !linked && (l.page > maxPage || (l.page-1)*l.perPage > maxSkip) && !atFault("page", "per_page") {
		faults = append(faults, fault("page", textTooFar))
	}
	others, why := periodEnds, textNeedsSort
	if l.byPeriodEnd {
		others, why = notSorted, textNotSorted
	}
	for _, name := range others {
		if strings.Contains(l.kept, "&"+name+"=") && !atFault(name, "sort") {
			faults = append(faults, fault(name, why))
		}
	}
	if from, before := l.filter.PeriodEndFrom, l.filter.PeriodEndBefore; !before.IsZero() && !from.Before(before) && !atFault(periodEnds...) {
		for _, name := range periodEnds {
			faults = append(faults, fault(name, textEndsFirst))
		}
	}
	return l, refused(faults)
}

const sortPeriodEnd = "periodEnd" // the only value of sort

var (
	periodEnds = []string{"periodEndFrom", "periodEndTo"} // need the sort
	// notSorted are the filters whose rows no index has in the order of the sort.
	notSorted = []string{"customerEmail", "customerPhone", "customerCountryCode", "externalCustomerId", "orderId"}
)

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

func parseSort(s string) (byPeriodEnd, ok bool) { return s == sortPeriodEnd, s == sortPeriodEnd }

// parseDay reads the beginning of a day.
func parseDay(s string) (time.Time, bool) {
	day, err := time.Parse(time.DateOnly, s)
	return day, err == nil && day.Year() > 0
}

// parseLastDay reads the end of a day. The last day that can be shown has none, as the first one has no
// beginning: the filter matches what is shown.
func parseLastDay(s string) (time.Time, bool) {
	day, ok := parseDay(s)
	if day = day.AddDate(0, 0, 1); day.Year() > 9999 {
		return time.Time{}, ok
	}
	return day, ok
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
func wholeNumber[N int | int64](limit N) func(string) (N, bool) {
	return func(s string) (N, bool) {
		if len(s) > len("9223372036854775807") || !digitsOnly(s) || s[0] == '0' {
			return 0, false
		}
		n, err := strconv.ParseInt(s, 10, 64)
		return N(n), err == nil && n <= int64(limit)
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
