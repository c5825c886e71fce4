package server_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/sample"
)

func openMall(t testing.TB, otherIsDefault bool) (one, other *shop) {
	t.Helper()
	second := *sample.Stores()[1]
	second.ID = nextStore()
	second.PublicKeys = []string{"pk_other_" + strconv.FormatInt(second.ID, 10)}
	one = openShop(t, embeddedRedis(t), func(p *server.Parts) {
		first := assert.Must(p.Stores.Sole(t.Context()))(t)
		p.Stores = auth.NewMemoryStores(money.Known, first, &second)
		if otherIsDefault {
			p.DefaultStore = second.ID
		}
	})
	for _, p := range sample.Products()[2] {
		one.Catalog.Put(second.ID, p)
	}
	beside := *one
	beside.ID, beside.Key, beside.Store = second.ID, second.PublicKeys[0], &second
	return one, &beside
}

// TestCartCallers_Identify has all combinations.
func TestStore_ComesFromKeyThenTokenThenDefault(t *testing.T) {
	t.Parallel()
	noDefault, _ := openMall(t, false)
	_, byDefault := openMall(t, true)
	nameless := func(s *shop) *shopper {
		keyless := *s
		keyless.Key = ""
		return keyless.guest(t)
	}

	noDefault.guest(t).ok("GET", "/cart", "")
	nameless(noDefault).refused(400, "store_required", "GET", "/cart", "").names(t, "X-Public-Key")
	nameless(byDefault).add(`{"product_id":21}`)
	byDefault.guest(t).add(`{"product_id":21}`)

	c := nameless(noDefault)
	c.JWT = noDefault.token(t, "1001")
	c.add(`{"product_id":1}`)
	noDefault.customer(t, "1001").wantLines("1×1")

	unknown := noDefault.guest(t).refused(400, "store_unknown", "GET", "/cart", "", "X-Public-Key", "pk_nobody")
	unknown.names(t, "X-Public-Key")
}

func TestStore_KeepsItsCartsApart(t *testing.T) {
	t.Parallel()
	one, other := openMall(t, false)
	guest := one.guest(t).fill("1×1")
	there := other.guest(t)
	there.Token = guest.Token
	there.wantLines("")
	there.refused(404, "product_not_found", "POST", "/cart/add", `{"product_id":1}`)
	assert.Equal(t, there.add(`{"product_id":21}`).Body.Data.Currency, "USD", "currency")
	guest.wantLines("1×1")

	one.customer(t, "1001").add(`{"product_id":1}`)
	other.customer(t, "1001").wantLines("")

	stranger := other.customer(t, "1001")
	stranger.shop = one
	a := stranger.refused(401, "unauthenticated", "GET", "/cart", "").names(t, "Authorization")
	assert.Equal(t, a.Header.Get("WWW-Authenticate"), "Bearer", "challenge")
}

func TestCustomer_IsUnknownWithoutASecret(t *testing.T) {
	s := newShop(t, func(p *server.Parts) { p.JWT = nil })
	s.customer(t, "1001").refused(401, "unauthenticated", "GET", "/cart", "")
	s.guest(t).ok("GET", "/cart", "")
}

// links returns the base of the URLs in a page of the list, which a picture's URL must share.
func (s *shop) links(t *testing.T, headers ...string) string {
	t.Helper()
	page := s.merchant(t).ok("GET", "/subscriptions?per_page=20", "", headers...).list(t)
	assert.That(t, strings.HasPrefix(page.NextURL, page.Path+"?"), "next is %s, path %s", page.NextURL, page.Path)
	image := s.guest(t).add(addOne, headers...).Body.Data.Items[0].Image
	assert.Equal(t, image.FullLink, strings.TrimSuffix(page.Path, "/subscriptions")+"/playground/pictures/game-credit.svg", "full_link")
	return page.Path
}

func TestLinks_UseForwardedHeadersOfTrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		trusted []string
		headers []string
		want    string // "" for the request's own origin
	}{
		{[]string{"127.0.0.0/8"}, []string{"X-Forwarded-Proto", "https", "X-Forwarded-Host", "shop.example.com"}, "https://shop.example.com"},
		{[]string{"127.0.0.1"}, []string{"X-Forwarded-Proto", "HTTPS, http", "X-Forwarded-Host", "shop.example.com:8443, inner"}, "https://shop.example.com:8443"},
		{[]string{"127.0.0.1"}, []string{"X-Forwarded-Host", "[2001:db8::1]:80"}, "http://[2001:db8::1]:80"},
		{[]string{"10.0.0.0/8"}, []string{"X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil.example.com"}, ""},
		{nil, []string{"X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil.example.com"}, ""},
		{[]string{"127.0.0.1"}, []string{"X-Forwarded-Proto", "javascript", "X-Forwarded-Host", "a/b?c"}, ""},
		{[]string{"127.0.0.1"}, []string{"X-Forwarded-Host", "user@evil.example.com"}, ""},
		{[]string{"127.0.0.1"}, nil, ""},
	} {
		s := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.TrustedProxies, p.BasePath = test.trusted, "/v1" })
		want := test.want + "/v1/subscriptions"
		if test.want == "" {
			want = s.URL + "/subscriptions"
		}
		assert.Equal(t, s.links(t, test.headers...), want, "%v from %v: links to", test.headers, test.trusted)
	}
}

// A client of HTTP/1.0 need not say by which name it calls.
func TestLinks_WithoutAHostLeadToTheAddressThatWasCalled(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	w := openWeb(t, s.handler)
	answer := w.say(t, "GET /subscriptions HTTP/1.0\r\nAuthorization: Bearer "+s.API+"\r\n\r\n")
	assert.That(t, strings.Contains(answer, `"http://`+w.addr+`/subscriptions`), "no link to %s: %s", w.addr, answer)
}

func TestLinks_HaveTheBasePathOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ public, base, want string }{
		{"https://example.com", "/api", "https://example.com/api"},
		{"https://example.com/api", "/api", "https://example.com/api"},
		{"https://example.com/shop/api/", "/api", "https://example.com/shop/api"},
		{"https://example.com/shop", "/api", "https://example.com/shop/api"},
		{"https://example.com/myapi", "/api", "https://example.com/myapi/api"},
		{"https://example.com/shop", "", "https://example.com/shop"},
		{"https://api", "/api", "https://api/api"},
	} {
		s := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.PublicURL, p.BasePath = test.public, test.base })
		assert.Equal(t, s.links(t, "X-Forwarded-Host", "evil.example.com"), test.want+"/subscriptions", "PUBLIC_URL=%s BASE_PATH=%s: links to", test.public, test.base)
	}
}

func TestProxy_AnUnconfiguredOneIsLoggedOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		edit func(*server.Parts)
		want int
	}{
		{func(*server.Parts) {}, 1},
		{func(p *server.Parts) { p.PublicURL = "https://example.com" }, 0},
		{func(p *server.Parts) { p.TrustedProxies = []string{"127.0.0.1"} }, 0},
	} {
		s := openShop(t, embeddedRedis(t), test.edit)
		s.guest(t).ok("GET", "/cart", "")
		assert.That(t, !strings.Contains(s.Log.String(), "proxy"), "warns without a proxy")
		for _, header := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded"} {
			s.guest(t).ok("GET", "/cart", "", header, "x")
		}
		warnings := 0
		for _, line := range s.Log.logged(t) {
			if line["level"] == "WARN" && strings.Contains(line["msg"].(string), "TRUSTED_PROXIES") {
				warnings++
			}
		}
		assert.That(t, warnings == test.want, "%d warnings, want %d", warnings, test.want)
	}
}

