package server_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/cmd/internal/server"
)

func TestRequestID_IsTheCallersIfValid(t *testing.T) {
	t.Parallel()
	c := openShop(t, embeddedRedis(t)).guest(t)
	for _, id := range []string{"a", "checkout-7f3a", "A.b_c-9", strings.Repeat("x", 64)} {
		for _, path := range []string{"/cart", "/nothing/here"} {
			equal(t, c.send("GET", path, "", "X-Request-Id", id).Header.Get("X-Request-Id"), id, "request ID")
		}
	}
	seen := map[string]bool{}
	for _, id := range []string{"", "a b", "a;b", "é", "a\tb", `"a"`, "{}", strings.Repeat("x", 65), strings.Repeat("x", 9<<10)} {
		a := c.send("PUT", "/cart", "", "X-Request-Id", id)
		got := a.Header.Get("X-Request-Id")
		assert(t, got != id && !seen[got] && regexp.MustCompile(`^[A-Za-z0-9._-]{16,64}$`).MatchString(got), "%q became %q", id, got)
		seen[got] = true
		var decoded struct {
			ID string `json:"request_id"`
		}
		assert(t, json.Unmarshal(a.Raw, &decoded) == nil && decoded.ID == got, "the body says %q, the header %q", decoded.ID, got)
	}
}

func TestETag_ChangesWithTheShownCart(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		tag := func(headers ...string) string { return c.ok("GET", "/cart", "", headers...).Header.Get("ETag") }
		version := func(tag string) string { before, _, _ := strings.Cut(tag, "-"); return before }
		if a, b := s.guest(t).ok("GET", "/cart", ""), s.guest(t).ok("GET", "/cart", ""); a.Header.Get("ETag") == "" || b.Header.Get("ETag") == "" {
			t.Error("a new cart has no ETag")
		}
		added := c.add(`{"product_id":1}`).Header.Get("ETag")
		first := tag()
		assert(t, added == first && first == s.with(t, c).ok("GET", "/cart", "").Header.Get("ETag"), "one cart, two tags: %s and %s", added, first)
		before := c.cart().ExpiresAt
		s.Clock.Forward(time.Hour)
		after := c.cart().ExpiresAt
		assert(t, *before != *after && tag() == first, "the tag changes with expires_at")
		arabic := tag("Accept-Language", "ar")
		s.Catalog.Put(s.ID, &cart.Product{ID: 1, Name: locale.Named("Game credit"), Active: true, MinQuantity: 1, Price: 9900})
		dearer := tag()
		c.add(`{"product_id":2}`)
		grown := tag()
		assert(t, first != arabic && first != dearer && dearer != grown && arabic != dearer, "%s, in Arabic %s, dearer %s, grown %s", first, arabic, dearer, grown)
		assert(t, version(first) == version(arabic) && version(first) == version(dearer) && version(dearer) != version(grown), "%s, in Arabic %s, dearer %s, grown %s", first, arabic, dearer, grown)
		other := s.guest(t)
		other.add(`{"product_id":1}`)
		same := other.add(`{"product_id":2}`).Header.Get("ETag")
		assert(t, version(same) != version(grown), "two carts at one version: %s", same)
	})
}

