// Package plans explains statements on a database with a million subscriptions.
package plans

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// AMillion fills a database with a million subscriptions of 1,000 stores, of which
// store 1 has a hundred thousand, and of 100,000 customers. Of 64 subscriptions, 44
// are active and 1 is paused. Half are of product 6, 200 of store 1 of product 5, and one of variant 49; 1 of 25 of
// store 1 ends. Periods end within a year. A seventh is imported: created on any day of five years, while the IDs of the
// others are in the order of their days. References are not checked, and rows come in the order of their index, since both cost minutes.
const AMillion = `
SET session_replication_role = replica;
SET work_mem = '256MB';
INSERT INTO stores (id, name, currency) SELECT s, 'Store ' || s, 'SAR' FROM generate_series(1, 1000) s;
INSERT INTO products (store_id, id, name, names, slug, type, price, original_price)
	SELECT s, p, 'Streaming', '{"ar": "بث"}', 'streaming', 'subscription', 0, 0 FROM generate_series(1, 1000) s, generate_series(4, 6) p;
INSERT INTO plans (store_id, id, product_id, duration, price)
	SELECT s, p, 4, 'monthly', 2000 FROM generate_series(1, 1000) s, unnest(ARRAY[41, 42, 43, 49]) p;
INSERT INTO customers (store_id, id, email, phone, calling_code)
	SELECT CASE c % 10 WHEN 0 THEN 1 ELSE 1 + c % 1000 END AS store, c, 'Customer' || c || '@example.com', CASE c % 200 WHEN 120 THEN '971' ELSE '' END || (520000000 + c),
		(ARRAY['966', '966', '971', '965', '20'])[1 + c / 10 % 5]
	FROM generate_series(1, 100000) c ORDER BY store, c;
INSERT INTO saved_cards (store_id, id, customer_id, last_four, scheme)
	SELECT store_id, id, id, '4242', 'visa' FROM customers WHERE id % 3 > 0;
INSERT INTO subscriptions (store_id, id, customer_id, calling_code, status, starts_at, ends_at, current_period_start,
		current_period_end, duration, order_id, price_amount, currency, product_id, variant_id, saved_card_id, metadata, external_customer_id,
		trial_ends_at, next_retry_at, paused_at, paused_remaining_days, canceled_at, cancel_at_period_end, created_at)
	SELECT c.store_id, i, c.id, c.calling_code, status, now() - interval '60 days', now() + interval '20 days', now() - interval '10 days',
		now() + i::bigint * 7919 % 8760 * interval '1 hour', 'monthly', i, 2000, 'SAR',
		CASE WHEN i % 5000 = 2507 THEN 5 WHEN i % 20 >= 10 THEN 6 ELSE 4 END, CASE i WHEN 50007 THEN 49 ELSE 41 + i % 3 END, CASE WHEN c.id % 3 > 0 THEN c.id END, '{"seats": 3}',
		CASE WHEN c.id % 20 < 10 THEN 'crm-' || c.id END, CASE status WHEN 'trialing' THEN now() END, CASE status WHEN 'past_due' THEN now() END,
		CASE status WHEN 'paused' THEN now() END, CASE status WHEN 'paused' THEN 5 END, CASE status WHEN 'canceled' THEN now() END,
		i % 250 = 7, now() - CASE i % 7 WHEN 3 THEN i::bigint * 7919 % 1825 * interval '1 day' ELSE (1000000 - i) * interval '2 minutes' END
	FROM generate_series(1, 1000000) i JOIN customers c ON c.id = 1 + i * 7 % 100000
		CROSS JOIN LATERAL (SELECT i::bigint * 2654435761 % 4294967296 / 67108864 AS roll) random
		CROSS JOIN LATERAL (SELECT CASE WHEN roll < 1 THEN 'paused' WHEN roll < 3 THEN 'past_due' WHEN roll < 6 THEN 'trialing'
			WHEN roll < 20 THEN (ARRAY['canceled', 'canceled', 'expired'])[1 + i % 3] ELSE 'active' END AS status) state
	ORDER BY c.store_id, i`

// Prepared returns a connection to a database that a script has filled, with statistics as
// ANALYZE makes them. Behind a pooler it skips the test, which prepares statements.
func Prepared(t *testing.T, script string) *pgx.Conn {
	t.Helper()
	if os.Getenv(ephemeral.EnvPooler) != "" {
		t.Skip("needs a direct connection")
	}
	conn := assert.Must(pgx.Connect(t.Context(), ephemeral.Migrated(t)))(t)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	assert.Must(conn.PgConn().Exec(t.Context(), script).ReadAll())(t)
	assert.Must(conn.Exec(t.Context(), "VACUUM (FREEZE, ANALYZE)"))(t)
	return conn
}

// HideRows updates 3 % of the rows, and lets the planner know, but does not vacuum.
func HideRows(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	assert.Must(conn.PgConn().Exec(t.Context(), `
		ALTER TABLE subscriptions SET (autovacuum_enabled = off);
		SET session_replication_role = DEFAULT;
		UPDATE subscriptions SET updated_at = now() WHERE id % 33 = 0;
		ANALYZE subscriptions`).ReadAll())(t)
}

// Plan is a node of a plan with its actual counts.
type Plan struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Plans    []Plan  `json:"Plans"`
}

