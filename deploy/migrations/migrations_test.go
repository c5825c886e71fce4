package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"commerce/cart/money"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/migrations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func dial(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn := assert.Must(pgx.Connect(t.Context(), url))(t)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func open(t *testing.T, url string) *migrations.Migrator {
	t.Helper()
	config := assert.Must(pgx.ParseConfig(url))(t)
	m := assert.Must(migrations.Open(config))(t)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func exec(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, args...)
	assert.Require(t, err == nil, "%s: %v", sql, err)
}

// downAndUp rolls back all migrations and repeats them. Nothing may be left in between, and the
// objects must be the same at the end.
func downAndUp(t *testing.T, conn *pgx.Conn, m *migrations.Migrator, up func(context.Context) (migrations.Result, error)) {
	t.Helper()
	full := objects(t, conn)
	assert.Require(t, len(full) != 0, "the migrations created nothing")
	downTo(t, m, 0)
	assert.Equal(t, objects(t, conn), []string{}, "left after all migrations were rolled back")
	assert.Must(up(t.Context()))(t)
	assert.Equal(t, objects(t, conn), full, "schema after down and up (-before +after)")
}

// newRole returns a name for a role. Roles belong to all databases.
func newRole(name string) string { return fmt.Sprintf("%s_%d", name, time.Now().UnixNano()) }

// objects lists the relations, functions and types of a schema.
func objects(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	return texts(t, conn, `
		SELECT relkind::text || ' ' || relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname NOT LIKE 'goose%'
		UNION ALL SELECT 'f ' || proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
		UNION ALL SELECT 't ' || typname FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typname NOT LIKE '%goose%'
		ORDER BY 1`)
}

func TestMigrations_CanBeRolledBackAndRepeated(t *testing.T) {
	t.Parallel()
	url := ephemeral.Postgres(t)
	conn, m := dial(t, url), open(t, url)
	assert.Must(m.Up(t.Context()))(t)
	downAndUp(t, conn, m, m.Up)
	steps, err := m.Up(t.Context())
	assert.That(t, err == nil && len(steps.Applied) == 0, "repeated Up applied %v, %v; want nothing", steps, err)
}

func TestMigrations_CanRunConcurrently(t *testing.T) {
	t.Parallel()
	url := ephemeral.Postgres(t)
	var taken [2]migrations.Result
	var both sync.WaitGroup
	for i := range taken {
		m := open(t, url)
		both.Go(func() {
			var err error
			taken[i], err = m.Up(t.Context())
			assert.Succeeds(t, err, "Up")
		})
	}
	both.Wait()
	all := assert.Must(open(t, url).Status(t.Context()))(t)
	assert.That(t, len(taken[0].Applied)+len(taken[1].Applied) == len(all),
		"applied %v and %v, want each migration once", taken[0], taken[1])
}

func TestCheck_DistinguishesOlderEarlyAndMissingRights(t *testing.T) {
	t.Parallel()
	reader := newRole("reader")
	for name, test := range map[string]struct {
		prepare string // SQL to run on a migrated database
		says    string
		is      error // nil: any other error, or none
	}{
		"as built for":  {"", "", nil},
		"never touched": {"DROP TABLE goose_db_version", "version 0, want", migrations.ErrOlder},
		"too old":       {"DELETE FROM goose_db_version WHERE version_id > 0", "version 0, want", migrations.ErrOlder},
		"too early":     {"UPDATE goose_db_version SET version_id = 12 WHERE version_id > 0", "version 12, want", migrations.ErrEarly},
		"newer":         {"INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true); CREATE TABLE later (); REVOKE ALL ON later FROM CURRENT_USER", "", nil},
		"not all ours":  {"CREATE ROLE " + reader + "; GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + reader + "; REVOKE SELECT ON coupon_uses FROM " + reader + "; SET ROLE " + reader, "coupon_uses: the role lacks rights", migrations.ErrRights},
		"no version":    {"CREATE ROLE " + reader + "2; SET ROLE " + reader + "2", "goose_db_version: the role lacks rights", migrations.ErrRights},
		"closed to us":  {"ALTER TABLE goose_db_version RENAME version_id TO version", "read schema version", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, ephemeral.Migrated(t))
			exec(t, conn, test.prepare)
			err := migrations.Check(t.Context(), conn)
			assert.Require(t, (err == nil) == (test.says == "") && (test.is == nil || errors.Is(err, test.is)),
				"Check: %v, want one that is %v", err, test.is)
			assert.That(t, err == nil || strings.Contains(err.Error(), test.says) && !strings.Contains(err.Error(), "\n"),
				"Check: %q, want one line with %q", err, test.says)
		})
	}
}