func TestIfNoneMatch_SavesTheBody(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	c := s.guest(t)
	c.add(`{"product_id":1}`)
	for _, path := range []string{"/cart", "/cart/summary"} {
		whole := c.ok("GET", path, "")
		tag := whole.Header.Get("ETag")
		for _, held := range [][]string{
			{tag},
			{"W/" + tag},
			{"*"},
			{`"x.1-y", ` + tag},
			{tag + `,"x.1-y"`},
			{` W/"a" ,, W/` + tag + " ,"},
			{`"a,b", ` + tag},
			{`"x.1-y"`, tag},
		} {
			var headers []string
			for _, value := range held {
				headers = append(headers, "If-None-Match", value)
			}
			for _, method := range []string{"GET", "HEAD"} {
				a := c.send(method, path, "", headers...)
				assert(t, a.Status == 304 && len(a.Raw) == 0, "%s %s %q: got %d with %d bytes", method, path, held, a.Status, len(a.Raw))
				for _, header := range []string{"ETag", "Cache-Control", "Vary"} {
					if got, want := a.Header.Get(header), whole.Header.Get(header); got != want {
						t.Errorf("%s is %q with 304 and %q without", header, got, want)
					}
				}
			}
		}
		for _, held := range []string{`"x.1-y"`, `W/"x.1-y"`, strings.Replace(tag, "-", "", 1), tag[:len(tag)-2] + `"`} {
			c.ok("GET", path, "", "If-None-Match", held)
		}
		c.ok("GET", path, "", "If-None-Match", tag, "Accept-Language", "ar")
		for _, broken := range brokenTags(tag) {
			a := c.refused(400, "invalid_parameter", "GET", path, "", "If-None-Match", broken)
			assert(t, len(a.Body.Errors["If-None-Match"]) != 0, "%s: names %v", broken, a.Body.Errors)
		}
	}
	tag := c.ok("GET", "/cart", "").Header.Get("ETag")
	c.ok("GET", "/cart/count", "", "If-None-Match", tag)
	c.ok("GET", "/cart/validate", "", "If-None-Match", tag)
	c.add(`{"product_id":1}`)
	c.ok("GET", "/cart", "", "If-None-Match", tag)
}

// brokenTags are not valid lists of entity tags.
func brokenTags(tag string) []string {
	bare := strings.Trim(tag, `"`)
	return []string{
		"", ",", bare, `"` + bare, bare + `"`, tag + tag, tag + " " + tag, tag + ";" + tag, `* , ` + tag, tag + ", *",
		"w/" + tag, "W/" + bare, "W/*", "W/ " + tag, "'" + bare + "'", `"a b"`, "null",
	}
}

func TestIfNoneMatch_NeverHidesAMerge(t *testing.T) {
	onRealRedis(t, func(t *testing.T, s *shop) {
		guest := s.guest(t)
		guest.add(`{"product_id":1}`)
		c := s.customer(t, "1001")
		c.Token = guest.Token
		if a := c.ok("GET", "/cart", "", "If-None-Match", "*"); a.Body.Data.Merge == nil {
			t.Errorf("no report: %s", a.Raw)
		}
		s.pass(t, time.Minute+time.Second)
		equal(t, c.send("GET", "/cart", "", "If-None-Match", "*").Status, 304, "status a minute after the merge")
	})
}

func TestIfMatch_RefusesAChangeToAnOldVersion(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		stale := c.add(`{"product_id":1}`).Header.Get("ETag")
		c.add(`{"product_id":2}`)
		calls := [][3]string{
			{"POST", "/cart/add", `{"product_id":1}`},
			{"PATCH", "/cart/items/1", `{"quantity":5}`},
			{"DELETE", "/cart/items/1"},
			{"DELETE", "/cart/items/99"},
			{"DELETE", "/cart/clear"},
		}
		strange := s.guest(t)
		strange.add(`{"product_id":1}`)
		elsewhere := strange.add(`{"product_id":1}`).Header.Get("ETag")
		for _, call := range calls {
			for _, tag := range []string{stale, "W/" + stale, stale + `, "x.2-y"`, elsewhere, `"x"`, `""`} {
				a := c.refused(412, "version_mismatch", call[0], call[1], call[2], "If-Match", tag)
				assert(t, a.Body.Data.lines() == "1×1 2×1" && a.Body.Data.Version == 2 && a.Header.Get("ETag") != "", "%v: does not show the cart: %s", call, a.Raw)
				assert(t, len(a.Body.Errors["If-Match"]) != 0, "%v: names %v", call, a.Body.Errors)
			}
			for _, broken := range brokenTags(stale) {
				c.refused(400, "invalid_parameter", call[0], call[1], call[2], "If-Match", broken)
			}
		}
		c.wantLines("1×1 2×1")

		for i, form := range []string{"%", "W/%", `"x.1-y", %`, "%, %", "*"} {
			tag := c.ok("GET", "/cart", "", "Accept-Language", "ar").Header.Get("ETag")
			s.Catalog.Put(s.ID, &cart.Product{ID: 1, Name: locale.Named("P"), Active: true, MinQuantity: 1, Price: money.Amount(100 + i)})
			c.add(`{"product_id":1}`, "If-Match", strings.ReplaceAll(form, "%", tag))
		}
		c.wantLines("1×6 2×1")
	})
}

