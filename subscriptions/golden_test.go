package subscriptions_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/period"
	"commerce/deploy/assert"
	"commerce/subscriptions"
)

var update = flag.Bool("update", false, "write the answers as they are now into testdata")

// sixStates returns one subscription per state, numbered in order. Each nullable member is
// null in at least one of them, and not null in another.
func sixStates() data {
	name := locale.Name{Own: "Pro membership", Others: map[locale.Locale]string{locale.Ar: "العضوية الاحترافية"}}
	product := subscriptions.Product{ID: 4, Name: name, Slug: "pro-membership", Type: "subscription"}
	monthly := subscriptions.Variant{ID: 41, Duration: period.Monthly, Price: 2500}
	yearly := subscriptions.Variant{ID: 42, Duration: period.Annually, Price: 20000}
	start := time.Date(2025, 11, 6, 8, 30, 15, 250000000, time.UTC)
	of := func(id int64, status subscriptions.Status) subscriptions.Subscription {
		return subscriptions.Subscription{
			ID: id, StoreID: 1, CustomerID: 1001, Status: status, StartsAt: start, EndsAt: start.AddDate(0, 1, 0),
			PeriodStart: start, PeriodEnd: start.AddDate(0, 1, 0), Duration: period.Monthly, OrderID: 900 + id,
			Price: 2000, Currency: "SAR", Product: product, Variant: monthly,
			Card: &subscriptions.Card{LastFour: "4242", Scheme: "visa"}, CreatedAt: start, UpdatedAt: start.Add(time.Microsecond),
		}
	}
	trialing, active, pastDue := of(1, subscriptions.Trialing), of(2, subscriptions.Active), of(3, subscriptions.PastDue)
	paused, canceled, expired := of(4, subscriptions.Paused), of(5, subscriptions.Canceled), of(6, subscriptions.Expired)

	trialing.TrialEndsAt = start.AddDate(0, 0, 14)
	trialing.PeriodEnd, trialing.EndsAt = trialing.TrialEndsAt, trialing.TrialEndsAt
	active.ExternalCustomerID = "crm-7"
	// Postgres does not keep the order of members; it returns this one.
	active.Metadata = []byte(`{"seats": 3, "nested": {"list": [1, 2.50, null]}, "campaign": "رمضان"}`)
	active.Scheduled = &yearly
	pastDue.PeriodEnd = now.Add(-time.Hour)
	pastDue.EndsAt, pastDue.NextRetryAt, pastDue.GraceEndsAt = pastDue.PeriodEnd, now.Add(23*time.Hour), now.AddDate(0, 0, 3)
	paused.PausedAt, paused.PausedRemainingDays = now.AddDate(0, 0, -4), 20
	canceled.CancelAtPeriodEnd, canceled.CanceledAt = true, now.AddDate(0, 0, -2)
	expired.StartsAt, expired.PeriodStart = start.AddDate(0, -3, 0), start.AddDate(0, -3, 0)
	expired.PeriodEnd, expired.EndsAt, expired.Card = start.AddDate(0, -2, 0), start.AddDate(0, -2, 0), nil
	customers := []subscriptions.Customer{{StoreID: 1, ID: 1001, Email: "Sara@Example.com", Phone: "501234567", CallingCode: "966"}}
	return data{customers, []subscriptions.Subscription{trialing, active, pastDue, paused, canceled, expired}}
}

func TestResponses_MatchGoldenFiles(t *testing.T) {
	t.Parallel()
	d := sixStates()
	onEach(t, d, func(t *testing.T, b bundle) {
		for _, language := range []string{"en", "ar"} {
			golden(t, "list."+language, b, "http://shop.test/subscriptions", language)
			for _, s := range d.all {
				golden(t, string(s.Status)+"."+language, b, fmt.Sprintf("http://shop.test/subscriptions/%d", s.ID), language)
			}
		}
	})
}