// Rights are needed on exactly the tables of the migrations.
func TestCheck_NamesEachTableOfTheSchema(t *testing.T) {
	t.Parallel()
	conn := dial(t, ephemeral.Migrated(t))
	reader := newRole("no_reader")
	all := texts(t, conn, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1")
	exec(t, conn, "CREATE TABLE anothers (); CREATE ROLE "+reader+"; GRANT SELECT ON goose_db_version TO "+reader+"; SET ROLE "+reader)
	all = slices.DeleteFunc(all, func(name string) bool { return name == "goose_db_version" })
	err := migrations.Check(t.Context(), conn)
	want := strings.Join(all, ", ") + ": the role lacks rights"
	assert.That(t, err != nil && strings.HasPrefix(err.Error(), want), "Check: %v, want %s", err, want)
}

// counted counts the statements on a connection.
type counted struct {
	*pgx.Conn
	statements int
}

func (c *counted) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	c.statements++
	return c.Conn.QueryRow(ctx, sql, args...)
}

// Otherwise a check of a slow network takes several times as long as a request.
func TestCheck_IsOneStatement(t *testing.T) {
	t.Parallel()
	conn := &counted{Conn: dial(t, ephemeral.Migrated(t))}
	err := migrations.Check(t.Context(), conn)
	assert.That(t, err == nil && conn.statements == 1, "%d statements, %v", conn.statements, err)
}

// downTo rolls back all migrations after a version.
func downTo(t *testing.T, m *migrations.Migrator, version int64) {
	t.Helper()
	for {
		step := assert.Must(m.Down(t.Context()))(t)
		if step == nil || step.Version <= version+1 {
			return
		}
	}
}

// oldRows breaks two rules of 00104, each in one row.
const oldRows = aShop + threeSubscriptions + `
	INSERT INTO fields (store_id, product_id, name, position) VALUES (1, 1, '7 ', 1);
	UPDATE subscriptions SET order_id = 9007199254740992 WHERE id = 3`

// In each form of the tables, values that the tables refuse end the migration before it changes
// anything.
func TestMigrations_AddTheRulesOfTheCatalogToOldRows(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"ordinary", "partitioned", "sharded"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			url := ephemeral.Postgres(t)
			conn, m := dial(t, url), open(t, url)
			up := m.Up
			if form == "sharded" {
				up = m.UpSharded
			}
			assert.Must(up(t.Context()))(t)
			downTo(t, m, 103)
			exec(t, conn, oldRows)
			if form == "partitioned" {
				exec(t, conn, "BEGIN; "+script(t, "partitions.sql")+" COMMIT")
			}
			before := definitions(t, conn)
			for _, wrong := range []struct{ says, mend string }{
				{"subscriptions.order_id has the value 9007199254740992", "UPDATE subscriptions SET order_id = 3 WHERE id = 3"},
				{`fields.name has the value "7 "`, "UPDATE fields SET name = 'seven' WHERE name = '7 '"},
			} {
				_, err := up(t.Context())
				assert.That(t, err != nil && strings.Contains(err.Error(), wrong.says), "Up: %v, want %s", err, wrong.says)
				assert.Equal(t, definitions(t, conn), before, "after Up failed (-before +after)")
				exec(t, conn, wrong.mend)
			}
			if form != "partitioned" { // leaves an index that is not valid, like a build that was interrupted
				_, err := conn.Exec(t.Context(), "CREATE UNIQUE INDEX CONCURRENTLY subscriptions_by_order ON subscriptions (store_id)")
				assert.That(t, err != nil, "a unique index on equal values")
			}
			assert.Must(up(t.Context()))(t)
			assert.Equal(t, texts(t, conn, "SELECT DISTINCT conname FROM pg_constraint WHERE NOT convalidated"), []string{}, "not validated")
			assert.Equal(t, texts(t, conn, `SELECT format('%s %s %s', indexrelid::regclass, pg_get_indexdef(indexrelid) ~ '\(store_id, order_id, id\)', indisvalid)
				FROM pg_index WHERE indexrelid::regclass::text IN ('subscriptions_by_order', 'subscriptions_by_period_end') OR NOT indisvalid ORDER BY 1`),
				[]string{"subscriptions_by_order t t", "subscriptions_by_period_end f t"}, "indexes: their name, whether by order, whether valid")
			for change, rule := range map[string]string{
				"UPDATE subscriptions SET order_id = 9007199254740992": "subscription_order_is_a_safe_integer",
				"UPDATE subscriptions SET id = 9007199254740992":       "subscription_id_is_a_safe_integer",
			} {
				_, err := conn.Exec(t.Context(), change)
				refused, _ := errors.AsType[*pgconn.PgError](err)
				assert.That(t, refused != nil && refused.ConstraintName == rule, "%s: %v", change, err)
			}
			exec(t, conn, "UPDATE products SET price = original_price + 1")
			downTo(t, m, 103)
			assert.Equal(t, definitions(t, conn), before, "after up and down (-before +after)")
		})
	}
}