func TestIfMatch_WorksForACartThatWasNeverUsed(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	c := s.guest(t)
	unused := c.ok("GET", "/cart", "").Header.Get("ETag")
	c.add(`{"product_id":1}`, "If-Match", unused)
	a := c.refused(412, "version_mismatch", "POST", "/cart/add", `{"product_id":1}`, "If-Match", unused)
	assert(t, a.Body.Data.lines() == "1×1", "shows %s", a.Raw)
	fresh := s.guest(t).refused(412, "version_mismatch", "POST", "/cart/add", `{"product_id":1}`, "If-Match", `"x.3-y"`)
	assert(t, fresh.Body.Data.CartToken == nil && fresh.Header.Get("X-Cart-Token") == "", "a refusal issued a token: %s", fresh.Raw)
}

func TestHEAD_RespondsLikeGETWithoutABody(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	c := s.guest(t)
	for range 3 {
		c.add(`{"product_id":4,"subscription_plan":41}`)
		c.add(`{"product_id":4,"subscription_plan":42}`)
		c.add(`{"product_id":1}`)
	}
	for _, path := range []string{"/cart", "/cart/count", "/cart/validate", "/cart/summary", "/openapi.yaml", "/openapi.json", "/nothing"} {
		for _, encoding := range []string{"identity", "gzip"} {
			diff := "not compared"
			for try := 0; diff != "" && try < 5; try++ { // the timestamp in the body may change the compressed length
				diff = cmp.Diff(withoutBody(t, c, "GET", path, encoding), withoutBody(t, c, "HEAD", path, encoding))
			}
			assert(t, diff == "", "HEAD %s, %s, differs from GET (-GET +HEAD):\n%s", path, encoding, diff)
		}
	}
	if a := c.send("HEAD", "/cart", "", "Authorization", "Bearer x"); a.Status != 401 || len(a.Raw) != 0 {
		t.Errorf("HEAD without credentials: %d", a.Status)
	}
	assert(t, len(s.guest(t).send("HEAD", "/cart", "").Header.Get("X-Cart-Token")) >= 22, "HEAD issued no token")
}

// withoutBody makes a call and returns its status and its headers, except those that differ
// between calls.
func withoutBody(t *testing.T, c *shopper, method, path, encoding string) http.Header {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), method, c.shop.URL+path, nil))(t)
	r.Header.Set("X-Public-Key", c.shop.Key)
	r.Header.Set("X-Cart-Token", c.Token)
	r.Header.Set("X-Request-Id", "same")
	r.Header.Set("Accept-Encoding", encoding)
	response := must(http.DefaultTransport.RoundTrip(r))(t)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	assert(t, err == nil && (method != "HEAD" || len(body) <= 0), "%s %s: %d bytes, %v", method, path, len(body), err)
	header := response.Header
	header.Set("status", response.Status)
	header.Del("Date")
	return header
}

func TestCaching_IsPrivate(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	c := s.guest(t)
	whole := []answer{
		c.add(`{"product_id":1}`),
		c.ok("GET", "/cart", ""),
		c.ok("GET", "/cart/summary", ""),
		c.ok("PATCH", "/cart/items/1", `{"quantity":2}`),
		c.ok("DELETE", "/cart/items/1", ""),
		c.ok("DELETE", "/cart/clear", ""),
	}
	for i, a := range whole {
		equal(t, a.Header.Get("Cache-Control"), "private, no-cache", "%d: Cache-Control", i)
		assert(t, a.Header.Get("ETag") != "", "%d: no ETag", i)
		vary := commaList(a.Header, "Vary")
		for _, header := range []string{"Authorization", "X-Cart-Token", "X-Public-Key", "Accept-Language", "Origin"} {
			assert(t, slices.Contains(vary, header), "%d: Vary is %q", i, vary)
		}
	}
	for _, a := range []answer{
		c.ok("GET", "/cart/count", ""),
		c.send("GET", "/cart/validate", ""),
		c.send("POST", "/cart/add", `{}`),
		c.send("GET", "/cart", "", "Authorization", "Bearer x"),
		c.send("GET", "/nothing", ""),
	} {
		got := a.Header.Get("Cache-Control")
		assert(t, got == "private, no-cache" || got == "no-store", "Cache-Control of %d is %q", a.Status, got)
	}
}

