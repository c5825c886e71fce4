package subscriptions

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"commerce/auth/problem"
)

var (
	linkKey    = []byte("a key of the tests, 32 bytes long")
	anotherKey = []byte("the key that came after, 32 bytes")
	keys       = [][]byte{anotherKey, linkKey}
)

func drawListing(t *rapid.T) listing {
	return listing{
		perPage: rapid.IntRange(1, maxPerPage).Draw(t, "per_page"),
		filter: Filter{
			Email:       rapid.SampledFrom([]string{"", "a@b", "a@b.example"}).Draw(t, "email"),
			Phone:       Phone(rapid.SampledFrom([]string{"", "5", "50"}).Draw(t, "phone")),
			CallingCode: rapid.SampledFrom([]string{"", "9", "966"}).Draw(t, "code"),
		},
	}
}

func drawPlace(t *rapid.T) place {
	return place{
		page:  rapid.IntRange(1, maxLinkedPage).Draw(t, "page"),
		id:    rapid.Int64Range(1, math.MaxInt64).Draw(t, "id"),
		newer: rapid.Bool().Draw(t, "newer"),
	}
}

func TestLink_OpensWhatItWasSealedFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l, p := drawListing(t), drawPlace(t)
		store := rapid.Int64Range(1, math.MaxInt64).Draw(t, "store")
		l.link = p.seal(linkKey, store, &l)
		if len(l.link) > maxLink {
			t.Fatalf("%d characters, more than maxLink", len(l.link))
		}
		if got, ok := openLink(keys, store, &l); !ok || got != p {
			t.Fatalf("got %+v, %v; want %+v", got, ok, p)
		}
		l.page = p.page
		if _, ok := openLink(keys, store, &l); !ok {
			t.Fatal("refused with its own page number")
		}
		l.filter.Email = strings.ToUpper(l.filter.Email)
		if _, ok := openLink(keys, store, &l); !ok {
			t.Fatal("refused for the same e-mail address in capitals")
		}
	})
}

func TestLink_IsBoundToItsWholeListing(t *testing.T) {
	t.Parallel()
	l := listing{perPage: 15, filter: Filter{Email: "a@b", Phone: "5", CallingCode: "966"}}
	l.link = place{page: 2, id: 7}.seal(linkKey, 1, &l)
	for name, change := range map[string]func(l *listing, store *int64, key *[]byte){
		"nothing":       func(*listing, *int64, *[]byte) {},
		"store":         func(_ *listing, store *int64, _ *[]byte) { *store = 2 },
		"key":           func(_ *listing, _ *int64, key *[]byte) { *key = []byte("another") },
		"page size":     func(l *listing, _ *int64, _ *[]byte) { l.perPage = 16 },
		"page":          func(l *listing, _ *int64, _ *[]byte) { l.page = 3 },
		"e-mail":        func(l *listing, _ *int64, _ *[]byte) { l.filter.Email = "a@c" },
		"no e-mail":     func(l *listing, _ *int64, _ *[]byte) { l.filter.Email = "" },
		"phone":         func(l *listing, _ *int64, _ *[]byte) { l.filter.Phone = "6" },
		"calling code":  func(l *listing, _ *int64, _ *[]byte) { l.filter.CallingCode = "965" },
		"moved between": func(l *listing, _ *int64, _ *[]byte) { l.filter.Phone, l.filter.CallingCode = "", "5966" },
		"cut":           func(l *listing, _ *int64, _ *[]byte) { l.link = l.link[:len(l.link)-1] },
		"longer":        func(l *listing, _ *int64, _ *[]byte) { l.link += "A" },
		"padded":        func(l *listing, _ *int64, _ *[]byte) { l.link += "=" },
		"line break":    func(l *listing, _ *int64, _ *[]byte) { l.link += "\n" },
		"empty":         func(l *listing, _ *int64, _ *[]byte) { l.link = "" },
	} {
		changed, store, key := l, int64(1), linkKey
		change(&changed, &store, &key)
		if _, ok := openLink([][]byte{key}, store, &changed); ok != (name == "nothing") {
			t.Errorf("%s changed: opens %v", name, ok)
		}
	}
	for i := range l.link {
		for _, c := range []byte("A_9z") {
			changed := l
			changed.link = l.link[:i] + string(c) + l.link[i+1:]
			if _, ok := openLink(keys, 1, &changed); ok && changed.link != l.link {
				t.Errorf("opens with %q at %d", c, i)
			}
		}
	}
}

func FuzzOpenLink(f *testing.F) {
	l := listing{perPage: 15}
	f.Add(place{page: 2, id: 7}.seal(linkKey, 1, &l))
	f.Add(place{page: maxLinkedPage, id: math.MaxInt64, newer: true}.seal(linkKey, 1, &l))
	f.Add("AQIHAAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, link string) {
		asked := listing{perPage: 15, link: link}
		p, ok := openLink(keys, 1, &asked)
		if ok && p.seal(linkKey, 1, &l) != link {
			t.Errorf("%q opens as %+v and was never sealed", link, p)
		}
	})
}

func FuzzParseListing(f *testing.F) {
	f.Add("page=2&per_page=20&customerEmail=sara%40example.com")
	f.Add("customerPhone=%2B966+50&customerCountryCode=966&cursor=AA")
	f.Add("page=1;per_page=2&%zz")
	f.Fuzz(func(t *testing.T, query string) {
		l, err := parseListing(query)
		if err != nil {
			if refused, ok := err.(*problem.Error); !ok || refused.Code != problem.InvalidParameter || len(refused.Members("en")) == 0 {
				t.Errorf("%q: %v names no parameter", query, err)
			}
			return
		}
		if l.page < 0 || l.link == "" && (l.page > maxPage || (l.page-1)*l.perPage > maxSkip) || l.perPage < 1 || l.perPage > maxPerPage {
			t.Errorf("%q: page %d of %d", query, l.page, l.perPage)
		}
		again, err := parseListing(strings.TrimPrefix(l.kept, "&"))
		if err != nil || again.filter != l.filter || again.perPage != l.perPage {
			t.Errorf("%q: keeps %q, which is %+v (%v)", query, l.kept, again, err)
		}
	})
}
