package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/cmd/internal/telemetry"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

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
	soon(t, n, func() int {
		return count(t, db, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name LIKE '% listener' AND state = 'idle'`)
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
			db, try := writer(t, url), 0
			eventually(t, func() string { // a busy machine may make one try late
				try++
				instances := []*running{startServe(t, url, "RATE_LIMIT=off"), startServe(t, url, "RATE_LIMIT=off")}
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

func TestCatalog_ReportsStoresWithAnUnknownCurrencyImmediately(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	db := writer(t, url)
	change(t, db, `INSERT INTO stores (id, name, currency) VALUES (1, 'Shop', 'SAR'), (7, 'Shop', 'XYZ'), (8, 'Shop', 'XYZ')`)
	log := &logLines{}
	catalog := openCatalog(db, telemetry.New("test"), slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(catalog.listen(context.WithoutCancel(t.Context()), func(context.Context) {}))
	log.wait(t, 0, `level=ERROR .*currency=XYZ stores=2 first_store=7`)

	change(t, db, `INSERT INTO stores (id, name, currency) VALUES (9, 'Shop', 'QQQ')`) // while it runs
	log.wait(t, 0, `level=ERROR .*currency=QQQ stores=1 first_store=9`)
	assert.That(t, !strings.Contains(log.String(), "currency=SAR"), "a known currency is reported")
	assert.Equal(t, strings.Count(log.String(), "currency=XYZ"), 1, "reports of a currency within a minute")
}