// commaList returns the members of a header, from all its lines.
func commaList(h http.Header, name string) []string {
	list := strings.Split(strings.Join(h.Values(name), ","), ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

var allowedHeaders = []string{
	"Accept", "Accept-Language", "Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match",
	"X-Cart-Token", "X-Client-Auth", "X-Public-Key", "X-Request-Id", "X-Signature", "X-Signature-Version", "X-Timestamp",
}

func TestCORS_AllowsListedOrigins(t *testing.T) {
	t.Parallel()
	const listed = "https://shop.example.com"
	s := openShop(t, embeddedRedis(t))
	all := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.CORSOrigins = []string{"*"} })
	for _, tt := range []struct {
		shop            *shop
		origin, allowed string
	}{{s, listed, listed}, {all, "https://anywhere.example.net", "*"}, {all, "null", "*"}} {
		c := tt.shop.guest(t)
		for path, method := range map[string]string{
			"/cart": "GET", "/cart/add": "POST", "/cart/items/1": "PATCH", "/cart/clear": "DELETE", "/cart/count": "HEAD",
		} {
			a := c.send("OPTIONS", path, "", "Origin", tt.origin, "Access-Control-Request-Method", method,
				"Access-Control-Request-Headers", strings.ToLower(strings.Join(allowedHeaders, ",")),
				"X-Public-Key", "", "X-Cart-Token", "")
			assert(t, (a.Status == 204 || a.Status == 200) && a.Header.Get("Access-Control-Allow-Origin") == tt.allowed, "preflight of %s: %d %v", path, a.Status, a.Header)
			assert(t, slices.Contains(commaList(a.Header, "Access-Control-Allow-Methods"), method), "methods: %q", a.Header.Values("Access-Control-Allow-Methods"))
			got := commaList(a.Header, "Access-Control-Allow-Headers")
			for _, header := range allowedHeaders {
				assert(t, slices.ContainsFunc(got, func(h string) bool { return strings.EqualFold(h, header) }), "%s is not allowed: %q", header, got)
			}
			assert(t, a.Header.Get("Access-Control-Allow-Credentials") == "", "credentials are allowed")
		}
		added := c.add(`{"product_id":1}`, "Origin", tt.origin)
		for _, a := range []answer{
			added,
			c.ok("GET", "/cart", "", "Origin", tt.origin),
			c.send("GET", "/cart", "", "Origin", tt.origin, "If-None-Match", "*"),
			c.send("GET", "/cart", "", "Origin", tt.origin, "Authorization", "Bearer x"),
			c.send("POST", "/cart/add", "{", "Origin", tt.origin),
			c.send("GET", "/nothing", "", "Origin", tt.origin),
			c.send("PUT", "/cart", "", "Origin", tt.origin),
		} {
			equal(t, a.Header.Get("Access-Control-Allow-Origin"), tt.allowed, "%d: allowed origin", a.Status)
			got := commaList(a.Header, "Access-Control-Expose-Headers")
			for _, header := range []string{
				"Durability", "ETag", "Idempotency-Replayed", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
				"Retry-After", "X-Cart-Token", "X-Request-Id",
			} {
				assert(t, slices.ContainsFunc(got, func(h string) bool { return strings.EqualFold(h, header) }), "%d: %s is not exposed: %q", a.Status, header, got)
			}
		}
	}
}

