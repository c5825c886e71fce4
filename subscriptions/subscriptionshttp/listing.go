package subscriptionshttp

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/subscriptions"
)

const (
	defaultPerPage = 15
	maxPerPage     = 100
	maxPage        = 1_000_000 // by number
	maxSkip        = 1_000_000 // rows before a page by number
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
var listParameters = slices.Concat([]parameter[listing]{
	{"page", into(func(l *listing) *int { return &l.page }, parsePage), subscriptions.WantsNumber("page", maxPage)},
	kept(number("per_page", func(l *listing) *int { return &l.perPage }, maxPerPage)),
}, filterParameters(), []parameter[listing]{
	kept(parameter[listing]{sortParameter, into(func(l *listing) *bool { return &l.byPeriodEnd }, parseSort), textSort.With()}),
	{linkParameter, into(func(l *listing) *string { return &l.link }, parseLink), textLink.With()},
})

func filterParameters() []parameter[listing] {
	all := make([]parameter[listing], len(subscriptions.Criteria))
	for i, c := range subscriptions.Criteria {
		read := func(l *listing, value string) bool { return c.Read(&l.filter, value) }
		all[i] = kept(parameter[listing]{c.Name, read, c.Invalid})
	}
	return all
}

// kept makes every URL of the answer repeat a parameter as it was given.
func kept(p parameter[listing]) parameter[listing] {
	read := p.read
	p.read = func(l *listing, value string) bool {
		l.kept += "&" + p.name + "=" + url.QueryEscape(value)
		return read(l, value)
	}
	return p
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
	return l, refused(append(faults, l.conflicts(atFault)...))
}

// conflicts returns the faults of filters that are valid, but not with each other or with the sort.
func (l *listing) conflicts(atFault func(...string) bool) (faults []problem.Fault) {
	texts := map[string]string{}
	for _, c := range subscriptions.Criteria {
		text := c.Text(&l.filter)
		texts[c.Name] = text
		if !strings.Contains(l.kept, "&"+c.Name+"=") {
			continue
		}
		switch from := texts[c.From]; {
		case atFault(c.Name):
		case !l.byPeriodEnd && c.Sort == subscriptions.OnlySorted && !atFault(sortParameter):
			faults = append(faults, fault(c.Name, textNeedsSort))
		case l.byPeriodEnd && c.Sort == subscriptions.NotSorted:
			faults = append(faults, fault(c.Name, textNotSorted, sortable()))
		case text != "" && text <= from && !atFault(c.From):
			faults = append(faults, fault(c.From, textEndsFirst, c.Name, c.From), fault(c.Name, textEndsFirst, c.Name, c.From))
		}
	}
	return faults
}

// sortable returns the filters that combine with the sort.
func sortable() (all names) {
	for _, c := range subscriptions.Criteria {
		if c.Sort != subscriptions.NotSorted {
			all = append(all, c.Name)
		}
	}
	return all
}

const sortParameter, sortPeriodEnd = "sort", "periodEnd" // the only value

func parseSort(s string) (byPeriodEnd, ok bool) { return s == sortPeriodEnd, s == sortPeriodEnd }

func parseLink(s string) (string, bool) { return s, len(s) <= maxLink }

// parsePage reads a page's number. All that are too large for a link are the same: too far.
func parsePage(s string) (int, bool) {
	n, ok := subscriptions.WholeNumber(maxLinkedPage)(s)
	if !ok && strings.Trim(s, "0123456789") == "" && s[0] != '0' {
		return maxLinkedPage + 1, true
	}
	return n, ok
}

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

// number returns a parameter that is a number from 1 to limit.
func number[T any](name string, field func(*T) *int, limit int) parameter[T] {
	return parameter[T]{name, into(field, subscriptions.WholeNumber(limit)), subscriptions.WantsNumber(name, limit)}
}

// refusal returns the sentence for an invalid value. One that would be valid with a + for each space may have been
// sent with it: in a query, a + means a space.
func (p *parameter[T]) refusal(into *T, value string) locale.Sentence {
	if plus := strings.ReplaceAll(value, " ", "+"); plus != value && p.read(into, plus) {
		return textPlus.With(p.name)
	}
	return p.invalid
}

// names are parameters in a sentence.
type names []string

func (n names) In(l locale.Locale) string {
	comma, and := ", ", " and "
	if l == locale.Ar {
		comma, and = " و", " و"
	}
	last := len(n) - 1
	return strings.Join(n[:last], comma) + and + n[last]
}

// wholeQuery stands for the query itself where no parameter can be named.
const wholeQuery = "query"

// readQuery reads a raw query. It returns a fault for each parameter that is repeated, empty,
// invalid or not among the accepted ones, so that none is silently ignored. The text unknown names those, if there are any.
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
			faults = append(faults, problem.Fault{Member: p.name, Sentence: p.refusal(into, given[0])})
		}
	}
	const maxNames, maxBytes = 10, 64 // bound how much of a query the response repeats
	var known []any
	if len(accepted) > 0 {
		var all names
		for _, p := range accepted {
			all = append(all, p.name)
		}
		known = append(known, all)
	}
	others := slices.Sorted(maps.Keys(values))
	for _, name := range others[:min(len(others), maxNames)] {
		name = strings.ToValidUTF8(name[:min(len(name), maxBytes)], "\uFFFD")
		faults = append(faults, fault(cmp.Or(name, wholeQuery), unknown, known...))
	}
	return faults
}

func fault(parameter string, text locale.Text, args ...any) problem.Fault {
	return problem.Fault{Member: parameter, Sentence: text.With(args...)}
}

// refused returns the error for faults of a query, nil if there are none.
func refused(faults []problem.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &problem.Error{Code: problem.InvalidParameter, Faults: faults}
}
