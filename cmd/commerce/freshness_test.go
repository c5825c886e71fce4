package main

import (
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

// seeded is a database with the sample in it.
func seeded(t *testing.T) string {
	t.Helper()
	url := ephemeral.Migrated(t)
	onDatabase(t, url, "seed")
	return url
}

const cutListeners = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
	WHERE datname = current_database() AND application_name LIKE '% listener'`

func TestShops_ShowAChangeOnEveryInstanceWithinASecond(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{ // in the transaction that changes the price
		"when told":              "",
		"with the listener cut":  cutListeners + ";",
		"with nobody being told": "ALTER TABLE products DISABLE TRIGGER ALL;",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := seeded(t)
			instances := []instance{startInstance(t, url), startInstance(t, url)}
			token := instances[0].mustCall(t, "", "POST", "/cart/add", `{"product_id":1}`).Data.CartToken
			for _, i := range instances {
				i.mustCall(t, token, "GET", "/cart", "")
			}
			change(t, writer(t, url), before+"UPDATE products SET price = 100 WHERE (store_id, id) = (1, 1)")
			changed := time.Now()
			for n, i := range instances {
				for {
					began := time.Since(changed)
					price := i.mustCall(t, token, "GET", "/cart", "").Data.Items[0].UnitPrice
					if price == "1" {
						t.Logf("instance %d shows the new price after %v", n, time.Since(changed))
						break
					}
					if began > time.Second {
						t.Fatalf("instance %d still shows %s to a request sent %v after the change", n, price, began)
					}
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
}

// One request after the bound suffices, however long nobody had asked before.
func TestShops_ShowTheFirstWhoAsksWhatNobodyWasToldOf(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	i := startInstance(t, url)
	token := i.mustCall(t, "", "POST", "/cart/add", `{"product_id":1}`).Data.CartToken
	change(t, writer(t, url), "ALTER TABLE products DISABLE TRIGGER ALL; UPDATE products SET price = 100 WHERE id = 1")
	time.Sleep(time.Second)
	if price := i.mustCall(t, token, "GET", "/cart", "").Data.Items[0].UnitPrice; price != "1" {
		t.Errorf("price %s, want 1", price)
	}
}