func TestCORS_ServesOtherOriginsWithoutItsHeaders(t *testing.T) {
	t.Parallel()
	listed := openShop(t, embeddedRedis(t))
	none := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.CORSOrigins = nil })
	capitals := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.CORSOrigins = []string{"https://Shop.example.com"} })
	assert(t, capitals.guest(t).ok("GET", "/cart", "", "Origin", "https://shop.example.com").Header.Get("Access-Control-Allow-Origin") != "", "an origin listed in capitals is not allowed")
	for _, s := range []*shop{listed, none, capitals} {
		for _, origin := range []string{
			"https://evil.example.net", "null", "https://Shop.example.com", "https://shop.example.com.evil.net", "https://shop.example.com:444",
			"http://shop.example.com", "https://sub.shop.example.com", "https://shop.example.com/", "x", "*", s.URL,
		} {
			c := s.guest(t)
			answers := []answer{
				c.add(`{"product_id":1}`, "Origin", origin),
				c.ok("GET", "/cart", "", "Origin", origin),
				c.send("OPTIONS", "/cart/add", "", "Origin", origin, "Access-Control-Request-Method", "POST"),
			}
			for _, a := range answers {
				for header := range a.Header {
					assert(t, !strings.HasPrefix(header, "Access-Control-"), "%s: %s is %q", origin, header, a.Header.Get(header))
				}
				assert(t, a.Status != 403, "%s: refused", origin)
			}
		}
	}
}

func TestBasePath_PrefixesEveryPath(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.BasePath = "/api/v1" })
	c := s.guest(t)
	c.add(`{"product_id":1}`)
	c.ok("PATCH", "/cart/items/1", `{"quantity":2}`)
	c.ok("GET", "/openapi.yaml", "")
	c.ok("DELETE", "/cart/items/a%2Fb", "")
	c.refused(404, "not_found", "GET", "/nothing", "")
	assert(t, c.refused(405, "method_not_allowed", "PUT", "/cart", "").Header.Get("Allow") != "", "no Allow")
	for _, path := range []string{"/cart", "/openapi.yaml", "/", "/api", "/api/v1/api/v1/cart", "/api/v10/cart"} {
		response := must(http.Get(strings.TrimSuffix(s.URL, "/api/v1") + path))(t)
		var decoded body
		assert(t, json.NewDecoder(response.Body).Decode(&decoded) == nil && response.StatusCode == 404 && decoded.Code == "not_found", "%s: got %d %s", path, response.StatusCode, decoded.Code)
		response.Body.Close()
	}
}

