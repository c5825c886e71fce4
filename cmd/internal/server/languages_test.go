package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/period"
)

// inArabic has the header of a shopper who reads Arabic.
var inArabic = []string{"Accept-Language", "ar"}

// pass is a product with every text that can be translated.
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
	onEachRedis(t, func(t *testing.T, s *shop) {
		s.Catalog.Put(s.ID, pass("بطاقة"))
		c := s.guest(t)
		c.add(addPass)
		english, arabic := c.ok("GET", "/cart", ""), c.ok("GET", "/cart", "", inArabic...)
		s.Catalog.Put(s.ID, pass("بطاقة دخول"))
		unchanged := c.send("GET", "/cart", "", "If-None-Match", english.Header.Get("ETag"))
		changed := c.send("GET", "/cart", "", append(inArabic, "If-None-Match", arabic.Header.Get("ETag"))...)
		require(t, unchanged.Status == 304 && changed.Status == 200, "English %d, want 304; Arabic %d, want 200", unchanged.Status, changed.Status)
		equal(t, changed.Body.Data.Items[0].Name, "بطاقة دخول", "the Arabic name")
	})
}

func TestLanguages_ACartIsInTheLanguageOfTheRequestElseTheStores(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
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
			noError(t, json.Unmarshal(c.ok("GET", "/cart", "", "Accept-Language", language).Raw, &texts))
			i := texts.Data.Items[0]
			got := [6]string{i.Name, i.Product.Name, i.Fields[0].Value, i.Plan.Duration, i.Plan.Text, i.Plan.English}
			assert(t, got == want, "in %q: %q, want %q", language, got, want)
		}
	})
}

func TestLanguages_SentencesUseTheNameInTheirLanguage(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		p := pass("بطاقة")
		two := int64(2)
		p.Stock = &two
		s.Catalog.Put(s.ID, p)
		c := s.guest(t)
		want := func(where, got, name string) {
			t.Helper()
			assert(t, strings.Contains(got, "«"+name+"»"), "%s: %q does not name %q", where, got, name)
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
	})
}