// Explain runs a prepared statement, since the mode applies only to those.
func Explain(ctx context.Context, conn *pgx.Conn, mode, sql string, args []any) (plan Plan, err error) {
	literals := make([]string, len(args))
	for i, arg := range args {
		literals[i] = literal(arg)
	}
	for _, statement := range []string{"DEALLOCATE ALL", "SET plan_cache_mode = " + mode, "PREPARE explained AS " + sql} {
		if _, err := conn.PgConn().Exec(ctx, statement).ReadAll(); err != nil {
			return plan, err
		}
	}
	execute := "EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE explained (" + strings.Join(literals, ", ") + ")"
	results, err := conn.PgConn().Exec(ctx, execute).ReadAll()
	if err != nil {
		return plan, err
	}
	var said []struct{ Plan Plan }
	if err := json.Unmarshal(results[0].Rows[0][0], &said); err != nil || len(said) != 1 {
		return plan, errors.Join(fmt.Errorf("%d plans", len(said)), err)
	}
	return said[0].Plan, nil
}

// literal formats an argument of a statement as SQL.
func literal(arg any) string {
	switch arg := arg.(type) {
	case string:
		return "'" + strings.ReplaceAll(arg, "'", "''") + "'"
	case pgtype.TimestamptzValuer:
		v, _ := arg.TimestamptzValue()
		return literal(v.Time)
	case time.Time:
		return literal(arg.Format(time.RFC3339Nano))
	case []int64:
		return "'{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(arg), " ", ","), "[]") + "}'"
	case []string:
		quoted := make([]string, len(arg))
		for i, s := range arg {
			quoted[i] = literal(s)
		}
		return "ARRAY[" + strings.Join(quoted, ", ") + "]"
	}
	return fmt.Sprint(arg)
}

// Nodes returns the node and all those below it.
func (n Plan) Nodes() []Plan {
	all := []Plan{n}
	for _, p := range n.Plans {
		all = append(all, p.Nodes()...)
	}
	return all
}

// Faults names the nodes that must not be in a plan.
func (n Plan) Faults(maySort bool) (found []string) {
	for _, n := range n.Nodes() {
		switch {
		case strings.Contains(n.Type, "Index"), n.Type == "Bitmap Heap Scan", n.Type == "BitmapOr", n.Type == "Limit", n.Type == "Nested Loop", n.Type == "Merge Append", n.Type == "Subquery Scan":
		case n.Type == "Recursive Union", n.Type == "WorkTable Scan", n.Type == "CTE Scan", n.Type == "Append", n.Type == "Result", n.Type == "Aggregate": // of days
		case n.Type == "Sort" && maySort:
		case n.Type == "Memoize", n.Type == "Materialize":
		case n.Relation == "products", n.Relation == "plans": // tables that may be smaller than a page
		default:
			found = append(found, n.Type)
		}
	}
	return found
}

// Read returns how many rows of a table were read, and whether any without an index.
func (n Plan) Read(table string) (rows float64, whole bool) {
	for _, n := range n.Nodes() {
		if n.Relation == table {
			rows += (n.Rows + n.Removed) * n.Loops
			whole = whole || n.Type == "Seq Scan"
		}
	}
	return rows, whole
}

func (n Plan) String() string {
	text, _ := json.MarshalIndent(n, "", " ")
	return string(text)
}

// Unprepared is for statements between those of Explain, which deallocates prepared ones.
const Unprepared = pgx.QueryExecModeExec

// CheckPage checks that a statement reads subscriptions and deletions by index, and not
// more than two for each row of the page. An empty table may be scanned.
func CheckPage(t *testing.T, conn *pgx.Conn, name, sql string, args []any, rows int, modes ...string) (last Plan) {
	t.Helper()
	for _, mode := range modes {
		plan, err := Explain(t.Context(), conn, mode, sql, args)
		assert.Require(t, err == nil, "%s: %v", name, err)
		for _, table := range []string{"subscriptions", "deleted_subscriptions"} {
			// A deletion is compared with the subscription of its ID.
			read, whole := plan.Read(table)
			assert.That(t, (read == 0 || !whole) && read <= float64(2*rows),
				"%s, %s: reads %v of %s, want %d at most, by index\n%s", name, mode, read, table, 2*rows, plan)
		}
		last = plan
	}
	return last
}

// DeleteSome deletes 5 % of the subscriptions of each store.
func DeleteSome(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	assert.Must(conn.PgConn().Exec(t.Context(), "DELETE FROM subscriptions WHERE id % 20 = 7; ANALYZE").ReadAll())(t)
}

// LargeStores are AMillion where store 1 has more of the rows, of which there are 100,000. A platform may have a single
// store, or one with half of all rows. The planner must not choose a scan because the limit is a large share of them.
func LargeStores() map[string]string {
	small := []string{
		"generate_series(1, 100000) c", "generate_series(1, 10000) c", "generate_series(1, 1000000)", "generate_series(1, 100000)",
		"i * 7 % 100000", "i * 7 % 10000",
	}
	scripts := map[string]string{}
	for name, changes := range map[string][]string{
		"all rows":     append([]string{"generate_series(1, 1000) s", "generate_series(1, 1) s", "1 + c % 1000 END", "1 END"}, small...),
		"half of them": append([]string{"CASE c % 10 WHEN 0 THEN 1", "CASE c % 2 WHEN 0 THEN 1"}, small...),
	} {
		scripts[name] = strings.NewReplacer(changes...).Replace(AMillion)
	}
	return scripts
}