// A reader that holds a table for long does not make others wait for long. What comes before is
// committed, so it holds no locks meanwhile. The migration can be repeated.
func TestMigrations_GiveUpOnALockedTable(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	url := ephemeral.Migrated(t)
	conn, m := dial(t, url), open(t, url)
	downTo(t, m, 103)
	exec(t, conn, "BEGIN; LOCK fields IN ACCESS SHARE MODE")
	_, err := m.Up(t.Context())
	assert.That(t, err != nil && strings.Contains(err.Error(), "lock timeout"), "Up: %v", err)
	assert.Equal(t, texts(t, conn, "SELECT conname FROM pg_constraint WHERE conname = 'store_id_is_a_safe_integer' AND convalidated"), []string{"store_id_is_a_safe_integer"}, "committed")
	exec(t, conn, "COMMIT")
	assert.Must(m.Up(t.Context()))(t)
}

// The tables take subscriptions in the currencies whose decimals package money knows. An old row in another
// one is named.
func TestMigrations_RefuseSubscriptionsInUnknownCurrencies(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, m := dial(t, url), open(t, url)
	downTo(t, m, 112)
	exec(t, conn, aShop+threeSubscriptions+"UPDATE subscriptions SET currency = 'XYZ' WHERE id = 2")
	_, err := m.Up(t.Context())
	assert.That(t, err != nil && strings.Contains(err.Error(), "subscription 2 of store 1 has the unknown currency XYZ"), "Up: %v", err)
	exec(t, conn, "UPDATE subscriptions SET currency = 'USD' WHERE id = 2")
	assert.Must(m.Up(t.Context()))(t)

	accepted := texts(t, conn, "SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint WHERE conname = 'subscription_currency_is_known'")[0]
	letters := "(SELECT chr(l) AS c FROM generate_series(65, 90) l)"
	codes := texts(t, conn, fmt.Sprintf("SELECT currency FROM (SELECT a.c || b.c || c.c AS currency FROM %[1]s a, %[1]s b, %[1]s c) every WHERE %[2]s ORDER BY 1", letters, accepted))
	var known []string
	for i := range 26 * 26 * 26 {
		if code := string([]byte{'A' + byte(i/676), 'A' + byte(i/26%26), 'A' + byte(i%26)}); money.Known(code) {
			known = append(known, code)
		}
	}
	assert.Equal(t, codes, known, "currencies that the tables take, and those that are known: replace the constraint")
}

func TestSchema_KeepsSubscriptionsVisibleToTheirIndexes(t *testing.T) {
	t.Parallel()
	conn := dial(t, ephemeral.Migrated(t))
	options := texts(t, conn, "SELECT unnest(reloptions) FROM pg_class WHERE oid = 'subscriptions'::regclass")
	want := []string{"fillfactor=90", "autovacuum_vacuum_scale_factor=0.02", "autovacuum_vacuum_insert_scale_factor=0.02"}
	assert.Equal(t, options, want, "options")
}

