package subscriptions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/auth/locale"
	"commerce/deploy/ephemeral"
)

// aMillion fills a database with a million subscriptions of 1,000 stores, of which
// store 1 has a hundred thousand, and of 100,000 customers. References are not
// checked, and rows come in the order of their index, since both cost minutes.
const aMillion = `
SET session_replication_role = replica;
SET work_mem = '256MB';
INSERT INTO stores (id, name, currency) SELECT s, 'Store ' || s, 'SAR' FROM generate_series(1, 1000) s;
INSERT INTO products (store_id, id, name, names, slug, type, price, original_price)
	SELECT s, 4, 'Streaming', '{"ar": "بث"}', 'streaming', 'subscription', 0, 0 FROM generate_series(1, 1000) s;
INSERT INTO plans (store_id, id, product_id, duration, price)
	SELECT s, p, 4, 'monthly', 2000 FROM generate_series(1, 1000) s, generate_series(41, 43) p;
INSERT INTO customers (store_id, id, email, phone, calling_code)
	SELECT CASE c % 10 WHEN 0 THEN 1 ELSE 1 + c % 1000 END AS store, c, 'Customer' || c || '@example.com', CASE c % 200 WHEN 120 THEN '971' ELSE '' END || (520000000 + c),
		(ARRAY['966', '966', '971', '965', '20'])[1 + c / 10 % 5]
	FROM generate_series(1, 100000) c ORDER BY store, c;
INSERT INTO saved_cards (store_id, id, customer_id, last_four, scheme)
	SELECT store_id, id, id, '4242', 'visa' FROM customers WHERE id % 3 > 0;
INSERT INTO subscriptions (store_id, id, customer_id, calling_code, status, starts_at, ends_at, current_period_start,
		current_period_end, duration, order_id, price_amount, currency, product_id, variant_id, saved_card_id, metadata)
	SELECT c.store_id, i, c.id, c.calling_code, 'active', now() - interval '60 days', now() + interval '20 days', now() - interval '10 days',
		now() + interval '20 days', 'monthly', i, 2000, 'SAR', 4, 41 + i % 3, CASE WHEN c.id % 3 > 0 THEN c.id END, '{"seats": 3}'
	FROM generate_series(1, 1000000) i JOIN customers c ON c.id = 1 + i * 7 % 100000
	ORDER BY c.store_id, i`

// million returns a connection to such a database, with statistics as ANALYZE makes them.
func million(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), ephemeral.Migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.PgConn().Exec(t.Context(), aMillion).ReadAll(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "VACUUM (ANALYZE)"); err != nil {
		t.Fatal(err)
	}
	return conn
}

// With a million rows, every statement of the source finds its rows by index, reads only
// rows that it returns, and sorts only the rows of one customer. This holds for custom
// plans (a connection's first requests) and generic ones (later).
func TestPlans_UseIndexesAndDoNotSort(t *testing.T) {
	t.Parallel()
	conn := million(t)
	for _, tt := range []struct {
		name string
		q    Query
		rows int     // number of rows returned
		read float64 // maximum of subscriptions read; 0 for twice the rows returned
	}{
		{"page 1", Query{Limit: 16}, 16, 0},
		{"page 1, long", Query{Limit: 101}, 101, 0},
		{"by link", Query{Limit: 16, Older: 850_000}, 16, 0},
		{"by link, back", Query{Limit: 15, Newer: 850_000}, 15, 0},
		{"page 1000 by number", Query{Limit: 16, Skip: 999 * 15}, 16, 999*15 + 2*16},
		{"past the end", Query{Limit: 16, Skip: 999_999 * 100}, 0, 100_000},
		{"by e-mail", Query{Limit: 16, Filter: Filter{Email: "customer20@EXAMPLE.com"}}, 10, 0},
		{"by phone", Query{Limit: 16, Filter: Filter{Phone: "520000020"}}, 10, 0},
		{"by phone and calling code in it", Query{Limit: 16, Filter: Filter{Phone: "971520000020"}}, 10, 0},
		{"by phone, stored with its calling code", Query{Limit: 16, Filter: Filter{Phone: "520000120"}}, 10, 0},
		{"by phone and calling code, stored with both", Query{Limit: 16, Filter: Filter{Phone: "971520000120"}}, 10, 0},
		{"by e-mail, second page by link", Query{Limit: 16, Older: 800_000, Filter: Filter{Email: "customer20@example.com"}}, 8, 0},
		{"by e-mail, second page by number", Query{Limit: 6, Skip: 5, Filter: Filter{Email: "customer20@example.com"}}, 5, 15},
		{"by calling code", Query{Limit: 16, Filter: Filter{CallingCode: "966"}}, 16, 0},
		{"by calling code, by link", Query{Limit: 16, Older: 500_000, Filter: Filter{CallingCode: "20"}}, 16, 0},
		{"by a calling code without customers", Query{Limit: 16, Filter: Filter{CallingCode: "44"}}, 0, 0},
		{"by all three", Query{Limit: 16, Filter: Filter{Email: "customer20@example.com", Phone: "520000020", CallingCode: "971"}}, 10, 0},
		{"by two that differ", Query{Limit: 16, Filter: Filter{Email: "customer20@example.com", Phone: "520000030"}}, 0, 0},
		{"without a match", Query{Limit: 16, Filter: Filter{Email: "nobody@example.com"}}, 0, 0},
	} {
		tt.q.Language = locale.Ar
		sql, args := listSQL(1, tt.q)
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan, err := explain(t.Context(), conn, mode, sql, args)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			allowed := tt.read
			if allowed == 0 {
				allowed = 2 * float64(tt.rows)
			}
			if wrong := plan.faults(tt.q.Filter.byCustomer()); len(wrong) > 0 || plan.read("customers") > 2 || plan.Rows != float64(tt.rows) || plan.read("subscriptions") > allowed {
				t.Errorf("%s, %s: %v; returns %v rows of %v read and %v customers, want %d of %v at most and 2\n%s",
					tt.name, mode, wrong, plan.Rows, plan.read("subscriptions"), plan.read("customers"), tt.rows, allowed, plan)
			}
		}
	}
	plan, err := explain(t.Context(), conn, "force_generic_plan", getSQL, []any{int64(1), "ar", int64(850_004)})
	if err != nil {
		t.Fatal(err)
	}
	if wrong := plan.faults(false); len(wrong) > 0 {
		t.Errorf("one by id: %v\n%s", wrong, plan)
	}
}

