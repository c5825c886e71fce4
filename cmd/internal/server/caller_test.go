package server_test

import (
	"strconv"
	"strings"
	"testing"

	"commerce/auth"
	"commerce/cart/money"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/sample"
)

// openMall is a service with two stores. other sells product 21, and may be the default.
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

func TestCustomer_IsUnknownWithoutASecret(t *testing.T) {
	s := newShop(t, func(p *server.Parts) { p.JWT = nil })
	s.customer(t, "1001").refused(401, "unauthenticated", "GET", "/cart", "")
	s.guest(t).ok("GET", "/cart", "")
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
