package main

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/ephemeral"
)

// seeded returns the URL of a database with the sample data.
func seeded(t *testing.T) string {
	t.Helper()
	url := ephemeral.Migrated(t)
	onDatabase(t, url, "seed")
	return url
}

const cutListeners = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
	WHERE datname = current_database() AND application_name LIKE '% listener'`

// wantListeners waits until n instances listen. An instance reloads everything when it
// starts to listen, and would show a change for that reason alone.
func wantListeners(t *testing.T, db *pgxpool.Pool, n int) {
	t.Helper()
	eventually(t, func() string {
		var listening int
		err := db.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name LIKE '% listener' AND state = 'idle'`).Scan(&listening)
		if err != nil || listening != n {
			return fmt.Sprintf("%d listeners, want %d: %v", listening, n, err)
		}
		return ""
	})
	time.Sleep(50 * time.Millisecond) // until they have noticed
}

func TestCatalog_ShowsAChangeOnEveryInstanceWithinASecond(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{ // SQL to run in the transaction that changes the price
		"with a notification":    "",
		"with a lost connection": cutListeners + ";",
		"without a notification": "ALTER TABLE products DISABLE TRIGGER ALL;",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := seeded(t)
			db := writer(t, url)
			inTime(t, func(try int) string {
				instances := []instance{startInstance(t, url), startInstance(t, url)}
				token := instances[0].mustCall(t, "", "POST", "/cart/add", `{"product_id":1}`).Data.CartToken
				wantListeners(t, db, 2*try)
				for _, i := range instances { // holds what it just read from now on
					i.mustCall(t, token, "GET", "/cart", "")
				}
				change(t, db, fmt.Sprintf("%sUPDATE products SET price = %d WHERE (store_id, id) = (1, 1)", before, 100*try))
				changed := time.Now()
				for n, i := range instances {
					for {
						sent := time.Since(changed)
						price := i.mustCall(t, token, "GET", "/cart", "").Data.Items[0].UnitPrice
						if price.String() == strconv.Itoa(try) {
							break
						}
						if sent > time.Second {
							return fmt.Sprintf("instance %d still shows %s to a request sent %v after the change", n, price, sent)
						}
						time.Sleep(5 * time.Millisecond)
					}
				}
				return ""
			})
		})
	}
}

// inTime repeats try until it finds nothing wrong, at most eight times, because a busy
// machine may make one try late. Tries must not depend on earlier ones.
func inTime(t *testing.T, try func(n int) (wrong string)) {
	t.Helper()
	const tries = 8
	for n := 1; ; n++ {
		wrong := try(n)
		if wrong == "" {
			return
		}
		if n == tries {
			t.Fatalf("the last of %d tries: %s", tries, wrong)
		}
	}
}

// The first request after a second sees the change, even without a notification and
// without other requests.
func TestCatalog_ShowsAChangeWithoutANotificationToTheNextRequest(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	db := writer(t, url)
	inTime(t, func(try int) string {
		i := startInstance(t, url)
		token := i.mustCall(t, "", "POST", "/cart/add", `{"product_id":1}`).Data.CartToken
		wantListeners(t, db, try)
		i.mustCall(t, token, "GET", "/cart", "") // holds what it just read from now on
		change(t, db, fmt.Sprintf("ALTER TABLE products DISABLE TRIGGER ALL; UPDATE products SET price = %d WHERE id = 1", 100*try))
		time.Sleep(time.Second)
		if price := i.mustCall(t, token, "GET", "/cart", "").Data.Items[0].UnitPrice; price.String() != strconv.Itoa(try) {
			return fmt.Sprintf("price %s, want %d", price, try)
		}
		return ""
	})
}
