package subscriptionshttp

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/auth/problem"
	"commerce/deploy/assert"
	"commerce/subscriptions"
)

var (
	linkKey    = []byte("a key of the tests, 32 bytes long")
	anotherKey = []byte("the key that came after, 32 bytes")
	keys       = [][]byte{anotherKey, linkKey}
)

// drawListing gives each filter one of two values, or none.
func drawListing(t *rapid.T) listing {
	l := listing{perPage: rapid.IntRange(1, maxPerPage).Draw(t, "per_page"), byPeriodEnd: rapid.Bool().Draw(t, "by period end")}
	for i := range reflect.TypeFor[subscriptions.Filter]().NumField() {
		for range rapid.IntRange(0, 2).Draw(t, reflect.TypeFor[subscriptions.Filter]().Field(i).Name) {
			l.changeFilter(i)
		}
	}
	return l
}

// changeFilter gives a member of the filter another value.
func (l *listing) changeFilter(i int) {
	switch v := reflect.ValueOf(&l.filter).Elem().Field(i); v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "1")
	case reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8: // a set
		v.SetUint((v.Uint() + 1) & uint64(subscriptions.EveryStatus))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Struct:
		v.Set(reflect.ValueOf(v.Interface().(time.Time).AddDate(0, 0, 1)))
	default:
		panic("no other value of a " + v.Type().String())
	}
}

func drawPlace(t *rapid.T, byPeriodEnd bool) place {
	end := int64(0)
	if byPeriodEnd {
		end = rapid.Int64Range(time.Time{}.UnixMicro(), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC).UnixMicro()).Draw(t, "end")
	}
	return place{
		end:  end,
		page: rapid.IntRange(1, maxLinkedPage).Draw(t, "page"),
		id:   rapid.Int64Range(1, math.MaxInt64).Draw(t, "id"),
		back: rapid.Bool().Draw(t, "newer"),
	}
}

func TestLink_OpensWhatItWasSealedFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawListing(t)
		p := drawPlace(t, l.byPeriodEnd)
		store := rapid.Int64Range(1, math.MaxInt64).Draw(t, "store")
		l.link = p.seal(linkKey, store, &l)
		if len(l.link) > maxLink {
			t.Fatalf("%d characters, more than maxLink", len(l.link))
		}
		for _, change := range []func(){
			func() {}, func() { l.page = p.page }, func() { l.filter.Email = strings.ToUpper(l.filter.Email) },
		} {
			change()
			if got, ok := openLink(keys, store, &l); !ok || got != p {
				t.Fatalf("%+v: got %+v, %v; want %+v", l, got, ok, p)
			}
		}
	})
}

// A new member of Filter is in no link before it has a criterion.
func TestLink_IsBoundToEveryFilter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawListing(t)
		link := drawPlace(t, l.byPeriodEnd).seal(linkKey, 1, &l)
		for i := range reflect.TypeFor[subscriptions.Filter]().NumField() {
			changed := l
			changed.link = link
			changed.changeFilter(i)
			if _, ok := openLink(keys, 1, &changed); ok {
				t.Fatalf("the link of %+v opens with %+v", l.filter, changed.filter)
			}
		}
	})
}

func TestLink_IsBoundToItsWholeListing(t *testing.T) {
	t.Parallel()
	l := listing{perPage: 15, byPeriodEnd: true, filter: subscriptions.Filter{Phone: "5", CallingCode: "966"}}
	l.link = place{page: 2, end: 1, id: 7}.seal(linkKey, 1, &l)
	for name, change := range map[string]func(l *listing, store *int64, key *[]byte){
		"nothing":       func(*listing, *int64, *[]byte) {},
		"store":         func(_ *listing, store *int64, _ *[]byte) { *store = 2 },
		"key":           func(_ *listing, _ *int64, key *[]byte) { *key = []byte("another") },
		"page size":     func(l *listing, _ *int64, _ *[]byte) { l.perPage = 16 },
		"page":          func(l *listing, _ *int64, _ *[]byte) { l.page = 3 },
		"moved between": func(l *listing, _ *int64, _ *[]byte) { l.filter.Phone, l.filter.CallingCode = "", "5966" },
		"no sort":       func(l *listing, _ *int64, _ *[]byte) { l.byPeriodEnd = false },
		"cut":           func(l *listing, _ *int64, _ *[]byte) { l.link = l.link[:len(l.link)-1] },
		"longer":        func(l *listing, _ *int64, _ *[]byte) { l.link += "A" },
		"padded":        func(l *listing, _ *int64, _ *[]byte) { l.link += "=" },
		"line break":    func(l *listing, _ *int64, _ *[]byte) { l.link += "\n" },
		"empty":         func(l *listing, _ *int64, _ *[]byte) { l.link = "" },
	} {
		changed, store, key := l, int64(1), linkKey
		change(&changed, &store, &key)
		_, ok := openLink([][]byte{key}, store, &changed)
		assert.That(t, ok == (name == "nothing"), "%s changed: opens %v", name, ok)
	}
	for i := range l.link {
		for _, c := range []byte("A_9z") {
			changed := l
			changed.link = l.link[:i] + string(c) + l.link[i+1:]
			_, ok := openLink(keys, 1, &changed)
			assert.That(t, !ok || changed.link == l.link, "opens with %q at %d", c, i)
		}
	}
}

