package subscriptionshttp

import (
	"errors"
	"math"
	"strings"
	"testing"

	"commerce/auth/problem"
	"commerce/deploy/assert"
	"commerce/subscriptions"
)

// FuzzParseQuery fuzzes the queries and the links of lists, and the queries of changes.
func FuzzParseQuery(f *testing.F) {
	sealed := listing{perPage: 15}
	for _, link := range []string{
		place{page: 2, id: 7}.seal(linkKey, 1, &sealed), place{page: maxLinkedPage, id: math.MaxInt64, newer: true}.seal(linkKey, 1, &sealed),
		"AQIHAAAAAAAAAAAAAAAAAAAAAA",
	} {
		f.Add("cursor="+link, link, "", int64(1))
	}
	for _, query := range []string{
		"page=2&per_page=20&customerEmail=sara%40example.com", "customerPhone=%2B966+50&customerCountryCode=966&cursor=AA",
		"page=1;per_page=2&%zz", "status=active,past_due&externalCustomerId=crm-7", "status=active%2Cactive&externalCustomerId=%00",
	} {
		f.Add(query, "", "", int64(1))
	}
	f.Add("", "", "", int64(1))
	cursor := subscriptions.Cursor{
		Database: subscriptions.Database{System: 7, OID: 5}, Timeline: 11, Log: 900, Since: 50, Change: subscriptions.Change{Transaction: 100, ID: 3},
	}
	f.Add("after="+cursor.Text(1)+"&limit=7", "", "text/html, text/csv;q=0.3", int64(1))
	f.Add("after="+(subscriptions.Cursor{}).Text(2), "", "application/x-ndjson", int64(2))
	f.Add("limit=0&limit=1&%zz", "", ";q=", int64(-1))
	f.Fuzz(func(t *testing.T, query, link, accept string, store int64) {
		checkLink(t, link, &sealed)
		checkListing(t, query)
		checkChanges(t, query, accept, store)
	})
}

func checkLink(t *testing.T, link string, sealed *listing) {
	t.Helper()
	asked := listing{perPage: 15, link: link}
	p, ok := openLink(keys, 1, &asked)
	assert.That(t, !ok || p.seal(linkKey, 1, sealed) == link, "%q opens as %+v and was never sealed", link, p)
}

func checkListing(t *testing.T, query string) {
	t.Helper()
	l, err := parseListing(query)
	if err != nil {
		refused, ok := errors.AsType[*problem.Error](err)
		assert.That(t, ok && refused.Code == problem.InvalidParameter && len(refused.Members("en")) > 0, "%v", err)
		return
	}
	assert.That(t, l.page >= 0 && (l.link != "" || l.page <= maxPage && (l.page-1)*l.perPage <= maxSkip) &&
		l.perPage >= 1 && l.perPage <= maxPerPage, "%q: page %d of %d", query, l.page, l.perPage)
	again, err := parseListing(strings.TrimPrefix(l.kept, "&"))
	assert.That(t, err == nil && again.filter == l.filter && again.perPage == l.perPage,
		"%q: keeps %q, which is %+v (%v)", query, l.kept, again, err)
	p, ok := openLink(keys, 1, &l)
	assert.That(t, !ok || p.seal(linkKey, 1, &l) == l.link, "%q opens as %+v and was never sealed", query, p)
}

func checkChanges(t *testing.T, query, accept string, store int64) {
	t.Helper()
	r, err := parseChanges(query, accept, store)
	var refused *problem.Error
	switch {
	case errors.As(err, &refused):
		assert.That(t, refused.Code == problem.InvalidParameter && len(refused.Members("en")) != 0, "%q: %v", query, err)
	case err != nil:
		t.Errorf("%q: %v", query, err)
	case r.limit < 1 || r.limit > subscriptions.MaxChanges:
		t.Errorf("%q: limit %d", query, r.limit)
	default:
		again, ok := subscriptions.ParseCursor(r.after.Text(store), store)
		assert.That(t, ok && again == r.after, "%q: %+v", query, r.after)
	}
}