const aShop = `
	INSERT INTO stores (id, name, currency) VALUES (1, 'Shop', 'SAR');
	INSERT INTO products (store_id, id, name, slug, type, price, original_price) VALUES (1, 1, 'Book', 'book', 'digital', 500, 500), (1, 2, 'Club', 'club', 'subscription', 0, 0);
	INSERT INTO plans (store_id, id, product_id, duration, price) VALUES (1, 21, 2, 'monthly', 100);
	INSERT INTO fields (store_id, product_id, name, position) VALUES (1, 1, 'Region', 0);
	INSERT INTO field_options (store_id, product_id, field, code, name, position) VALUES (1, 1, 'Region', 'sa', 'Saudi Arabia', 0);
	INSERT INTO coupons (store_id, code, rate_ppm) VALUES (1, 'TEN', 100000);`

// aRestriction adds a restricted coupon and a use of it.
const aRestriction = `
	INSERT INTO coupons (store_id, code, rate_ppm, max_uses) VALUES (1, 'BOOKS', 100000, 9);
	INSERT INTO coupon_products (store_id, code, product_id) VALUES (1, 'BOOKS', 1);
	INSERT INTO coupon_uses (store_id, code, customer, order_id) VALUES (1, 'BOOKS', 'c', 7);`

func TestSchema_RejectsImpossibleRowsByConstraintName(t *testing.T) {
	t.Parallel()
	conn := dial(t, ephemeral.Migrated(t))
	exec(t, conn, aShop+aRestriction)
	for _, url := range []string{"https://shop.example", "https://shop.example:444/en/cart?a=b", "http://localhost", "http://127.0.0.1:8080/cart", "http://[::1]:80/?a"} {
		exec(t, conn, `UPDATE stores SET host = 'shop-1.example', cart_url = $1`, url)
	}
	for change, rule := range map[string]string{
		`INSERT INTO stores (id, name, currency) VALUES (0, 'Shop', 'SAR')`:       "store_id_is_positive",
		`UPDATE stores SET name = ''`:                                             "store_has_a_name",
		`UPDATE stores SET currency = 'sar'`:                                      "store_currency_is_iso_4217",
		`UPDATE stores SET language = 'fr'`:                                       "store_language_is_known",
		`UPDATE stores SET tax_ppm = 1000001`:                                     "store_tax_is_a_share",
		`INSERT INTO publishable_keys VALUES ('pk demo', 1)`:                      "key_is_visible_ascii",
		`INSERT INTO publishable_keys VALUES ('pk', 2)`:                           "publishable_keys_store_id_fkey",
		`UPDATE products SET price = -1`:                                          "product_price_is_in_range",
		`UPDATE products SET price = 100000000001, original_price = 100000000001`: "product_price_is_in_range",
		`UPDATE products SET original_price = 1000000000001`:                      "product_original_price_is_in_range",
		`UPDATE products SET original_price = -1`:                                 "product_original_price_is_in_range",
		`UPDATE stores SET id = 9007199254740992`:                                 "store_id_is_a_safe_integer",
		`UPDATE products SET id = 9007199254740992 WHERE id = 1`:                  "product_id_is_a_safe_integer",
		`UPDATE plans SET id = 9007199254740992`:                                  "plan_id_is_a_safe_integer",
		`UPDATE products SET stock = -1`:                                          "product_stock_is_in_range",
		`UPDATE products SET min_quantity = 0`:                                    "product_min_quantity_is_in_range",
		`UPDATE products SET min_quantity = 3, max_quantity = 2`:                  "product_max_quantity_is_in_range",
		`UPDATE products SET names = '[]'`:                                        "product_names_are_translations",
		`UPDATE products SET names = '"ar"'`:                                      "product_names_are_translations",
		`UPDATE products SET names = 'null'`:                                      "product_names_are_translations",
		`UPDATE products SET names = '{"fr": "Livre"}'`:                           "product_names_are_translations",
		`UPDATE products SET names = '{"ar": ""}'`:                                "product_names_are_translations",
		`UPDATE products SET names = '{"ar": 5}'`:                                 "product_names_are_translations",
		`UPDATE products SET names = '{"ar": null}'`:                              "product_names_are_translations",
		`UPDATE products SET names = '{"ar": {"ar": "كتاب"}}'`:                    "product_names_are_translations",
		`UPDATE products SET names = jsonb_build_object('ar', repeat('ب', 501))`:  "product_names_are_translations",
		`UPDATE products SET tax_ppm = -1`:                                        "product_tax_is_a_share",
		`UPDATE products SET tax_ppm = 1000001`:                                   "product_tax_is_a_share",
		`UPDATE products SET max_per_cart = 0`:                                    "product_max_per_cart_is_in_range",
		`UPDATE products SET min_quantity = 2, max_per_cart = 1`:                  "product_max_per_cart_is_in_range",
		`UPDATE products SET max_per_cart = 1000001`:                              "product_max_per_cart_is_in_range",
		`UPDATE products SET step = 0`:                                            "product_step_is_in_range",
		`UPDATE products SET step = 1000001`:                                      "product_step_is_in_range",
		`UPDATE field_options SET names = '{"ar": ""}'`:                           "option_names_are_translations",
		`UPDATE plans SET label = ''`:                                             "plan_label_is_short",
		`UPDATE plans SET label = 'Pass', labels = '{"fr": "Carte"}'`:             "plan_labels_are_translations",
		`UPDATE plans SET labels = '{"ar": "بطاقة"}'`:                             "plan_labels_translate_a_label",
		`UPDATE products SET slug = ''`:                                           "product_has_a_slug",
		`UPDATE products SET image_url = ''`:                                      "product_image_has_a_url",
		`UPDATE products SET id = 1`:                                              "products_pkey",
		`UPDATE plans SET duration = 'weekly'`:                                    "plan_duration_is_known",
		`UPDATE plans SET price = -1`:                                             "plan_price_is_in_range",
		`UPDATE plans SET price = 100000000001`:                                   "plan_price_is_in_range",
		`UPDATE plans SET product_id = 3`:                                         "plans_store_id_product_id_fkey",
		`UPDATE fields SET name = ''`:                                             "field_has_a_name",
		`UPDATE fields SET name = '0'`:                                            "field_name_is_no_position",
		`INSERT INTO fields VALUES (1, 1, 'Email', true, 0)`:                      "field_has_a_position_of_its_own",
		`UPDATE field_options SET field = 'Email'`:                                "field_options_store_id_product_id_field_fkey",
		`UPDATE field_options SET price = -1`:                                     "option_price_is_in_range",
		`UPDATE field_options SET price = 10000000001`:                            "option_price_is_in_range",
		`UPDATE fields SET position = 25`:                                         "field_position_is_in_range",
		`INSERT INTO coupons (store_id, code, amount) VALUES (1, 'five', 500)`:    "coupon_code_is_upper_case",
		`UPDATE coupons SET code = ' TEN'`:                                        "coupon_code_is_trimmed",
		`UPDATE coupons SET code = repeat('خ', 65)`:                               "coupon_code_is_short",
		`UPDATE coupons SET code = U&'CAFE\0301'`:                                 "coupon_code_is_normalized",
		`INSERT INTO coupons (store_id, code) VALUES (1, 'NONE')`:                 "coupon_is_a_rate_or_an_amount",
		`UPDATE coupons SET amount = 500`:                                         "coupon_is_a_rate_or_an_amount",
		`UPDATE coupons SET rate_ppm = 0`:                                         "coupon_rate_is_a_share",
		`UPDATE coupons SET max_uses = 0`:                                         "coupon_max_uses_is_in_range",
		`UPDATE coupons SET max_uses = 1000001`:                                   "coupon_max_uses_is_in_range",
		`UPDATE coupons SET max_uses_customer = 0`:                                "coupon_max_uses_customer_is_in_range",
		`UPDATE coupons SET starts_at = '-infinity'`:                              "coupon_starts_at_is_a_date",
		`UPDATE coupons SET starts_at = now(), expires_at = now()`:                "coupon_starts_before_it_expires",
		`INSERT INTO coupon_products VALUES (1, 'TEN', 0)`:                        "coupon_product_id_is_positive",
		`INSERT INTO coupon_products VALUES (1, 'NEW', 1)`:                        "coupon_products_store_id_code_fkey",
		`INSERT INTO coupon_uses VALUES (1, 'BOOKS', NULL, 7)`:                    "use_counts_once_an_order",
		`INSERT INTO coupon_uses VALUES (1, 'books', NULL, 8)`:                    "use_code_is_normal",
		`INSERT INTO coupon_uses VALUES (1, 'BOOKS', '', 8)`:                      "use_customer_is_short",
		`INSERT INTO coupon_uses VALUES (1, 'BOOKS', NULL, 0)`:                    "use_order_id_is_positive",
		`INSERT INTO coupon_uses VALUES (2, 'BOOKS', NULL, 8)`:                    "coupon_uses_store_id_fkey",

		`UPDATE stores SET host = ''`:                                                                               "store_host_is_a_host_in_lower_case",
		`UPDATE stores SET host = 'Shop.example'`:                                                                   "store_host_is_a_host_in_lower_case",
		`UPDATE stores SET host = 'shop.example:443'`:                                                               "store_host_is_a_host_in_lower_case",
		`UPDATE stores SET host = repeat('a', 254)`:                                                                 "store_host_is_a_host_in_lower_case",
		`UPDATE stores SET cart_url = 'https:///cart'`:                                                              "store_cart_url_is_https_without_a_fragment",
		`UPDATE stores SET cart_url = 'https://me@shop.example'`:                                                    "store_cart_url_is_https_without_a_fragment",
		`UPDATE stores SET cart_url = 'https://shop.example/cart#'`:                                                 "store_cart_url_is_https_without_a_fragment",
		`UPDATE stores SET cart_url = 'http://shop.example/cart'`:                                                   "store_cart_url_is_https_without_a_fragment",
		`UPDATE stores SET cart_url = 'https://shop.example/سلة'`:                                                   "store_cart_url_is_https_without_a_fragment",
		`UPDATE stores SET cart_url = 'http://localhost.example/cart'`:                                              "store_cart_url_is_https_without_a_fragment",
		`UPDATE stores SET cart_url = 'https://a/' || repeat('a', 1991)`:                                            "store_cart_url_is_https_without_a_fragment",
		`UPDATE stores SET host = 'a'; INSERT INTO stores (id, name, currency, host) VALUES (2, 'Two', 'SAR', 'a')`: "store_host_is_its_own",
	} {
		_, err := conn.Exec(t.Context(), change)
		var refusal *pgconn.PgError
		assert.That(t, errors.As(err, &refusal) && refusal.ConstraintName == rule,
			"%s: %v, want a violation of %s", change, err, rule)
	}
}

