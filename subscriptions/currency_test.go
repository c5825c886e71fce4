package subscriptions_test

import (
	"fmt"
	"strings"
	"testing"

	"commerce/auth/store"
)

// An amount in a currency whose decimals are not known could be wrong by a factor of a
// hundred, so neither the page nor the subscription is shown.
func TestSubscriptions_InAnUnknownCurrencyAreUnavailable(t *testing.T) {
	t.Parallel()
	d := sixStates()
	d.all[1].Currency = "XYZ"
	onEach(t, d, func(t *testing.T, b bundle) {
		for _, url := range []string{"/subscriptions", "/subscriptions/2"} {
			refused := b.refused(t, url, 1)
			if refused.Code != "unavailable" || !strings.Contains(refused.Text, `subscription 2 of store 1: unknown currency "XYZ"`) {
				t.Errorf("%s: %+v, want unavailable and the row in the log", url, refused)
			}
		}
		for _, url := range []string{"/subscriptions?per_page=4", "/subscriptions/1"} { // without it
			if w := b.do(url, 1, "en"); w.Code != 200 || !strings.Contains(w.Body.String(), `"amount":20,`) {
				t.Errorf("%s: %d %s", url, w.Code, w.Body)
			}
		}
	})
}

func TestSubscriptions_OfAStoreInAnUnknownCurrencyAreUnavailable(t *testing.T) {
	t.Parallel()
	d := sixStates()
	b := newBundle(sources["memory"](t, d), &store.Store{ID: 1, Currency: "XYZ"})
	for _, url := range []string{"/subscriptions", "/subscriptions/1", "/subscriptions?per_page=1"} {
		refused := b.refused(t, url, 1)
		if want := fmt.Sprintf("store %d: unknown currency %q", 1, "XYZ"); refused.Code != "unavailable" || !strings.Contains(refused.Text, want) {
			t.Errorf("%s: %+v, want unavailable and %s in the log", url, refused, want)
		}
	}
}
