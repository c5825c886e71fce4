package server_test

import (
	"bytes"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

func TestRequestID_IsTheCallersIfValid(t *testing.T) {
	c := newShop(t).guest(t)
	for _, id := range []string{"a", "checkout-7f3a", "A.b_c-9", strings.Repeat("x", 64)} {
		for _, path := range []string{"/cart", "/nothing/here"} {
			assert.Equal(t, c.send("GET", path, "", "X-Request-Id", id).Header.Get("X-Request-Id"), id, "request ID")
		}
	}
	seen := map[string]bool{}
	for _, id := range []string{"", "a b", "a;b", "é", "a\tb", `"a"`, "{}", strings.Repeat("x", 65), strings.Repeat("x", 9<<10)} {
		a := c.send("PUT", "/cart", "", "X-Request-Id", id)
		got := a.Header.Get("X-Request-Id")
		assert.That(t, got != id && !seen[got] && regexp.MustCompile(`^[A-Za-z0-9._-]{16,64}$`).MatchString(got), "%q became %q", id, got)
		seen[got] = true
		assert.Equal(t, decode[map[string]any](t, a.Raw)["request_id"], any(got), "request ID in the body")
	}
}

func TestHEAD_RespondsLikeGETWithoutABody(t *testing.T) {
	s := newShop(t)
	c := s.guest(t)
	for range 3 {
		c.fill("4.p41×1 4.p42×1 1×1")
	}
	for _, path := range []string{"/cart", "/cart/count", "/cart/validate", "/cart/summary", "/openapi.yaml", "/openapi.json", "/storefront.js", "/nothing"} {
		for _, encoding := range []string{"identity", "gzip"} {
			diff := "not compared"
			for try := 0; diff != "" && try < 5; try++ { // the timestamp in the body may change the compressed length
				diff = cmp.Diff(withoutBody(t, c, "GET", path, encoding), withoutBody(t, c, "HEAD", path, encoding))
			}
			assert.That(t, diff == "", "HEAD %s, %s, differs from GET (-GET +HEAD):\n%s", path, encoding, diff)
		}
	}
	a := c.send("HEAD", "/cart", "", "Authorization", "Bearer x")
	assert.That(t, a.Status == 401 && len(a.Raw) == 0, "HEAD without credentials: %d", a.Status)
	assert.That(t, len(s.guest(t).send("HEAD", "/cart", "").Header.Get("X-Cart-Token")) >= 22, "HEAD issued no token")
}

// withoutBody returns a call's status and headers, except those that differ each time.
func withoutBody(t *testing.T, c *shopper, method, path, encoding string) http.Header {
	t.Helper()
	response, body := exchange(t, c.request(method, path, nil, "X-Request-Id", "same", "Accept-Encoding", encoding))
	assert.That(t, method != "HEAD" || len(body) == 0, "%s %s: %d bytes", method, path, len(body))
	header := response.Header
	header.Set("status", response.Status)
	header.Del("Date")
	return header
}

func TestCaching_IsPrivate(t *testing.T) {
	c := newShop(t).guest(t)
	for i, a := range []answer{
		c.add(addOne), c.ok("GET", "/cart", ""), c.ok("GET", "/cart/summary", ""),
		c.ok("PATCH", "/cart/items/1", `{"quantity":2}`), c.ok("DELETE", "/cart/items/1", ""), c.ok("DELETE", "/cart/clear", ""),
	} {
		assert.Equal(t, a.Header.Get("Cache-Control"), "private, no-cache", "%d: Cache-Control", i)
		assert.That(t, a.Header.Get("ETag") != "", "%d: no ETag", i)
		vary := commaList(a.Header, "Vary")
		for _, header := range []string{"Authorization", "X-Cart-Token", "X-Public-Key", "Accept-Language", "Origin"} {
			assert.That(t, slices.Contains(vary, header), "%d: Vary is %q", i, vary)
		}
	}
	for _, a := range []answer{
		c.ok("GET", "/cart/count", ""), c.send("GET", "/cart/validate", ""), c.send("POST", "/cart/add", `{}`),
		c.send("GET", "/cart", "", "Authorization", "Bearer x"), c.send("GET", "/nothing", ""),
	} {
		got := a.Header.Get("Cache-Control")
		assert.That(t, got == "private, no-cache" || got == "no-store", "Cache-Control of %d is %q", a.Status, got)
	}
}

func commaList(h http.Header, name string) []string {
	list := strings.Split(strings.Join(h.Values(name), ","), ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

func TestCORS_AllowsListedOrigins(t *testing.T) {
	const listed = "https://shop.example.com"
	s := newShop(t)
	all := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.CORSOrigins = []string{"*"} })
	for _, tt := range []struct {
		shop            *shop
		origin, allowed string
	}{{s, listed, listed}, {all, "https://anywhere.example.net", "*"}, {all, "null", "*"}} {
		c := tt.shop.guest(t)
		for _, a := range []answer{
			c.add(addOne, "Origin", tt.origin),
			c.ok("GET", "/cart", "", "Origin", tt.origin),
			c.send("GET", "/cart", "", "Origin", tt.origin, "If-None-Match", "*"),
			c.send("GET", "/cart", "", "Origin", tt.origin, "Authorization", "Bearer x"),
			c.send("POST", "/cart/add", "{", "Origin", tt.origin),
			c.send("GET", "/nothing", "", "Origin", tt.origin),
			c.send("PUT", "/cart", "", "Origin", tt.origin),
		} {
			assert.Equal(t, a.Header.Get("Access-Control-Allow-Origin"), tt.allowed, "%d: allowed origin", a.Status)
			got := commaList(a.Header, "Access-Control-Expose-Headers")
			for _, header := range []string{
				"Durability", "ETag", "Idempotency-Replayed", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
				"Retry-After", "X-Cart-Token", "X-Request-Id",
			} {
				assert.That(t, slices.ContainsFunc(got, func(h string) bool { return strings.EqualFold(h, header) }), "%d: %s is not exposed: %q", a.Status, header, got)
			}
		}
	}
}

// Preflights are answered alike on all paths, also on unknown ones: the browser hides a refused one from the page.
func TestCORS_AllowsEveryMethodAndTheHeadersAskedFor(t *testing.T) {
	s := newShop(t)
	all := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.CORSOrigins = []string{"*"} })
	preflight := func(of *shop, path, method, asked string) answer {
		return of.guest(t).send("OPTIONS", path, "", "Origin", "https://shop.example.com", "Access-Control-Request-Method", method,
			"Access-Control-Request-Headers", asked, "X-Public-Key", "", "X-Cart-Token", "")
	}
	want := func(of *shop, path, method, asked, allowed string) {
		t.Helper()
		h := preflight(of, path, method, asked).Header
		got := map[string]string{}
		for _, name := range []string{"Access-Control-Allow-Headers", "Access-Control-Allow-Credentials", "Vary"} {
			got[name] = strings.Join(h.Values(name), "|")
		}
		assert.Equal(t, got, map[string]string{
			"Access-Control-Allow-Headers": allowed, "Access-Control-Allow-Credentials": "", "Vary": "Origin, Access-Control-Request-Headers",
		}, "%s %s, %.60q", method, path, asked)
		assert.That(t, h.Get("Access-Control-Allow-Origin") != "" && slices.Contains(commaList(h, "Access-Control-Allow-Methods"), method), "%s %s: %v", method, path, h)
	}
	const tools = "sentry-trace, baggage, traceparent, tracestate, x-datadog-trace-id, newrelic, cache-control, pragma, X-Requested-With, x-cart-token"
	for _, of := range []*shop{s, all} {
		for path, item := range assert.Must(document())(t).Paths.Map() {
			for method := range item.Operations() {
				want(of, strings.NewReplacer("{", "", "}", "").Replace(path), method, tools, tools)
			}
		}
		want(of, "/nothing", "GET", tools, tools)
	}
	full := strings.TrimSuffix(strings.Repeat("x, ", 64), ", ")
	long := strings.Repeat("x", 4<<10)
	for asked, allowed := range map[string]string{
		"": "", "x": "x", "a,b\t, c": "a, b, c", full: full, full + ", x": "", long: long, long + "x": "", "a,": "", "a b": "", "a:b": "", "é": "", "a, \"b\"": "",
	} {
		want(s, "/cart", "GET", asked, allowed)
	}
}

