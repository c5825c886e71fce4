package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/cart"
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

func TestCatalog_ShowsEveryColumnOfAProductWithinASecond(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	db := writer(t, url)
	reader := openCatalog(db, nil, slog.New(slog.DiscardHandler))
	t.Cleanup(reader.listen(context.WithoutCancel(t.Context()), func(context.Context) {}))
	change(t, db, `INSERT INTO products (store_id, id, name, slug, type, price, original_price) VALUES (1, 30, 'Pass', 'pass', 'digital', 1, 1);
		INSERT INTO plans (store_id, id, product_id, duration, price) VALUES (1, 301, 30, 'monthly', 1);
		INSERT INTO fields (store_id, product_id, name, position) VALUES (1, 30, 'Size', 0);
		INSERT INTO field_options (store_id, product_id, field, code, name, position) VALUES (1, 30, 'Size', 's', 'Small', 0)`)
	wantListeners(t, db, 1)
	for name, column := range map[string]struct {
		change string // of product 30; %d is a number
		shown  func(*cart.Product) string
		want   string
	}{
		"name":           {`UPDATE products SET name = 'N%d' WHERE id = 30`, func(p *cart.Product) string { return p.Name.Own }, "N%d"},
		"names":          {`UPDATE products SET names = '{"ar": "N%d"}' WHERE id = 30`, func(p *cart.Product) string { return p.Name.In(locale.Ar) }, "N%d"},
		"tax_ppm":        {`UPDATE products SET tax_ppm = %d WHERE id = 30`, func(p *cart.Product) string { return number(p.TaxRate) }, "%d"},
		"max_per_cart":   {`UPDATE products SET max_per_cart = %d WHERE id = 30`, func(p *cart.Product) string { return number(p.MaxPerCart) }, "%d"},
		"step":           {`UPDATE products SET step = %d WHERE id = 30`, func(p *cart.Product) string { return number(&p.Step) }, "%d"},
		"label":          {`UPDATE plans SET label = 'L%d' WHERE id = 301`, func(p *cart.Product) string { return p.Plans[0].Text(locale.En) }, "L%d"},
		"labels":         {`UPDATE plans SET label = 'L', labels = '{"ar": "L%d"}' WHERE id = 301`, func(p *cart.Product) string { return p.Plans[0].Text(locale.Ar) }, "L%d"},
		"option's names": {`UPDATE field_options SET names = '{"ar": "O%d"}' WHERE product_id = 30`, func(p *cart.Product) string { return p.Fields[0].Options[0].Name.In(locale.Ar) }, "O%d"},
	} {
		inTime(t, func(try int) string {
			shown := func() string {
				products, err := reader.products.Products(t.Context(), 1, []int64{30})
				if err != nil || products[30] == nil || len(products[30].Plans) == 0 || len(products[30].Fields) == 0 {
					return fmt.Sprint("nothing: ", err)
				}
				return column.shown(products[30])
			}
			shown()
			change(t, db, fmt.Sprintf(column.change, try))
			changed, want := time.Now(), fmt.Sprintf(column.want, try)
			for {
				sent := time.Since(changed)
				got := shown()
				if got == want {
					return ""
				}
				if sent > time.Second {
					return fmt.Sprintf("%s: %q %v after the change, want %q", name, got, sent, want)
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
}

// number formats a number, "" for nil.
func number(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}
