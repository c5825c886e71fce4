package server_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

var inArabic = []string{"Accept-Language", "ar"}

func pass(arabic string) *cart.Product {
	translated := func(own, arabic string) locale.Name {
		return locale.Name{Own: own, Others: map[locale.Locale]string{locale.Ar: arabic}}
	}
	return &cart.Product{
		ID: 30, Name: translated("Pass", arabic), Active: true, MinQuantity: 1, Price: 1000,
		Plans: []cart.Plan{{ID: 301, Duration: period.Monthly, Label: translated("Month pass", "بطاقة شهر")}},
		Fields: []cart.Field{
			{Name: "Size", Required: true, Options: []cart.Option{{Code: "s", Name: translated("Small", "صغير")}}},
		},
	}
}

const addPass = `{"product_id":30,"subscription_plan":301,"fields":{"Size":"s"}}`

func TestLanguages_AChangedArabicNameChangesOnlyTheArabicAnswer(t *testing.T) {
	s := newShop(t)
	s.Catalog.Put(s.ID, pass("بطاقة"))
	c := s.guest(t)
	c.add(addPass)
	english, arabic := c.ok("GET", "/cart", ""), c.ok("GET", "/cart", "", inArabic...)
	s.Catalog.Put(s.ID, pass("بطاقة دخول"))
	unchanged := c.send("GET", "/cart", "", "If-None-Match", english.Header.Get("ETag"))
	changed := c.send("GET", "/cart", "", append(inArabic, "If-None-Match", arabic.Header.Get("ETag"))...)
	assert.Require(t, unchanged.Status == 304 && changed.Status == 200, "English %d, want 304; Arabic %d, want 200", unchanged.Status, changed.Status)
	assert.Equal(t, changed.Body.Data.Items[0].Name, "بطاقة دخول", "the Arabic name")
}

func TestLanguages_ACartIsInTheLanguageOfTheRequestElseTheStores(t *testing.T) {
	s := newShop(t)
	s.Catalog.Put(s.ID, pass("بطاقة"))
	c := s.guest(t)
	c.add(addPass)
	english := [6]string{"Pass", "Pass", "Small", "monthly", "Month pass", "Month pass"}
	for language, want := range map[string][6]string{
		"":   english,
		"en": english,
		"fr": english,
		"ar": {"بطاقة", "بطاقة", "صغير", "monthly", "بطاقة شهر", "Month pass"},
	} {
		var texts struct {
			Data struct {
				Items []struct {
					Name    string
					Product struct{ Name string }
					Fields  []struct{ Value string } `json:"custom_fields"`
					Plan    struct {
						Duration string
						Text     string `json:"duration_text"`
						English  string `json:"duration_text_en"`
					} `json:"subscription_plan"`
				}
			}
		}
		assert.NoError(t, json.Unmarshal(c.ok("GET", "/cart", "", "Accept-Language", language).Raw, &texts))
		i := texts.Data.Items[0]
		got := [6]string{i.Name, i.Product.Name, i.Fields[0].Value, i.Plan.Duration, i.Plan.Text, i.Plan.English}
		assert.That(t, got == want, "in %q: %q, want %q", language, got, want)
	}
}

func TestLanguages_SentencesUseTheNameInTheirLanguage(t *testing.T) {
	s := newShop(t)
	p := pass("بطاقة")
	two := int64(2)
	p.Stock = &two
	s.Catalog.Put(s.ID, p)
	c := s.guest(t)
	want := func(where, got, name string) {
		t.Helper()
		assert.That(t, strings.Contains(got, "«"+name+"»"), "%s: %q does not name %q", where, got, name)
	}
	a := c.refused(422, "field_missing", "POST", "/cart/add", `{"product_id":30,"subscription_plan":301}`, inArabic...)
	want("refusal of an answer", a.Body.Message, "بطاقة")
	a = c.refused(422, "insufficient_stock", "POST", "/cart/add", strings.Replace(addPass, "{", `{"qty":3,`, 1), inArabic...)
	want("refusal by Redis", a.Body.Message, "بطاقة")
	c.add(strings.Replace(addPass, "{", `{"qty":2,`, 1))
	want("warning", c.ok("GET", "/cart/validate", "", inArabic...).Body.Data.Warnings[0].Message, "بطاقة")
	gone := *p
	gone.Active = false
	s.Catalog.Put(s.ID, &gone)
	a = c.refused(400, "cart_invalid", "GET", "/cart/validate", "", inArabic...)
	want("error", a.Body.Data.Errors[0], "بطاقة")
	want("issue", a.Body.Data.Issues[0].Message, "بطاقة")
	want("issue of a line", c.ok("GET", "/cart", "", inArabic...).Body.Data.Items[0].Issue.Message, "بطاقة")

	s.Catalog.Put(s.ID, &cart.Product{ID: 31, Name: locale.Named("Pen")})
	a = c.refused(422, "product_inactive", "POST", "/cart/add", `{"product_id":31}`, inArabic...)
	want("a name without an Arabic one", a.Body.Message, "Pen")
}

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

func TestAcceptLanguage_AffectsOnlyTexts(t *testing.T) {
	t.Parallel()
	in := func(l locale.Locale) *shop {
		return openShop(t, embeddedRedis(t), func(p *server.Parts) {
			given := *assert.Must(p.Stores.Sole(t.Context()))(t)
			given.Locale = l
			p.Stores = auth.NewMemoryStores(money.Known, &given)
		})
	}
	english, arabic := in(locale.En), in(locale.Ar)
	isArabic := regexp.MustCompile(`\p{Arabic}`).MatchString
	read := func(language string) answer {
		c := english.guest(t)
		c.add(`{"product_id":4,"subscription_plan":41,"qty":2}`)
		return c.ok("GET", "/cart/summary", "", "Accept-Language", language)
	}
	en, ar := read("en"), read("ar")
	assert.That(t, !isArabic(string(en.Raw)) && isArabic(string(ar.Raw)), "en: %s\nar: %s", en.Raw, ar.Raw)
	assert.Equal(t, ar.Body.Data.sums(), en.Body.Data.sums(), "numbers in Arabic, compared with English")
	assert.Equal(t, ar.Body.Data.Items[0].UnitPrice, en.Body.Data.Items[0].UnitPrice, "price in Arabic, compared with English")
	c := arabic.guest(t)
	before := c.refused(401, "unauthenticated", "GET", "/cart", "", "Authorization", "x", "Accept-Language", "ar").Body.Message
	outside := c.refused(404, "not_found", "GET", "/nothing", "", "Accept-Language", "ar").Body.Message
	assert.That(t, isArabic(before) && isArabic(outside), "before the store is known: %s; outside of any store: %s", before, outside)
}
