package subscriptionshttp

import (
	"net/url"
	"slices"
	"strings"

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
var listParameters = slices.Concat([]Parameter[listing]{
	Parsed("page", func(l *listing) *int { return &l.page }, parsePage, subscriptions.WantsNumber("page", maxPage)),
	kept(Number("per_page", func(l *listing) *int { return &l.perPage }, maxPerPage)),
}, filterParameters(), []Parameter[listing]{
	kept(Parsed(sortParameter, func(l *listing) *bool { return &l.byPeriodEnd }, parseSort, textSort.With())),
	Parsed(linkParameter, func(l *listing) *string { return &l.link }, parseLink, textLink.With()),
})

func filterParameters() []Parameter[listing] {
	all := make([]Parameter[listing], len(subscriptions.Criteria))
	for i, c := range subscriptions.Criteria {
		read := func(l *listing, value string) bool { return c.Read(&l.filter, value) }
		all[i] = kept(Parameter[listing]{c.Name, read, c.Invalid})
	}
	return all
}

// kept makes every URL of the answer repeat a parameter as it was given.
func kept(p Parameter[listing]) Parameter[listing] {
	read := p.Read
	p.Read = func(l *listing, value string) bool {
		l.kept += "&" + p.Name + "=" + url.QueryEscape(value)
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
	faults := ReadQuery(query, &l, listParameters, textEmpty, textUnknown)
	atFault := func(members ...string) bool {
		return slices.ContainsFunc(faults, func(f problem.Fault) bool { return slices.Contains(members, f.Member) })
	}
	linked := l.link != "" && l.page <= maxLinkedPage // and finds its rows by an index
	if !linked && (l.page > maxPage || (l.page-1)*l.perPage > maxSkip) && !atFault("page", "per_page") {
		faults = append(faults, Fault("page", textTooFar))
	}
	return l, Refused(append(faults, l.conflicts(atFault)...))
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
			faults = append(faults, Fault(c.Name, textNeedsSort))
		case l.byPeriodEnd && c.Sort == subscriptions.NotSorted:
			faults = append(faults, Fault(c.Name, textNotSorted, sortable()))
		case text != "" && text <= from && !atFault(c.From):
			faults = append(faults, Fault(c.From, textEndsFirst, c.Name, c.From), Fault(c.Name, textEndsFirst, c.Name, c.From))
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