// Links lead to the end of the list, although page numbers are limited.
func TestLinks_ContinuePastTheHighestPageNumber(t *testing.T) {
	t.Parallel()
	var all []subscriptions.Subscription
	for id := range int64(20) {
		all = append(all, subscriptions.Subscription{ID: 1 + id, StoreID: 1})
	}
	source := subscriptions.NewMemory(nil, all)
	keys := assert.Must(source.LinkKeys(t.Context(), false))(t)
	start := listing{perPage: 2, kept: "&per_page=2"}
	walk := func(query string, link func(page) string) (numbers []int, ids []int64) {
		for query != "" {
			asked, err := parseListing(strings.TrimPrefix(query, "?"))
			assert.Require(t, err == nil, "%s: %v", query, err)
			p, q, ok := asked.ask(keys, 1)
			assert.Require(t, ok, "%s is refused", query)
			rows, err := source.List(t.Context(), 1, q)
			assert.NoError(t, err)
			p.fill(rows, keys[0], 1)
			numbers = append(numbers, p.number)
			for _, s := range p.rows {
				ids = append(ids, s.ID)
			}
			query = link(p)
		}
		return numbers, ids
	}
	const before = maxPage - 2
	forth := start.linked(place{page: before, id: 11}, keys[0], 1)
	numbers, ids := walk(forth, func(p page) string { return p.next })
	assert.Equal(t, ids, []int64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, "forward")
	assert.Equal(t, numbers[4], maxPage+2, "page number, forward")
	back := start.linked(place{page: maxPage + 2, id: 2, back: true}, keys[0], 1)
	numbers, ids = walk(back, func(p page) string { return p.previous })
	assert.That(t, len(ids) == 18 && ids[0] == 4 && numbers[8] == maxPage-6,
		"back: %v on pages %v, want 18 from 4 on down to page %d", ids, numbers, maxPage-6)
}

// FuzzParseQuery fuzzes the queries and the links of lists.
func FuzzParseQuery(f *testing.F) {
	sealed := listing{perPage: 15}
	for _, link := range []string{
		place{page: 2, id: 7}.seal(linkKey, 1, &sealed), place{page: maxLinkedPage, id: math.MaxInt64, back: true}.seal(linkKey, 1, &sealed),
		"AQIHAAAAAAAAAAAAAAAAAAAAAA",
	} {
		f.Add("cursor="+link, link)
	}
	for _, query := range []string{
		"page=2&per_page=20&customerEmail=sara%40example.com", "customerPhone=%2B966+50&customerCountryCode=966&cursor=AA",
		"page=1;per_page=2&%zz", "status=active,past_due&externalCustomerId=crm-7", "status=active%2Cactive&externalCustomerId=%00",
		"sort=periodEnd&periodEndFrom=2025-11-20&periodEndTo=2025-11-20&status=past_due&cursor=AQIHAAAAAAAAAAAAAAAAAAAAAA", "orderId=9223372036854775807&periodEndTo=9999-12-31",
	} {
		f.Add(query, "")
	}
	f.Add("", "")
	f.Fuzz(func(t *testing.T, query, link string) {
		checkLink(t, link, &sealed)
		checkListing(t, query)
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
	assert.That(t, err == nil && again.filter == l.filter && again.byPeriodEnd == l.byPeriodEnd && again.perPage == l.perPage,
		"%q: keeps %q, which is %+v (%v)", query, l.kept, again, err)
	p, ok := openLink(keys, 1, &l)
	assert.That(t, !ok || p.seal(linkKey, 1, &l) == l.link, "%q opens as %+v and was never sealed", query, p)
}
