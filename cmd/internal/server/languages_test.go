package server_test

import (
	"strings"
	"testing"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

func TestErrors_AreArabicInAnArabicStore(t *testing.T) {
	t.Parallel()
	arabic := func(p *server.Parts) {
		store := assert.Must(p.Stores.Sole(t.Context()))(t)
		other := *store
		other.ID, other.PublicKeys = store.ID+50_000, []string{"pk_english"}
		ours := *store
		ours.Locale = locale.Ar
		p.Stores, p.DefaultStore = auth.NewMemoryStores(money.Known, &ours, &other), other.ID
	}
	s := openShop(t, embeddedRedis(t), arabic)
	customer := s.customer(t, "1001")
	inArabic := func(a answer) bool { return strings.ContainsAny(a.Body.Message, "ابتثج") }
	for _, test := range []struct {
		name, method, path string
		status             int
		headers            []string
		arabic             bool
	}{
		{"unknown route", "GET", "/nothing", 404, []string{"X-Public-Key", s.Key}, true},
		{"wrong method", "PUT", "/cart", 405, []string{"X-Public-Key", s.Key}, true},
		{"bad token", "GET", "/cart", 401, []string{"X-Public-Key", s.Key, "Authorization", "Bearer x"}, true},
		{"by its customer", "GET", "/nothing", 404, []string{"X-Public-Key", "", "Authorization", "Bearer " + customer.JWT}, true},
		{"another store's customer", "GET", "/cart", 401, []string{"X-Public-Key", "pk_english", "Authorization", "Bearer " + customer.JWT}, false},
		{"asked for English", "GET", "/nothing", 404, []string{"X-Public-Key", s.Key, "Accept-Language", "en"}, false},
		{"the default store", "GET", "/nothing", 404, []string{"X-Public-Key", ""}, false},
		{"an unknown key", "GET", "/nothing", 404, []string{"X-Public-Key", "pk_unknown"}, false},
	} {
		a := s.guest(t).send(test.method, test.path, "", test.headers...)
		assert.That(t, a.Status == test.status && inArabic(a) == test.arabic, "%s: %d %q, want %d, Arabic %v", test.name, a.Status, a.Body.Message, test.status, test.arabic)
	}
	alone := openShop(t, embeddedRedis(t), func(p *server.Parts) { arabic(p); p.DefaultStore = 0 })
	alone.Key = ""
	assert.That(t, !inArabic(alone.guest(t).send("GET", "/nothing", "")), "without a store the error is Arabic")
}