func TestSchema_NotifiesOfEveryChange(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, listener := dial(t, url), dial(t, url)
	exec(t, conn, aShop)
	exec(t, listener, "LISTEN commerce")
	for _, step := range []struct {
		change string
		want   []string
	}{
		{`UPDATE products SET stock = 3 WHERE id = 1`, []string{"product 1 1"}},
		{`UPDATE products SET names = '{"ar": "كتاب"}' WHERE id = 1`, []string{"product 1 1"}},
		{`UPDATE products SET tax_ppm = 0 WHERE id = 1`, []string{"product 1 1"}},
		{`UPDATE products SET max_per_cart = 1, step = 2 WHERE id = 1`, []string{"product 1 1"}},
		{`UPDATE plans SET label = 'Pass', labels = '{"ar": "بطاقة"}'`, []string{"product 1 2"}},
		{`UPDATE field_options SET names = '{"ar": "السعودية"}'`, []string{"product 1 1"}},
		{`UPDATE products SET price = price WHERE false`, nil},
		{`UPDATE plans SET price = 200`, []string{"product 1 2"}},
		{`UPDATE plans SET product_id = 1`, []string{"product 1 1", "product 1 2"}},
		{`UPDATE field_options SET price = 5`, []string{"product 1 1"}},
		{`DELETE FROM fields`, []string{"product 1 1"}},
		{`DELETE FROM products WHERE id = 1`, []string{"product 1 1"}},
		{`INSERT INTO products (store_id, id, name, slug, type, price, original_price)
			SELECT 1, n, 'Book', 'book', 'digital', 1, 1 FROM generate_series(101, 400) n`, []string{"product *"}},
		{`INSERT INTO plans (store_id, id, product_id, duration, price)
			SELECT 1, n, 101 + n % 2, 'monthly', 1 FROM generate_series(1001, 1400) n`, []string{"product 1 101", "product 1 102"}},
		{`INSERT INTO plans (store_id, id, product_id, duration, price)
			SELECT 1, n, n - 2000 + 100, 'monthly', 1 FROM generate_series(2001, 2101) n`, []string{"product *"}},
		{`UPDATE coupons SET minimum = 5`, []string{"coupon 1 TEN"}},
		{`INSERT INTO coupon_products SELECT 1, 'TEN', n FROM generate_series(1, 400) n`, []string{"coupon 1 TEN"}},
		{`DELETE FROM coupon_products WHERE product_id < 0`, nil},
		{`DELETE FROM coupon_products WHERE product_id > 2`, []string{"coupon 1 TEN"}},
		{`UPDATE coupon_products SET product_id = 3 WHERE product_id = 2`, []string{"coupon 1 TEN"}},
		{`INSERT INTO coupon_uses (store_id, code, order_id) VALUES (1, 'TEN', 1)`, nil},
		{`INSERT INTO publishable_keys VALUES ('pk', 1)`, []string{"store"}},
		{`UPDATE stores SET host = 'shop.example'`, []string{"store"}},
	} {
		exec(t, conn, step.change)
		exec(t, conn, "NOTIFY commerce, 'end'")
		got := map[string]bool{}
		for {
			ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(5*time.Second))
			n, err := listener.WaitForNotification(ctx)
			cancel()
			assert.Require(t, err == nil, "%s: %v", step.change, err)
			if n.Payload == "end" {
				break
			}
			got[n.Payload] = true
		}
		want := map[string]bool{}
		for _, message := range step.want {
			want[message] = true
		}
		assert.Equal(t, got, want, "%s: notifications", step.change)
	}
}