func TestAcceptLanguage_AffectsOnlyTexts(t *testing.T) {
	t.Parallel()
	in := func(l locale.Locale) *shop {
		return openShop(t, embeddedRedis(t), func(p *server.Parts) {
			given := must(p.Stores.Sole(t.Context()))(t)
			p.Stores = auth.NewMemoryStores(money.Known, &store.Store{
				ID: given.ID, PublicKeys: given.PublicKeys, Currency: given.Currency, Locale: l,
				TaxRate: given.TaxRate, PricesIncludeTax: given.PricesIncludeTax, PaymentMethods: given.PaymentMethods,
			})
		})
	}
	english, arabic := in(locale.En), in(locale.Ar)
	isArabic := regexp.MustCompile(`\p{Arabic}`).MatchString
	for header, want := range map[string]string{
		"ar": "ar", "AR": "ar", "ar-SA": "ar", "ar-SA,ar;q=0.9,en;q=0.8": "ar", "fr, ar;q=0.1": "ar",
		"en;q=0.4, ar;q=0.5": "ar", "en;q=0, *": "ar", "en;q=0.1,*;q=0.2": "ar",
		"en": "en", "en-US": "en", "en-GB;q=0.8, ar;q=0.7": "en", "ar;q=0.001, en;q=0.002": "en", "ar;q=0, *": "en", "de, en": "en",
		"": "store", "*": "store", "fr": "store", "fr, de;q=0.5": "store", "ar;q=2": "store", "ar;q=x": "store", ";;;,,,": "store",
		"ar en": "store", "\xff\xfe": "store", "araa-aaaaaaaaaaaaaaaaaaa": "store", "xx;q=1": "store",
	} {
		for store, s := range map[string]*shop{"en": english, "ar": arabic} {
			language := want
			if want == "store" {
				language = store
			}
			c := s.guest(t)
			a := c.refused(404, "product_not_found", "POST", "/cart/add", `{"product_id":404}`, "Accept-Language", header)
			assert(t, isArabic(a.Body.Message) == (language == "ar") && isArabic(a.Body.Errors["product_id"][0]) == (language == "ar"), "%q in a store of %s: %s", header, store, a.Body.Message)
		}
	}
	read := func(language string) answer {
		c := english.guest(t)
		c.add(`{"product_id":4,"subscription_plan":41,"qty":2}`)
		return c.ok("GET", "/cart/summary", "", "Accept-Language", language)
	}
	en, ar := read("en"), read("ar")
	assert(t, !isArabic(string(en.Raw)) && isArabic(string(ar.Raw)), "en: %s\nar: %s", en.Raw, ar.Raw)
	if a, b := en.Body.Data, ar.Body.Data; a.Total != b.Total || a.Items[0].UnitPrice != b.Items[0].UnitPrice || a.Currency != b.Currency {
		t.Errorf("numbers change with the language: %+v, %+v", a, b)
	}
	c := arabic.guest(t)
	if a := c.refused(401, "unauthenticated", "GET", "/cart", "", "Authorization", "x", "Accept-Language", "ar"); !isArabic(a.Body.Message) {
		t.Errorf("before the store is known: %s", a.Body.Message)
	}
	if a := c.refused(404, "not_found", "GET", "/nothing", "", "Accept-Language", "ar"); !isArabic(a.Body.Message) {
		t.Errorf("outside of any store: %s", a.Body.Message)
	}
}

func TestCompression_FollowsAcceptEncoding(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	c := s.guest(t)
	c.add(`{"product_id":1}`)
	c.add(`{"product_id":2}`)
	c.add(`{"product_id":5,"fields":{"0":"x"}}`)
	get := func(encoding string) (*http.Response, []byte) {
		r := must(http.NewRequestWithContext(t.Context(), "GET", s.URL+"/cart", nil))(t)
		r.Header.Set("X-Public-Key", s.Key)
		r.Header.Set("X-Cart-Token", c.Token)
		r.Header.Set("Accept-Encoding", encoding)
		response := must(http.DefaultTransport.RoundTrip(r))(t)
		defer response.Body.Close()
		raw := must(io.ReadAll(response.Body))(t)
		noError(t, uncompressed(response, &raw))
		assert(t, slices.Contains(commaList(response.Header, "Vary"), "Accept-Encoding"), "%s: Vary is %q", encoding, response.Header.Values("Vary"))
		return response, raw
	}
	for encoding, want := range map[string]string{
		"gzip": "gzip", "br;q=1, gzip;q=0.5": "gzip", "identity": "", "gzip;q=0": "", "": "", "nonsense": "",
	} {
		response, raw := get(encoding)
		var got body
		err := json.Unmarshal(raw, &got)
		assert(t, err == nil && got.Data.lines() == c.cart().lines(), "%q: %v in %s", encoding, err, raw)
		assert(t, response.Header.Get("Content-Encoding") == want, "%q: encoded as %q", encoding, response.Header.Get("Content-Encoding"))
		length := response.ContentLength
		assert(t, want != "" || length == int64(len(raw)), "%q: Content-Length %d of %d bytes", encoding, length, len(raw))
	}
}

