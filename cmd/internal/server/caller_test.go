package server_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"commerce/auth"
	"commerce/cart/money"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/sample"
)

// openMall is a service with two stores. other sells product 21.
func openMall(t testing.TB, defaultStore func(one, other int64) int64) (one, other *shop) {
	t.Helper()
	second := *sample.Stores()[1]
	second.ID = nextStore()
	second.PublicKeys = []string{"pk_other_" + strconv.FormatInt(second.ID, 10)}
	one = openShop(t, embeddedRedis(t), func(p *server.Parts) {
		first := assert.Must(p.Stores.Sole(t.Context()))(t)
		p.Stores = auth.NewMemoryStores(money.Known, first, &second)
		if defaultStore != nil {
			p.DefaultStore = defaultStore(first.ID, second.ID)
		}
	})
	for _, p := range sample.Products()[2] {
		one.Catalog.Put(second.ID, p)
	}
	beside := *one
	beside.ID, beside.Key, beside.Store = second.ID, second.PublicKeys[0], &second
	return one, &beside
}

func TestStore_ComesFromKeyThenTokenThenDefault(t *testing.T) {
	t.Parallel()
	noDefault, _ := openMall(t, nil)
	_, byDefault := openMall(t, func(_, other int64) int64 { return other })
	sole := openShop(t, embeddedRedis(t))
	gone, _ := openMall(t, func(one, other int64) int64 { return one + other })
	nameless := func(s *shop) *shopper {
		keyless := *s
		keyless.Key = ""
		return keyless.guest(t)
	}

	noDefault.guest(t).ok("GET", "/cart", "")
	nameless(noDefault).refused(400, "store_required", "GET", "/cart", "").names(t, "X-Public-Key")
	nameless(gone).refused(400, "store_required", "POST", "/cart/add", `{"product_id":1}`)
	nameless(sole).add(`{"product_id":1}`)
	nameless(byDefault).add(`{"product_id":21}`)
	byDefault.guest(t).add(`{"product_id":21}`)

	c := nameless(noDefault)
	c.JWT = noDefault.token(t, "1001")
	c.add(`{"product_id":1}`)
	noDefault.customer(t, "1001").wantLines("1×1")

	for _, key := range []string{"pk_nobody", "pk demo", "'; drop table stores; --", strings.Repeat("k", 300), "pk_\xff", "*"} {
		noDefault.guest(t).refused(400, "store_unknown", "GET", "/cart", "", "X-Public-Key", key).names(t, "X-Public-Key")
	}
}

func TestStore_KeepsItsCartsApart(t *testing.T) {
	t.Parallel()
	one, other := openMall(t, nil)
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

func TestCustomer_NeverGetsACartToken(t *testing.T) {
	s := newShop(t)
	c := s.customer(t, "1001")
	for _, call := range [][3]string{
		{"GET", "/cart"},
		{"POST", "/cart/add", addOne},
		{"GET", "/cart/count"},
		{"GET", "/cart/summary"},
		{"PATCH", "/cart/items/1", `{"quantity":2}`},
		{"DELETE", "/cart/items/1"},
		{"DELETE", "/cart/clear"},
	} {
		for _, guest := range []string{"", "too-short", strings.Repeat("g", 22)} {
			if call[0] == "DELETE" || call[0] == "PATCH" {
				c.add(`{"product_id":1}`)
			}
			a := c.ok(call[0], call[1], call[2], "X-Cart-Token", guest)
			assert.That(t, a.Body.Data.CartToken == nil && a.Header.Get("X-Cart-Token") == "", "%s %s: %s", call[0], call[1], a.Raw)
		}
	}
	assert.That(t, c.refused(400, "cart_invalid", "GET", "/cart/validate", "").Header.Get("X-Cart-Token") == "", "validate issued a token")
}

// claimsOf returns the claims of a valid token with edits, as name, value, …; a nil value
// removes a claim.
func (s *shop) claimsOf(edits ...any) jwt.MapClaims {
	claims := jwt.MapClaims{"sub": "1001", "store_id": s.ID, "exp": time.Now().Add(time.Hour).Unix()}
	for i := 0; i+1 < len(edits); i += 2 {
		claims[edits[i].(string)] = edits[i+1]
		if edits[i+1] == nil {
			delete(claims, edits[i].(string))
		}
	}
	return claims
}

func signed(t testing.TB, method jwt.SigningMethod, key any, claims jwt.Claims) string {
	t.Helper()
	return assert.Must(jwt.NewWithClaims(method, claims).SignedString(key))(t)
}

// Package auth tests all kinds of tokens.
func TestCustomer_TokenIsRefused(t *testing.T) {
	s := newShop(t)
	hs := func(edits ...any) string {
		return "Bearer " + signed(t, jwt.SigningMethodHS256, []byte(jwtSecret), s.claimsOf(edits...))
	}
	good := hs()
	_, rest, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	refused := map[string]string{
		"unsigned":         "Bearer " + signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, s.claimsOf()),
		"another's secret": "Bearer " + signed(t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), s.claimsOf()),
		"expired":          hs("exp", time.Now().Add(-31*time.Second).Unix()),
		"store of nobody":  hs("store_id", s.ID+1),
		"no sub":           hs("sub", nil),
		"empty":            "",
		"a store's token":  "Bearer 1|" + strings.Repeat("s", 40),
		"two tokens":       good + ", " + good,
		"9 KiB":            "Bearer " + strings.Repeat("a", 9<<10),
	}
	s.customer(t, "1001").add(`{"product_id":1}`)
	guest := s.guest(t)
	before := guest.add(`{"product_id":1}`).Header.Get("ETag")
	for name, header := range refused {
		for _, call := range [][3]string{{"GET", "/cart"}, {"POST", "/cart/add", `{"product_id":1}`}} {
			a := guest.refused(401, "unauthenticated", call[0], call[1], call[2], "Authorization", header)
			assert.That(t, a.Header.Get("WWW-Authenticate") == "Bearer" && len(a.Body.Errors["Authorization"]) == 1 && a.Header.Get("X-Cart-Token") == "", "%s: names %v, headers %v", name, a.Body.Errors, a.Header)
		}
	}
	assert.That(t, guest.tag() == before, "a refused customer was served as a guest")
	s.customer(t, "1001").wantLines("1×1")
	log := s.Log.String()
	assert.That(t, !strings.Contains(log, signature) && !strings.Contains(log, payload), "a token got into the log")
}

