package subscriptions_test

import (
	"fmt"
	"strings"
	"testing"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/deploy/assert"
	"commerce/subscriptions"
	"commerce/subscriptions/suite"
)

func TestResponses_MatchGoldenFiles(t *testing.T) {
	t.Parallel()
	d := suite.SixStates()
	suite.OnEach(t, d, func(t *testing.T, b suite.Bundle) {
		for _, language := range []string{"en", "ar"} {
			suite.Golden(t, "list."+language, b, "http://shop.test/subscriptions", language)
			for _, s := range d.All {
				suite.Golden(t, string(s.Status)+"."+language, b, fmt.Sprintf("http://shop.test/subscriptions/%d", s.ID), language)
			}
		}
	})
}

func TestProductNamesAndErrors_AreInTheLanguageOfTheRequestElseTheStores(t *testing.T) {
	t.Parallel()
	d := suite.SixStates()
	one := d.All[1]
	one.Card, one.Scheduled = nil, nil
	d.All, d.Customers = nil, nil
	for store, name := range map[int64]locale.Name{ // stores 1 and 2 are in English, 4 is in Arabic
		1: {Own: "Club", Others: map[locale.Locale]string{locale.Ar: "نادي"}},
		2: locale.Named("Club"),
		4: {Own: "نادي", Others: map[locale.Locale]string{locale.En: "Club"}},
	} {
		s := one
		s.StoreID, s.Product.Name = store, name
		d.All = append(d.All, s)
		d.Customers = append(d.Customers, subscriptions.Customer{StoreID: store, ID: s.CustomerID})
	}
	suite.OnEach(t, d, func(t *testing.T, b suite.Bundle) {
		for _, tt := range []struct {
			store          int64
			language, want string
		}{
			{1, "en", "Club"},
			{1, "ar", "نادي"},
			{1, "fr", "Club"},
			{1, "", "Club"},
			{1, strings.Repeat("ar-SA-x-", 128), "Club"},
			{2, "en", "Club"},
			{2, "ar", "Club"},
			{4, "en", "Club"},
			{4, "ar", "نادي"},
			{4, "fr", "نادي"},
			{4, "", "نادي"},
		} {
			for _, url := range []string{"/subscriptions/2", "/subscriptions"} {
				body := b.Do(url, tt.store, tt.language).Body.String()
				assert.That(t, strings.Count(body, `"product":{"id":4,"name":"`+tt.want+`",`) == 1,
					"store %d in %q: %s, want %q once", tt.store, tt.language, body, tt.want)
			}
			if tt.store == 2 {
				continue // has no Arabic name
			}
			language := map[string]string{"Club": "en", "نادي": "ar"}[tt.want]
			body := b.Do("/subscriptions?page=0", tt.store, tt.language).Body.String()
			assert.That(t, strings.Contains(body, `"Language":"`+language+`"`), "%+v: %s, want %s", tt, body, language)
		}
	})
}

func TestPrice_IsExactInEveryCurrency(t *testing.T) {
	t.Parallel()
	d := suite.SixStates()
	one := d.All[1]
	d.All = nil
	currencies := map[int64]string{1: "SAR", 2: "USD", 3: "JPY", 4: "KWD"}
	for store, currency := range currencies {
		s := one
		s.StoreID, s.Currency, s.Price, s.Variant.Price = store, currency, 4950, 10
		s.Card, s.Scheduled = nil, nil
		d.All = append(d.All, s)
		d.Customers = append(d.Customers, subscriptions.Customer{StoreID: store, ID: s.CustomerID})
	}
	d.Customers = d.Customers[1:]
	suite.OnEach(t, d, func(t *testing.T, b suite.Bundle) {
		for _, tt := range []struct {
			store         int64
			amount, price string // of the subscription and of its variant
			en, ar        string
		}{
			{1, "49.5", "0.1", "SAR\u00a049.50", "49.50\u00a0ر.س."},
			{2, "49.5", "0.1", "$49.50", "49.50\u00a0US$"},
			{3, "4950", "10", "¥4,950", "4,950\u00a0JP¥"},
			{4, "4.95", "0.01", "KWD\u00a04.950", "4.950\u00a0د.ك."},
		} {
			for language, text := range map[string]string{"en": tt.en, "ar": tt.ar} {
				body := visible(b.Do("/subscriptions/2", tt.store, language).Body.String())
				duration := map[string]string{"en": "1 month", "ar": "شهر"}[language]
				for _, want := range []string{
					fmt.Sprintf(`"price":{"amount":%s,"formatted":"%s","currency":"%s"}`, tt.amount, text, currencies[tt.store]),
					fmt.Sprintf(`"variant":{"id":41,"duration":"monthly","duration_text":"%s","price":%s}`, duration, tt.price),
				} {
					assert.That(t, strings.Contains(body, want), "store %d in %s: %s, want %s", tt.store, language, body, want)
				}
			}
		}
	})
}

// visible removes the direction marks of mixed text.
func visible(s string) string {
	return strings.NewReplacer("\u200f", "", "\u200e", "", "\u061c", "").Replace(s)
}

// An amount in a currency whose decimals are not known could be wrong by a factor of a
// hundred, so neither the page nor the subscription is shown.
func TestSubscriptions_InAnUnknownCurrencyAreUnavailable(t *testing.T) {
	t.Parallel()
	d := suite.SixStates()
	d.All[1].Currency = "XYZ"
	b := suite.NewBundle(suite.NewMemory(nil, d.All)) // Postgres refuses the row
	for _, url := range []string{"/subscriptions", "/subscriptions/2"} {
		b.WantRefused(t, url, 1, "unavailable", `subscription 2 of store 1: unknown currency "XYZ"`)
		w := b.Do(url, 1, "en")
		assert.That(t, strings.Contains(w.Body.String(), "Subscription 2 has the currency XYZ"), "%s: %s", url, w.Body)
	}
	for _, url := range []string{"/subscriptions?per_page=4", "/subscriptions/1"} { // without it
		w := b.Do(url, 1, "en")
		assert.That(t, w.Code == 200 && strings.Contains(w.Body.String(), `"amount":20,`), "%s: %d %s", url, w.Code, w.Body)
	}
}

func TestSubscriptions_OfAStoreInAnUnknownCurrencyAreUnavailable(t *testing.T) {
	t.Parallel()
	b := suite.NewBundle(suite.NewMemory(nil, suite.SixStates().All), &store.Store{ID: 1, Currency: "XYZ"})
	for _, url := range []string{"/subscriptions", "/subscriptions/1", "/subscriptions?per_page=1"} {
		b.WantRefused(t, url, 1, "unavailable", `store 1: unknown currency "XYZ"`)
	}
}