// A page of another site could otherwise read a demo's tokens, after its name has changed to 127.0.0.1.
func TestLocal_ServesOnlyItsOwnHosts(t *testing.T) {
	t.Parallel()
	h, _ := handlerOf(t, func(c *server.Config) {
		c.Local, c.PublicURL, c.TrustedProxies = true, "https://demo.example.com/api", []string{"127.0.0.1"}
		c.Areas = only("/cart", func(c *gin.Context) (wire.Answer, error) { c.Status(http.StatusNoContent); return wire.Answer{}, nil })
	})
	for host, own := range map[string]bool{
		"localhost": true, "LOCALHOST:8080": true, "127.0.0.1:8080": true, "127.8.8.8": true, "[::1]:80": true, "demo.example.com:8443": true,
		"": false, "evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "10.0.0.1:8080": false,
		"demo.example.com.evil.example": false, "[::2]": false,
	} {
		for path, status := range map[string]int{"/cart": http.StatusNoContent, "/": http.StatusNotFound} {
			r := httptest.NewRequest("GET", path, nil)
			r.Host, r.RemoteAddr = host, "127.0.0.1:1234"
			r.Header.Set("X-Forwarded-Host", "localhost")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if !own {
				status = http.StatusBadRequest
			}
			assert.That(t, w.Code == status && strings.Contains(w.Body.String(), `"code":"invalid_parameter"`) == !own, "%s of %q: %d %s", path, host, w.Code, w.Body)
		}
	}
}

func TestRateLimit_TrustsConfiguredProxiesOnly(t *testing.T) {
	t.Parallel()
	h, _ := handlerOf(t, func(c *server.Config) { c.RateLimit = true; c.TrustedProxies = []string{"192.0.2.0/24"} })
	named := func(from, header, client string) int {
		return assert.Must(strconv.Atoi(ask(h, from, "GET", "/nothing", header, client).Header().Get("RateLimit-Remaining")))(t)
	}
	left := func(from, forwarded string) int { return named(from, "X-Forwarded-For", forwarded) }
	first := left("192.0.2.1", "198.51.100.1")
	assert.That(t, left("192.0.2.1", "198.51.100.2") == first && left("192.0.2.9", "203.0.113.5, 198.51.100.3") == first, "two clients behind a proxy share one limit")
	n := named("192.0.2.9", "X-Real-IP", "198.51.100.7")
	assert.That(t, named("192.0.2.9", "X-Real-IP", "198.51.100.8") < n, "X-Real-IP is trusted")
	assert.That(t, left("203.0.113.1", "198.51.100.4") == first && left("203.0.113.1", "198.51.100.5") < first, "a client set its own address")
}

func TestClient_IsTheSameHoweverAProxyWritesItsAddress(t *testing.T) {
	t.Parallel()
	var client string
	h, _ := handlerOf(t, func(c *server.Config) {
		c.TrustedProxies = []string{"192.0.2.0/24"}
		c.Areas = only("/client", func(c *gin.Context) (wire.Answer, error) {
			client = wire.Client(c)
			c.Status(http.StatusNoContent)
			return wire.Answer{}, nil
		})
	})
	for forwarded, want := range map[string]string{
		"198.51.100.7":                          "198.51.100.7",
		"198.51.100.7:5555":                     "198.51.100.7",
		"203.0.113.1:1, 198.51.100.7:5555":      "198.51.100.7",
		"198.51.100.7:5555, 192.0.2.9:80":       "198.51.100.7",
		"::ffff:198.51.100.7":                   "198.51.100.7",
		"::ffff:c633:6407":                      "198.51.100.7",
		"2001:db8:1:2:3::4":                     "2001:db8:1:2::/64",
		"[2001:db8:1:2:3::4]:5555":              "2001:db8:1:2::/64",
		"nonsense:5555":                         "192.0.2.1",
		"198.51.100.7:99999":                    "192.0.2.1",
		"[2001:db8:1:2:3::4]:5555, 192.0.2.200": "2001:db8:1:2::/64",
	} {
		ask(h, "192.0.2.1", "GET", "/client", "X-Forwarded-For", forwarded)
		assert.Equal(t, client, want, "client for %s", forwarded)
	}
}