func TestMethods_UnsupportedOnesAre405WithAllow(t *testing.T) {
	t.Parallel()
	c := openShop(t, embeddedRedis(t)).guest(t)
	for path, allow := range map[string][]string{
		"/cart":          {"GET", "HEAD"},
		"/cart/add":      {"POST"},
		"/cart/items/1":  {"DELETE", "PATCH"},
		"/cart/clear":    {"DELETE"},
		"/cart/count":    {"GET", "HEAD"},
		"/cart/validate": {"GET", "HEAD"},
		"/cart/summary":  {"GET", "HEAD"},
		"/openapi.yaml":  {"GET", "HEAD"},
		"/openapi.json":  {"GET", "HEAD"},
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"} {
			if slices.Contains(allow, method) {
				continue
			}
			a := c.send(method, path, "")
			got := commaList(a.Header, "Allow")
			slices.Sort(got)
			assert(t, a.Status == 405 && slices.Equal(got, allow) && (method == "HEAD" || a.Body.Code == "method_not_allowed"), "%s %s: %d %s, Allow %q", method, path, a.Status, a.Body.Code, got)
		}
	}
	for _, path := range []string{
		"/", "/cart/", "/cart/nothing", "/Cart", "/cart/items", "/CART/ADD", "/cart//count", "//cart", "/cart/../cart", "/cart%2Fadd",
		"/subscription", "/metrics", "/healthz", "/debug/pprof/", "/favicon.ico", "/cart;x=1", "/\x7f", "/%00",
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			c.refused(404, "not_found", method, strings.ReplaceAll(path, "\x7f", "%7F"), "")
		}
	}
}

// only returns an area with one route.
func only(path string, handle wire.Handler) []wire.Area {
	return []wire.Area{{Routes: []wire.Route{{Method: http.MethodGet, Path: path, Handle: handle}}}}
}