// A platform may have a single store, which then has all rows of the table. The planner
// must not choose a scan because the limit is a large share of them.
func TestPlans_OfASingleStoreReadByIndex(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), ephemeral.Migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	one := strings.NewReplacer("generate_series(1, 1000) s", "generate_series(1, 1) s", "1 + c % 1000 END", "1 END",
		"generate_series(1, 100000) c", "generate_series(1, 10000) c", "generate_series(1, 1000000)", "generate_series(1, 100000)",
		"% 100000", "% 10000").Replace(aMillion)
	if _, err := conn.PgConn().Exec(t.Context(), one).ReadAll(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "VACUUM (ANALYZE)"); err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]Query{
		"page 1": {Limit: 16}, "page 1, long": {Limit: 101}, "by link": {Limit: 16, Older: 50_000}, "by link, back": {Limit: 15, Newer: 50_000},
		"by calling code": {Limit: 16, Filter: Filter{CallingCode: "966"}},
	} {
		sql, args := listSQL(1, q)
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan, err := explain(t.Context(), conn, mode, sql, args)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if read := plan.read("subscriptions"); read > 2*float64(q.Limit) {
				t.Errorf("%s, %s: reads %v rows\n%s", name, mode, read, plan)
			}
		}
	}
}

// explained is a node of a plan with its actual counts.
type explained struct {
	Type     string      `json:"Node Type"`
	Relation string      `json:"Relation Name"`
	Index    string      `json:"Index Name"`
	Rows     float64     `json:"Actual Rows"`
	Loops    float64     `json:"Actual Loops"`
	Removed  float64     `json:"Rows Removed by Filter"`
	Plans    []explained `json:"Plans"`
}

// explain runs a prepared statement, since the mode applies only to those.
func explain(ctx context.Context, conn *pgx.Conn, mode, sql string, args []any) (plan explained, err error) {
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
	var said []struct{ Plan explained }
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
	case []string:
		quoted := make([]string, len(arg))
		for i, s := range arg {
			quoted[i] = literal(s)
		}
		return "ARRAY[" + strings.Join(quoted, ", ") + "]"
	}
	return fmt.Sprint(arg)
}

// faults names the nodes that must not be in a plan.
func (n explained) faults(maySort bool) []string {
	var found []string
	switch {
	case strings.Contains(n.Type, "Index"), n.Type == "Bitmap Heap Scan", n.Type == "BitmapOr", n.Type == "Limit", n.Type == "Nested Loop":
	case n.Type == "Sort" && maySort:
	case n.Type == "Memoize":
	default:
		found = append(found, n.Type)
	}
	for _, p := range n.Plans {
		found = append(found, p.faults(maySort)...)
	}
	return found
}

// read returns how many rows of a table were read.
func (n explained) read(table string) float64 {
	var rows float64
	if n.Relation == table {
		rows = (n.Rows + n.Removed) * n.Loops
	}
	for _, p := range n.Plans {
		rows += p.read(table)
	}
	return rows
}

func (n explained) String() string {
	var b strings.Builder
	n.write(&b, 0)
	return b.String()
}

func (n explained) write(b *strings.Builder, depth int) {
	fmt.Fprintf(b, "%*s%s %s %s: %v rows × %v\n", 2*depth, "", n.Type, n.Relation, n.Index, n.Rows, n.Loops)
	for _, p := range n.Plans {
		p.write(b, depth+1)
	}
}