func TestCustomer_WithAnySubjectHasTheirOwnCart(t *testing.T) {
	s := realShop(t)
	subjects := []string{
		"1001", "c", "sara@example.com", "Sara@example.com", "a:b", "1:g:x", "{1:c:1001}", "}", "*", "a b", "é", "أحمد",
		strings.Repeat("c", 64), strings.Repeat("c", 65), strings.Repeat("c", 255), strings.Repeat("é", 255), "~x", "1001\n", "\x00", "../1001",
	}
	for i, sub := range subjects {
		s.customer(t, sub).add(`{"product_id":1,"qty":` + strconv.Itoa(i+1) + `}`)
	}
	for i, sub := range subjects {
		s.customer(t, sub).wantLines("1×" + strconv.Itoa(i+1))
	}
	form := regexp.MustCompile(`^cart:\{` + strconv.FormatInt(s.ID, 10) + `:c:([A-Za-z0-9_-]{1,64}|~[A-Za-z0-9_-]{22})\}$`)
	for _, key := range s.keys(t) {
		assert.That(t, form.MatchString(key), "Redis holds %s", key)
	}
	assert.That(t, !strings.Contains(strings.ToLower(s.Log.String()), "sara@"), "a customer's e-mail address is in the log")
}

func TestCustomer_IsUnknownWithoutASecret(t *testing.T) {
	s := newShop(t, func(p *server.Parts) { p.JWT = nil })
	s.customer(t, "1001").refused(401, "unauthenticated", "GET", "/cart", "")
	s.guest(t).ok("GET", "/cart", "")
}

func TestCartToken_AMalformedOneCountsAsNone(t *testing.T) {
	s := realShop(t)
	const own = "hostile0"
	const usable = "aaaaaaaaaaaaaaaaaaaaaa"
	hostile := []string{
		"", strings.Repeat("a", 13) + own, strings.Repeat("a", 121) + own, strings.Repeat("a", 9<<10) + own, // too short or too long
		"aaaaaaaaaaaa aaaaaaaaaaa" + own, "aaaaaaaaaaa\taaaaaaaaaaaa" + own, usable + "%0a" + own, usable + "%00" + own,
		"éééééééééééééééééééééé" + own, usable + "\xff" + own, usable + "," + usable + own, `"` + usable + own + `"`, usable + "==" + own,
		"*?[a-z]aaaaaaaaaaaaaaaaaaaa" + own, "{1:c:1001}aaaaaaaaaaaaaaa" + own, "cart:{1:c:1001}:replays" + own, "*1\\r\\n$8\\r\\nFLUSHALL\\r\\n" + own,
	}
	issued := map[string]bool{}
	for _, token := range hostile {
		c := s.guest(t)
		a := c.add(`{"product_id":1}`, "X-Cart-Token", token)
		assert.That(t, c.Token != token && len(c.Token) >= 22 && a.Header.Get("X-Cart-Token") == c.Token && !issued[c.Token], "%.50q: got the token %q", token, c.Token)
		issued[c.Token] = true
		c.wantLines("1×1")
		assert.That(t, c.ok("GET", "/cart/validate", "", "X-Public-Key", s.Key).Header.Get("X-Cart-Token") == "", "%.50q: validate issued a token", token)
		assert.That(t, c.refused(404, "item_not_found", "PATCH", "/cart/items/1", `{"quantity":2}`, "X-Cart-Token", token).Header.Get("X-Cart-Token") == "", "%.50q: a refusal issued a token", token)
	}
	form := regexp.MustCompile(fmt.Sprintf(`^cart:\{%d:g:[A-Za-z0-9_-]{22}\}$`, s.ID))
	for _, key := range s.keys(t) {
		assert.That(t, form.MatchString(key) && !strings.Contains(key, own), "Redis holds %s", key)
	}
	assert.Equal(t, len(s.keys(t)), len(hostile), "keys of the carts")
	assert.That(t, !strings.Contains(s.Log.String(), own), "a token got into the log")
}

func TestCartToken_OfAnExpiredCartStartsAnEmptyOne(t *testing.T) {
	s := realShop(t)
	c := s.guest(t)
	stale := c.add(`{"product_id":1}`).Header.Get("X-Cart-Token")
	assert.NoError(t, s.Redis.Del(t.Context(), s.keys(t)...).Err())
	got := c.cart()
	assert.That(t, c.Token == stale && got.Version == 0 && len(got.Items) == 0, "an expired cart: %+v", got)
	c.add(`{"product_id":2}`)
	c.wantLines("2×1")
}

func TestCartToken_MayBeGeneratedByTheClient(t *testing.T) {
	s := newShop(t)
	for _, token := range []string{"own-" + strings.Repeat("Aa0_-", 4)[:18], strings.Repeat("Zz9_", 32)} {
		c := s.guest(t)
		c.Token = token
		assert.That(t, c.add(`{"product_id":1}`).Header.Get("X-Cart-Token") == "" && c.Token == token, "%q: issued %q", token, c.Token)
		s.with(t, c).wantLines("1×1")
	}
}
