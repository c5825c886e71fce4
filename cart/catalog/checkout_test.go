package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/lastknown"
	"commerce/cart/catalog"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

var errUsedUp = errors.New("no row")

// checkouts plays the platform's checkout with the SQL of docs/cart.md.
type checkouts struct {
	db         *pgxpool.Pool
	statements []string // without BEGIN and COMMIT
}

// documented returns the first SQL of a section of docs/cart.md.
func documented(t *testing.T, section string) string {
	t.Helper()
	_, text, _ := strings.Cut(string(assert.Must(os.ReadFile("../../docs/cart.md"))(t)), "### "+section+"\n")
	_, sql, _ := strings.Cut(text, "```sql\n")
	sql, _, found := strings.Cut(sql, "```")
	assert.Require(t, found, "docs/cart.md has no SQL in %q", section)
	return strings.TrimSpace(sql)
}

func openCheckouts(t *testing.T) *checkouts {
	t.Helper()
	statements := strings.Split(documented(t, "Counting the use of a coupon"), ";\n")
	assert.Require(t, len(statements) == 4 && statements[0] == "BEGIN ISOLATION LEVEL READ COMMITTED" && strings.HasSuffix(statements[3], "COMMIT;"),
		"docs/cart.md has no SQL of checkout from BEGIN to COMMIT: %q", statements)
	url := ephemeral.Migrated(t)
	db := ephemeral.OpenPool(t, url, connect.PostgresConfig{
		Writable: true, StatementTimeout: -1, Edit: func(c *pgxpool.Config) { c.MaxConns = 20 },
	})
	assert.Must(db.Exec(t.Context(), "INSERT INTO stores (id, name, currency) VALUES (1, 'Shop', 'SAR')"))(t)
	return &checkouts{db, statements[1:3]}
}

