package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// errUsedUp means that a checkout may not use a coupon.
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

// place runs the documented SQL for an order. customer is "" for a guest.
func (c *checkouts) place(ctx context.Context, code, customer string, order int) error {
	quoted := "NULL"
	if customer != "" {
		quoted = "'" + customer + "'"
	}
	fill := strings.NewReplacer("'ONCE'", "'"+code+"'", "'1001'", quoted, "7100", strconv.Itoa(order))
	return pgx.BeginFunc(ctx, c.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fill.Replace(c.statements[0])); err != nil {
			return err
		}
		var counted int
		err := tx.QueryRow(ctx, fill.Replace(c.statements[1])).Scan(&counted)
		if errors.Is(err, pgx.ErrNoRows) {
			return errUsedUp
		}
		if err == nil && counted != order {
			err = fmt.Errorf("counted order %d, want %d", counted, order)
		}
		return err
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
					switch err := c.place(t.Context(), race.code, race.customer(order), order); {
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
		if rows != race.want || placed.Load() != 2*race.want || refused.Load() != 100-2*race.want {
			t.Errorf("%s: %d uses, %d of 100 checkouts succeeded, %d were refused; want %d uses, each placed twice",
				race.code, rows, placed.Load(), refused.Load(), race.want)
		}
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
		err := c.place(t.Context(), step.code, step.customer, step.order)
		assert.That(t, (err == nil) == step.ok && (err == nil || errors.Is(err, errUsedUp)), "%+v: %v", step, err)
	}
}