// handlerOf returns only the engine, with a test's own routes.
func handlerOf(t *testing.T, edit func(*server.Config)) (http.Handler, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	config := server.Config{Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	edit(&config)
	handler := must(server.NewHandler(config))(t)
	return handler, log
}

// ask calls a handler directly, with one client's address.
func ask(h http.Handler, from, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = from + ":1234"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestRateLimit_LimitsEachClient(t *testing.T) {
	t.Parallel()
	h, log := handlerOf(t, func(c *server.Config) {
		c.RateLimit = true
		c.CORSOrigins = []string{"https://shop.example.com"}
		c.Areas = only("/quick", func(c *gin.Context) (wire.Answer, error) { c.Status(204); return wire.Answer{}, nil })
	})
	var served int
	var refused *httptest.ResponseRecorder
	for start := time.Now(); refused == nil && time.Since(start) < 20*time.Second; {
		w := ask(h, "192.0.2.1", "GET", "/quick", "X-Forwarded-For", "198.51.100."+strconv.Itoa(served%200), "Origin", "https://shop.example.com")
		if w.Code == 204 {
			served++
		} else {
			refused = w
		}
		limit, _ := strconv.Atoi(w.Header().Get("RateLimit-Limit"))
		left, err1 := strconv.Atoi(w.Header().Get("RateLimit-Remaining"))
		reset, err2 := strconv.Atoi(w.Header().Get("RateLimit-Reset"))
		require(t, limit >= 200 && err1 == nil && left >= 0 && left <= limit && err2 == nil && reset >= 0 && reset <= 60, "after %d: %v", served, w.Header())
	}
	require(t, refused != nil, "%d requests, and none refused", served)
	assert(t, served >= 200, "refused after %d requests", served)
	var decoded body
	noError(t, json.Unmarshal(refused.Body.Bytes(), &decoded))
	wait, _ := strconv.Atoi(refused.Header().Get("Retry-After"))
	assert(t, refused.Code == 429 && decoded.Code == "rate_limited" && decoded.Message != "" && wait >= 1, "got %d %s, headers %v", refused.Code, refused.Body, refused.Header())
	assert(t, refused.Header().Get("Access-Control-Allow-Origin") != "" && refused.Header().Get("X-Request-Id") != "", "headers of a refusal: %v", refused.Header())
	want := `"code":"rate_limited","limit":"reads","client":"192.0.2.1"`
	assert(t, strings.Contains(log.String(), want), "the log does not have %s", want)
	equal(t, ask(h, "192.0.2.2", "GET", "/quick").Code, 204, "status of another client")
	time.Sleep(time.Duration(wait)*time.Second + 50*time.Millisecond)
	equal(t, ask(h, "192.0.2.1", "GET", "/quick").Code, 204, "status after Retry-After")
}

// Otherwise a client that reads large carts slows down its neighbors.
func TestRateLimit_CountsALargeResponseAsSeveralRequests(t *testing.T) {
	t.Parallel()
	h, _ := handlerOf(t, func(c *server.Config) {
		c.RateLimit = true
		c.Now = func() time.Time { return time.Unix(1_760_000_000, 0) } // nothing refills
		c.Areas = only("/page", func(c *gin.Context) (wire.Answer, error) {
			size, err := strconv.Atoi(c.Query("size"))
			c.String(200, strings.Repeat("x", size))
			return wire.Answer{}, err
		})
	})
	left := func(size int) int {
		n := must(strconv.Atoi(ask(h, "192.0.2.1", "GET", "/page?size="+strconv.Itoa(size)).Header().Get("RateLimit-Remaining")))(t)
		return n
	}
	before, between, after := left(150_000), left(1000), left(1000)
	assert(t, before-between == 5 && between-after == 1, "150,000 bytes count as %d requests, 1,000 as %d; want 5 and 1", before-between, between-after)
}

func TestRateLimit_TrustsConfiguredProxiesOnly(t *testing.T) {
	t.Parallel()
	h, _ := handlerOf(t, func(c *server.Config) { c.RateLimit = true; c.TrustedProxies = []string{"192.0.2.0/24"} })
	named := func(from, header, client string) int {
		n := must(strconv.Atoi(ask(h, from, "GET", "/nothing", header, client).Header().Get("RateLimit-Remaining")))(t)
		return n
	}
	left := func(from, forwarded string) int { return named(from, "X-Forwarded-For", forwarded) }
	first := left("192.0.2.1", "198.51.100.1")
	assert(t, left("192.0.2.1", "198.51.100.2") == first && left("192.0.2.9", "203.0.113.5, 198.51.100.3") == first, "two clients behind a proxy share one limit")
	n := named("192.0.2.9", "X-Real-IP", "198.51.100.7")
	assert(t, named("192.0.2.9", "X-Real-IP", "198.51.100.8") < n, "X-Real-IP is trusted")
	assert(t, left("203.0.113.1", "198.51.100.4") == first && left("203.0.113.1", "198.51.100.5") < first, "a client set its own address")
}

func TestRateLimit_OffSendsNoHeaders(t *testing.T) {
	t.Parallel()
	for header := range openShop(t, embeddedRedis(t)).guest(t).ok("GET", "/cart", "").Header {
		assert(t, !strings.HasPrefix(strings.ToLower(header), "ratelimit"), "%s is there", header)
	}
}

func TestDeadline_EndsARequestThatHangs(t *testing.T) {
	t.Parallel()
	var granted time.Duration
	hang := func(c *gin.Context) (wire.Answer, error) {
		<-c.Request.Context().Done()
		return wire.Answer{}, c.Request.Context().Err()
	}
	h, _ := handlerOf(t, func(c *server.Config) {
		c.Deadline = 50 * time.Millisecond
		c.Areas = only("/slow", hang)
	})
	start := time.Now()
	w := ask(h, "192.0.2.1", "GET", "/slow")
	if took := time.Since(start); took > 4500*time.Millisecond { // the default is 5 s
		t.Errorf("took %v", took)
	}
	assert(t, w.Code == 503 && w.Header().Get("Retry-After") != "" && strings.Contains(w.Body.String(), `"unavailable"`), "got %d %s %v", w.Code, w.Body, w.Header())
	h, _ = handlerOf(t, func(c *server.Config) {
		c.Areas = only("/quick", func(c *gin.Context) (wire.Answer, error) {
			end, _ := c.Request.Context().Deadline()
			granted = time.Until(end)
			return wire.Answer{}, nil
		})
	})
	ask(h, "192.0.2.1", "GET", "/quick")
	assert(t, granted > 0 && granted <= 10*time.Second, "by default a request has %v", granted)
}