func TestCORS_ServesOtherOriginsWithoutItsHeaders(t *testing.T) {
	listed := newShop(t)
	none := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.CORSOrigins = nil })
	capitals := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.CORSOrigins = []string{"https://Shop.example.com"} })
	assert.That(t, capitals.guest(t).ok("GET", "/cart", "", "Origin", "https://shop.example.com").Header.Get("Access-Control-Allow-Origin") != "", "an origin listed in capitals is not allowed")
	for _, s := range []*shop{listed, none, capitals} {
		for _, origin := range []string{
			"https://evil.example.net", "null", "https://Shop.example.com", "https://shop.example.com.evil.net", "https://shop.example.com:444",
			"http://shop.example.com", "https://sub.shop.example.com", "https://shop.example.com/", "x", "*", s.URL,
		} {
			c := s.guest(t)
			for _, a := range []answer{
				c.add(addOne, "Origin", origin), c.ok("GET", "/cart", "", "Origin", origin),
				c.send("OPTIONS", "/cart/add", "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x"),
			} {
				for header := range a.Header {
					assert.That(t, !strings.HasPrefix(header, "Access-Control-"), "%s: %s is %q", origin, header, a.Header.Get(header))
				}
				assert.That(t, a.Status != 403, "%s: refused", origin)
			}
			// A cache must not give a listed origin what it has for this one.
			varies := c.ok("GET", "/openapi.json", "", "Origin", origin).Header
			assert.That(t, s == none || slices.Contains(commaList(varies, "Vary"), "Origin"), "%s: Vary is %q", origin, varies.Values("Vary"))
			script := c.ok("GET", "/storefront.js", "", "Origin", origin)
			assert.Equal(t, script.Header.Get("Access-Control-Allow-Origin"), "*", "%s: origin allowed to read storefront.js", origin)
		}
	}
}