// place counts the uses of an order's coupons, in the given order.
func (c *checkouts) place(ctx context.Context, customer string, order int, codes ...string) error {
	quoted := "NULL"
	if customer != "" {
		quoted = "'" + customer + "'"
	}
	fill := func(statement, code string) string {
		return strings.NewReplacer("'GIFT', 'ONCE'", "'"+strings.Join(codes, "', '")+"'", "'ONCE'", "'"+code+"'",
			"'1001'", quoted, "7100", strconv.Itoa(order)).Replace(statement)
	}
	return pgx.BeginFunc(ctx, c.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fill(c.statements[0], "")); err != nil {
			return err
		}
		for _, code := range codes {
			var counted int
			err := tx.QueryRow(ctx, fill(c.statements[1], code)).Scan(&counted)
			if errors.Is(err, pgx.ErrNoRows) {
				return errUsedUp
			}
			if err == nil && counted != order {
				err = fmt.Errorf("counted order %d, want %d", counted, order)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *checkouts) exec(t *testing.T, sql string) {
	t.Helper()
	_, err := c.db.Exec(t.Context(), sql)
	assert.Require(t, err == nil, "%s: %v", sql, err)
}

func TestCheckout_RacingOrdersNeverPassALimit(t *testing.T) {
	t.Parallel()
	c := openCheckouts(t)
	c.exec(t, `INSERT INTO coupons (store_id, code, amount, max_uses, max_uses_customer) VALUES
		(1, 'ALL', 1, 10, NULL), (1, 'EACH', 1, NULL, 1)`)
	for _, race := range []struct {
		code     string
		customer func(order int) string
		want     int64
	}{
		{"ALL", func(order int) string { return []string{"", "a", "b"}[order%3] }, 10},
		{"EACH", func(order int) string { return strconv.Itoa(order % 5) }, 5},
	} {
		var placed, refused atomic.Int64
		var all sync.WaitGroup
		for order := 1; order <= 50; order++ {
			for range 2 { // each checkout is repeated
				all.Go(func() {
					switch err := c.place(t.Context(), race.customer(order), order, race.code); {
					case err == nil:
						placed.Add(1)
					case errors.Is(err, errUsedUp):
						refused.Add(1)
					default:
						t.Errorf("%s, order %d: %v", race.code, order, err)
					}
				})
			}
		}
		all.Wait()
		var rows int64
		assert.NoError(t, c.db.QueryRow(t.Context(), "SELECT count(*) FROM coupon_uses WHERE code = $1", race.code).Scan(&rows))
		assert.That(t, rows == race.want && placed.Load() == 2*race.want && refused.Load() == 100-2*race.want,
			"%s: %d uses, %d of 100 checkouts succeeded, %d were refused; want %d uses, each placed twice",
			race.code, rows, placed.Load(), refused.Load(), race.want)
	}
}

// Orders name the same two coupons in either order. No checkout waits for another that waits for it, and an order counts both or none.
func TestCheckout_CountsSeveralCouponsOfAnOrder(t *testing.T) {
	t.Parallel()
	c := openCheckouts(t)
	c.exec(t, `INSERT INTO coupons (store_id, code, amount, combines, automatic, max_uses) VALUES
		(1, 'ANY', 1, true, true, 1000), (1, 'FEW', 1, true, false, 10)`)
	var all sync.WaitGroup
	for order := 1; order <= 50; order++ {
		codes := []string{"ANY", "FEW"}
		if order%2 == 0 {
			slices.Reverse(codes)
		}
		all.Go(func() {
			if err := c.place(t.Context(), "a", order, codes...); err != nil && !errors.Is(err, errUsedUp) {
				t.Errorf("order %d: %v", order, err)
			}
		})
	}
	all.Wait()
	for _, code := range []string{"ANY", "FEW"} {
		var uses int
		assert.NoError(t, c.db.QueryRow(t.Context(), "SELECT count(*) FROM coupon_uses WHERE code = $1", code).Scan(&uses))
		assert.Equal(t, uses, 10, "uses of %s", code)
	}
}

func TestCheckout_TakesTheStock(t *testing.T) {
	t.Parallel()
	c := openCheckouts(t)
	take := documented(t, "Taking the stock")
	for name, test := range map[string]struct {
		stock, left string
		active      bool
		taken       bool
	}{
		"unlimited":    {"NULL", "NULL", true, true},
		"enough":       {"2", "0", true, true},
		"too few":      {"1", "1", true, false},
		"not for sale": {"5", "5", false, false},
	} {
		c.exec(t, fmt.Sprintf(`DELETE FROM products; INSERT INTO products (store_id, id, name, slug, type, price, original_price, stock, active)
			VALUES (1, 2, 'P', 'p', 'digital', 1, 1, %s, %t)`, test.stock, test.active))
		done := assert.Must(c.db.Exec(t.Context(), take))(t)
		var left string
		assert.NoError(t, c.db.QueryRow(t.Context(), "SELECT coalesce(stock::text, 'NULL') FROM products").Scan(&left))
		assert.That(t, left == test.left && (done.RowsAffected() == 1) == test.taken,
			"%s: %s left, %d taken", name, left, done.RowsAffected())
	}
}

func TestCheckout_RefusesWhatTheCartWouldRefuse(t *testing.T) {
	t.Parallel()
	c := openCheckouts(t)
	c.exec(t, `INSERT INTO coupons (store_id, code, amount, starts_at, expires_at, max_uses_customer) VALUES
		(1, 'PLAIN', 1, NULL, NULL, NULL), (1, 'EARLY', 1, now() + interval '1 hour', NULL, NULL),
		(1, 'OLD', 1, NULL, now(), NULL), (1, 'NOW', 1, now(), now() + interval '1 hour', NULL), (1, 'EACH', 1, NULL, NULL, 1)`)
	for _, step := range []struct {
		code, customer string
		order          int
		ok             bool
	}{
		{"PLAIN", "", 1, true},
		{"PLAIN", "", 2, true},
		{"NOW", "a", 3, true},
		{"GONE", "a", 4, false},
		{"EARLY", "a", 5, false},
		{"OLD", "a", 6, false},
		{"EACH", "", 7, true},
		{"EACH", "", 8, true}, // a guest again
		{"EACH", "a", 9, true},
		{"EACH", "a", 9, true}, // the same order again
		{"EACH", "a", 10, false},
		{"EACH", "b", 11, true},
	} {
		err := c.place(t.Context(), step.customer, step.order, step.code)
		assert.That(t, (err == nil) == step.ok && (err == nil || errors.Is(err, errUsedUp)), "%+v: %v", step, err)
	}
}

// Every source counts guests' uses for all customers together, and no further than the limit.
func TestUses_CountNoFurtherThanTheLimit(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	memory := catalog.NewMemory(nil)
	sub := strings.Repeat("أ", 255) // the longest subject
	for order := range int64(9) {
		customer := []string{"", sub, "other"}[order%3]
		memory.PutUse(1, "TEN", customer, 1+order)
		d.exec(t, "INSERT INTO coupon_uses (store_id, code, customer, order_id) VALUES (1, 'TEN', nullif($1, ''), $2)", customer, 1+order)
	}
	memory.PutUse(1, "TEN", "", 9) // again
	postgres := catalog.NewPostgres(d.pool)
	for name, source := range map[string]catalog.Source{
		"memory": memory, "postgres": postgres, "cached memory": newCache(memory), "cached postgres": newCache(postgres),
	} {
		for customer, all := range map[string]int64{"": 9, sub: 3, "other": 3, "Other": 0, "nobody": 0} {
			for limit := range int64(12) {
				if got, err := source.Uses(t.Context(), 1, "TEN", customer, limit+1); err != nil || got != min(all, limit+1) {
					t.Errorf("%s: %d uses by %.9q up to %d, %v; want %d", name, got, customer, limit+1, err, min(all, limit+1))
				}
			}
		}
	}
}

func TestPostgres_CountsUsesFromAnIndexAlone(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(t, `INSERT INTO coupon_uses (store_id, code, customer, order_id)
		SELECT 1, 'C' || n % 50, CASE n % 3 WHEN 0 THEN 'c' || n % 7 END, 10000 + n FROM generate_series(1, 50000) n`)
	// With FREEZE it waits for pages that the background writer holds, instead of skipping them.
	d.exec(t, `VACUUM (FREEZE, ANALYZE) coupon_uses`)
	for _, where := range []string{"", " AND customer = 'c0'"} {
		rows := assert.Must(d.pool.Query(t.Context(), `EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF)
			SELECT count(*) FROM (SELECT FROM coupon_uses WHERE store_id = 1 AND code = 'C0'`+where+` LIMIT 5000) u`))(t)
		text := strings.Join(assert.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
		assert.That(t, strings.Contains(text, "Index Only Scan using coupon_uses_by_customer") && strings.Contains(text, "Heap Fetches: 0"),
			"where%s:\n%s", where, text)
	}
}

func TestPostgres_AcceptsOnlyUsesThatCount(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for name, use := range map[string]struct {
		code     string
		customer any
		order    int64
		ok       bool
	}{
		"a guest's":                      {"TEN", nil, 1, true},
		"a customer's":                   {"TEN", "1001", 2, true},
		"of a coupon that is gone":       {"NEVER", "1001", 3, true},
		"a second coupon of one order":   {"FIVE", "1002", 7001, true},
		"the same order again":           {"USED", "1009", 7001, false},
		"a code in lower case":           {"ten", nil, 4, false},
		"a code with a space":            {"TEN\u00a0", nil, 5, false},
		"a customer without characters":  {"TEN", "", 6, false},
		"a customer with too many":       {"TEN", strings.Repeat("x", 256), 7, false},
		"an order without a positive id": {"TEN", nil, 0, false},
	} {
		_, err := d.admin.Exec(t.Context(), "INSERT INTO coupon_uses (store_id, code, customer, order_id) VALUES (1, $1, $2, $3)",
			use.code, use.customer, use.order)
		assert.Equal(t, (err == nil), use.ok, "%s: %v", name, err)
	}
	d.exec(t, "DELETE FROM coupons WHERE (store_id, code) = (1, 'GAMES')")
	var products, uses int
	err := d.admin.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM coupon_products WHERE code = 'GAMES'), (SELECT count(*) FROM coupon_uses)").Scan(&products, &uses)
	assert.That(t, err == nil && products == 0 && uses == 6,
		"%d products and %d uses after their coupon was deleted, %v; want 0 and 6", products, uses, err)
}

// A product that is deleted must not make a coupon for it apply to all products.
func TestPostgres_DeletedProductsStayInACoupon(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(t, "DELETE FROM products WHERE (store_id, id) = (1, 1)")
	got, err := catalog.NewPostgres(d.pool).CouponsByKey(t.Context(), 1, "GAMES")
	assert.That(t, err == nil && slices.Equal(got[0].Products, []int64{1}), "%+v, %v", got, err)
}

// counted is a source whose uses and failures a test sets.
type counted struct {
	*catalog.Memory
	failing bool
	asked   []string
}

func (c *counted) Uses(ctx context.Context, store int64, code, customer string, limit int64) (int64, error) {
	c.asked = append(c.asked, code+" "+customer)
	if c.failing {
		return 0, errors.New("connection refused")
	}
	return c.Memory.Uses(ctx, store, code, customer, limit)
}

func TestCache_ShowsUsesWithinAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &counted{Memory: catalog.NewMemory(nil)}
		cache := newCache(source)
		uses := func() int64 {
			t.Helper()
			n, err := cache.Uses(t.Context(), 1, "TEN", "c", 5)
			synctest.Wait() // for a load in the background
			assert.NoError(t, err)
			return n
		}
		uses()
		source.PutUse(1, "TEN", "c", 1)
		time.Sleep(19 * time.Second)
		n := uses()
		assert.That(t, n == 0 && len(source.asked) == 1, "%d uses after 19 s, asked %q", n, source.asked)
		time.Sleep(41 * time.Second)
		assert.Equal(t, uses(), 1, "uses after a minute")
		source.PutUse(1, "TEN", "c", 2)
		time.Sleep(25 * time.Second)
		uses() // starts a load in the background
		assert.Equal(t, uses(), 2, "uses after a load in the background")
	})
}