func TestGrant_GivesWhatARoleNeedsOnOurTablesAlone(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, m := dial(t, url), open(t, url)
	exec(t, conn, "CREATE TABLE anothers ()")
	beRoleWith := func(rights []string) {
		number := time.Now().UnixNano() // roles belong to all databases
		role, quoted := fmt.Sprintf(`"Granted" %d`, number), fmt.Sprintf(`"""Granted"" %d"`, number)
		exec(t, conn, "RESET ROLE; CREATE ROLE "+quoted)
		for range 2 { // safe to repeat
			assert.NoError(t, m.Grant(t.Context(), role, rights))
		}
		exec(t, conn, "SET ROLE "+quoted)
	}
	forbidden := []string{
		"SELECT FROM anothers", "UPDATE api_tokens SET revoked_at = NULL", "DELETE FROM subscriptions", "INSERT INTO goose_db_version DEFAULT VALUES",
	}
	beRoleWith(migrations.ServiceRights())
	assert.Succeeds(t, migrations.Check(t.Context(), conn), "Check")
	exec(t, conn, "UPDATE api_tokens SET last_used_at = now()")
	wantRefused(t, conn, append(forbidden, "DELETE FROM deleted_subscriptions")...)

	beRoleWith(migrations.PruneRights())
	assert.Succeeds(t, migrations.CheckVersion(t.Context(), conn), "CheckVersion")
	exec(t, conn, "DELETE FROM deleted_subscriptions")
	wantRefused(t, conn, append(forbidden, "SELECT FROM customers", "UPDATE api_tokens SET last_used_at = now()",
		"SELECT metadata FROM subscriptions", "DELETE FROM pruned_deletions", "INSERT INTO deleted_subscriptions DEFAULT VALUES")...)
}