func TestBasePath_PrefixesEveryPath(t *testing.T) {
	s := newShop(t, func(p *server.Parts) { p.BasePath = "/api/v1" })
	c := s.guest(t).fill("1×1")
	c.ok("PATCH", "/cart/items/1", `{"quantity":2}`)
	c.ok("GET", "/openapi.yaml", "")
	c.ok("DELETE", "/cart/items/a%2Fb", "")
	c.refused(404, "not_found", "GET", "/nothing", "")
	assert.That(t, c.refused(405, "method_not_allowed", "PUT", "/cart", "").Header.Get("Allow") != "", "no Allow")
	for _, path := range []string{"/cart", "/openapi.yaml", "/", "/api", "/api/v1/api/v1/cart", "/api/v10/cart"} {
		r := assert.Must(http.NewRequestWithContext(t.Context(), "GET", strings.TrimSuffix(s.URL, "/api/v1")+path, nil))(t)
		response, raw := exchange(t, r)
		assert.That(t, response.StatusCode == 404 && decode[body](t, raw).Code == "not_found", "%s: got %d %s", path, response.StatusCode, raw)
	}
}

func TestCompression_FollowsAcceptEncoding(t *testing.T) {
	c := newShop(t).guest(t).fill("1×1 2×1")
	c.add(`{"product_id":5,"fields":{"0":"x"}}`)
	for encoding, want := range map[string]string{
		"gzip": "gzip", "br;q=1, gzip;q=0.5": "gzip", "identity": "", "gzip;q=0": "", "": "", "nonsense": "",
	} {
		response, raw := exchange(t, c.request("GET", "/cart", nil, "Accept-Encoding", encoding))
		length := len(raw)
		assert.NoError(t, uncompressed(response, &raw))
		assert.That(t, slices.Contains(commaList(response.Header, "Vary"), "Accept-Encoding"), "%q: Vary is %q", encoding, response.Header.Values("Vary"))
		assert.Equal(t, decode[body](t, raw).Data.lines(), c.cart().lines(), "%q: lines", encoding)
		assert.Equal(t, response.Header.Get("Content-Encoding"), want, "%q: Content-Encoding", encoding)
		assert.That(t, want != "" || response.ContentLength == int64(length), "%q: Content-Length %d of %d bytes", encoding, response.ContentLength, length)
	}
}