func TestCache_KeepsTheLastKnownUsesWhileTheSourceFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &counted{Memory: catalog.NewMemory(nil)}
		source.PutUse(1, "TEN", "", 1)
		cache := newCache(source)
		n, err := cache.Uses(t.Context(), 1, "TEN", "", 5)
		assert.Require(t, n == 1 && err == nil, "%d uses, %v", n, err)
		source.failing = true
		for range 3 {
			time.Sleep(time.Hour)
			n, err := cache.Uses(t.Context(), 1, "TEN", "", 5)
			assert.That(t, n == 1 && err == nil, "%d uses, %v; want the last known one", n, err)
			_, err = cache.Uses(t.Context(), 1, "TEN", "c", 5)
			assert.That(t, errors.Is(err, lastknown.ErrUnknown), "uses that were never known: %v, want ErrUnknown", err)
		}
		synctest.Wait()
	})
}

// A limit that is raised must not be compared with a count that ended at the lower one.
func TestCache_CountsAgainForAnotherLimit(t *testing.T) {
	t.Parallel()
	source := &counted{Memory: catalog.NewMemory(nil)}
	for order := range int64(9) {
		source.PutUse(1, "TEN", "", 1+order)
	}
	cache, got := newCache(source), []int64{}
	for _, limit := range []int64{3, 6, 3, 20} {
		got = append(got, assert.Must(cache.Uses(t.Context(), 1, "TEN", "", limit))(t))
	}
	assert.Equal(t, got, []int64{3, 6, 3, 9}, "got")
}