// wantRefused expects that each statement is not permitted.
func wantRefused(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, forbidden := range statements {
		_, err := conn.Exec(t.Context(), forbidden)
		refused, ok := errors.AsType[*pgconn.PgError](err)
		assert.That(t, ok && refused.Code == "42501", "%s: %v, want insufficient_privilege", forbidden, err)
	}
}

// In a schema that only its owner may use, and that lacks the tables of changes.
func TestGrant_OpensTheSchemaOfAShardedDatabase(t *testing.T) {
	t.Parallel()
	conn, m := sharded(t)
	role := newRole("granted")
	exec(t, conn, "REVOKE USAGE ON SCHEMA public FROM PUBLIC; CREATE ROLE "+role)
	assert.NoError(t, m.Grant(t.Context(), role, migrations.ServiceRights()))
	exec(t, conn, "SET ROLE "+role)
	exec(t, conn, "SELECT FROM subscriptions")
}

func TestCheckRole_RefusesARoleThatDoesNotExist(t *testing.T) {
	t.Parallel()
	m := open(t, ephemeral.Migrated(t))
	assert.ErrorIs(t, m.CheckRole(t.Context(), "nobody"), migrations.ErrNoRole, "a role that does not exist")
	assert.Succeeds(t, m.CheckRole(t.Context(), "pg_monitor"), "a role that exists")
}