// Strong tags of different bytes differ. With each, a client gets a 304 and may change the cart.
func TestCompression_HasTagsOfItsOwn(t *testing.T) {
	c := newShop(t).guest(t).fill("1×1 2×1")
	tagOf := func(encoding string, headers ...string) (int, string) {
		response, _ := exchange(t, c.request("GET", "/cart", nil, append(headers, "Accept-Encoding", encoding)...))
		return response.StatusCode, response.Header.Get("ETag")
	}
	_, plain := tagOf("identity")
	for encoding, suffix := range map[string]string{"identity": `"`, "gzip": `-gzip"`, "zstd": `-zstd"`} {
		_, tag := tagOf(encoding)
		assert.Equal(t, tag, strings.TrimSuffix(plain, `"`)+suffix, "%s: tag", encoding)
		status, same := tagOf(encoding, "If-None-Match", `"x", `+tag)
		assert.That(t, status == http.StatusNotModified && same == tag, "%s: %d with %s for its own tag %s", encoding, status, same, tag)
		c.ok("DELETE", "/cart/items/none", "", "If-Match", tag)
	}
	_, compressed := tagOf("gzip")
	c.add(addOne, "If-Match", compressed)
	c.refused(412, "version_mismatch", "POST", "/cart/add", addOne, "If-Match", compressed)
	status, _ := tagOf("gzip", "If-None-Match", compressed)
	assert.Equal(t, status, http.StatusOK, "status for the tag of an earlier cart")
}

func TestMethods_UnsupportedOnesAre405WithAllow(t *testing.T) {
	c := newShop(t).guest(t)
	doc := assert.Must(document())(t)
	for path, item := range doc.Paths.Map() {
		allow := slices.Collect(maps.Keys(item.Operations()))
		if item.Get != nil {
			allow = append(allow, "HEAD")
		}
		slices.Sort(allow)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"} {
			a := c.send(method, strings.NewReplacer("{item_id}", "1", "{id}", "1", "{key}", c.shop.Key).Replace(path), "")
			if slices.Contains(allow, method) {
				assert.That(t, a.Status != 405, "%s %s is documented, but not served", method, path)
				continue
			}
			got := commaList(a.Header, "Allow")
			slices.Sort(got)
			assert.That(t, a.Status == 405 && slices.Equal(got, allow) && (method == "HEAD" || bytes.Contains(a.Raw, []byte(`"code":"method_not_allowed"`))), "%s %s: %d %s, Allow %q", method, path, a.Status, a.Body.Code, got)
		}
	}
	for _, path := range []string{
		"/", "/cart/", "/cart/nothing", "/Cart", "/cart/items", "/CART/ADD", "/cart//count", "//cart", "/cart/../cart", "/cart%2Fadd",
		"/subscription", "/metrics", "/healthz", "/debug/pprof/", "/favicon.ico", "/cart;x=1", "/\x7f", "/%00",
		"/docs", "/docs/", "/docs/viewer.js", "/playground/js/main.js", "/playground/demo.json", // unless they are on
		// Other carts have these.
		"/carts", "/cart/batch", "/cart/add-items", "/cart/note", "/cart/attributes", "/cart/metadata", "/cart/email", "/cart/customer",
		"/cart/address", "/cart/currency", "/cart/saved", "/cart/cross-sells", "/cart/fees", "/cart/gift-cards", "/cart/store-credit",
		"/cart/lock", "/cart/reserve", "/cart/checkout", "/cart/history", "/webhooks",
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			c.refused(404, "not_found", method, strings.ReplaceAll(path, "\x7f", "%7F"), "")
		}
	}
}

func wantProtected(t testing.TB, what string, h http.Header) {
	t.Helper()
	assert.Equal(t, h.Values("X-Content-Type-Options"), []string{"nosniff"}, "%s: X-Content-Type-Options", what)
	assert.Equal(t, h.Values("Content-Security-Policy"), []string{"default-src 'none'"}, "%s: Content-Security-Policy", what)
}

// Subscriptions have customers' names and addresses.
func TestSubscriptions_AreNeverStoredByCaches(t *testing.T) {
	s := newShop(t)
	for path, status := range map[string]int{
		"/subscriptions": 200, "/subscriptions/5001": 200, "/subscriptions/5001/history": 200, "/subscriptions/summary": 200, "/subscriptions/metrics": 200, "/subscriptions/changes": 200,
		"/subscriptions/999999": 404, "/subscriptions?unknown=1": 400,
	} {
		for _, accept := range []string{"application/json", "application/x-ndjson", "text/csv"} {
			a := s.merchant(t).send("GET", path, "", "Accept", accept)
			vary := strings.Join(a.Header.Values("Vary"), ", ")
			assert.That(t, a.Status == status && a.Header.Get("Cache-Control") == "no-store" && strings.Contains(vary, "Authorization"), "%s as %s: %d, Cache-Control %q, Vary %q", path, accept, a.Status, a.Header.Get("Cache-Control"), vary)
		}
	}
}