// golden compares a response with its file, including the order of members.
func golden(t *testing.T, name string, b bundle, url, language string) {
	t.Helper()
	var got bytes.Buffer
	assert.NoError(t, json.Indent(&got, b.do(url, 1, language).Body.Bytes(), "", "  "))
	got.WriteByte('\n')
	file := filepath.Join("testdata", name+".json")
	if *update {
		assert.NoError(t, os.WriteFile(file, got.Bytes(), 0o644))
	}
	assert.Equal(t, got.String(), string(assert.Must(os.ReadFile(file))(t)), "%s", name)
}

func TestProductNamesAndErrors_AreInTheLanguageOfTheRequestElseTheStores(t *testing.T) {
	t.Parallel()
	d := sixStates()
	one := d.all[1]
	one.Card, one.Scheduled = nil, nil
	d.all, d.customers = nil, nil
	for store, name := range map[int64]locale.Name{ // stores 1 and 2 are in English, 4 is in Arabic
		1: {Own: "Club", Others: map[locale.Locale]string{locale.Ar: "نادي"}},
		2: locale.Named("Club"),
		4: {Own: "نادي", Others: map[locale.Locale]string{locale.En: "Club"}},
	} {
		s := one
		s.StoreID, s.Product.Name = store, name
		d.all = append(d.all, s)
		d.customers = append(d.customers, subscriptions.Customer{StoreID: store, ID: s.CustomerID})
	}
	onEach(t, d, func(t *testing.T, b bundle) {
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
				body := b.do(url, tt.store, tt.language).Body.String()
				assert.That(t, strings.Count(body, `"product":{"id":4,"name":"`+tt.want+`",`) == 1,
					"store %d in %q: %s, want %q once", tt.store, tt.language, body, tt.want)
			}
			if tt.store == 2 {
				continue // has no Arabic name
			}
			language := map[string]string{"Club": "en", "نادي": "ar"}[tt.want]
			body := b.do("/subscriptions?page=0", tt.store, tt.language).Body.String()
			assert.That(t, strings.Contains(body, `"Language":"`+language+`"`), "%+v: %s, want %s", tt, body, language)
		}
	})
}

func TestPrice_IsExactInEveryCurrency(t *testing.T) {
	t.Parallel()
	d := sixStates()
	one := d.all[1]
	d.all = nil
	currencies := map[int64]string{1: "SAR", 2: "USD", 3: "JPY", 4: "KWD"}
	for store, currency := range currencies {
		s := one
		s.StoreID, s.Currency, s.Price, s.Variant.Price = store, currency, 4950, 10
		s.Card, s.Scheduled = nil, nil
		d.all = append(d.all, s)
		d.customers = append(d.customers, subscriptions.Customer{StoreID: store, ID: s.CustomerID})
	}
	d.customers = d.customers[1:]
	onEach(t, d, func(t *testing.T, b bundle) {
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
				body := visible(b.do("/subscriptions/2", tt.store, language).Body.String())
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
	d := sixStates()
	d.all[1].Currency = "XYZ"
	onEach(t, d, func(t *testing.T, b bundle) {
		for _, url := range []string{"/subscriptions", "/subscriptions/2"} {
			b.wantRefused(t, url, 1, "unavailable", `subscription 2 of store 1: unknown currency "XYZ"`)
		}
		for _, url := range []string{"/subscriptions?per_page=4", "/subscriptions/1"} { // without it
			w := b.do(url, 1, "en")
			assert.That(t, w.Code == 200 && strings.Contains(w.Body.String(), `"amount":20,`), "%s: %d %s", url, w.Code, w.Body)
		}
	})
}

func TestSubscriptions_OfAStoreInAnUnknownCurrencyAreUnavailable(t *testing.T) {
	t.Parallel()
	b := newBundle(sources["memory"](t, sixStates()), &store.Store{ID: 1, Currency: "XYZ"})
	for _, url := range []string{"/subscriptions", "/subscriptions/1", "/subscriptions?per_page=1"} {
		b.wantRefused(t, url, 1, "unavailable", `store 1: unknown currency "XYZ"`)
	}
}
