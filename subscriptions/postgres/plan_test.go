package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
)

// aMillion fills a database with a million subscriptions of 1,000 stores, of which
// store 1 has a hundred thousand, and of 100,000 customers. Of 64 subscriptions, 44
// are active and 1 is paused. Periods end within a year. References are not checked, and rows come in the order of
// their index, since both cost minutes.
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
		current_period_end, duration, order_id, price_amount, currency, product_id, variant_id, saved_card_id, metadata, external_customer_id,
		trial_ends_at, next_retry_at, paused_at, paused_remaining_days, canceled_at)
	SELECT c.store_id, i, c.id, c.calling_code, status, now() - interval '60 days', now() + interval '20 days', now() - interval '10 days',
		now() + i::bigint * 7919 % 8760 * interval '1 hour', 'monthly', i, 2000, 'SAR', 4, 41 + i % 3, CASE WHEN c.id % 3 > 0 THEN c.id END, '{"seats": 3}',
		CASE WHEN c.id % 20 < 10 THEN 'crm-' || c.id END, CASE status WHEN 'trialing' THEN now() END, CASE status WHEN 'past_due' THEN now() END,
		CASE status WHEN 'paused' THEN now() END, CASE status WHEN 'paused' THEN 5 END, CASE status WHEN 'canceled' THEN now() END
	FROM generate_series(1, 1000000) i JOIN customers c ON c.id = 1 + i * 7 % 100000
		CROSS JOIN LATERAL (SELECT i::bigint * 2654435761 % 4294967296 / 67108864 AS roll) random
		CROSS JOIN LATERAL (SELECT CASE WHEN roll < 1 THEN 'paused' WHEN roll < 3 THEN 'past_due' WHEN roll < 6 THEN 'trialing'
			WHEN roll < 20 THEN (ARRAY['canceled', 'canceled', 'expired'])[1 + i % 3] ELSE 'active' END AS status) state
	ORDER BY c.store_id, i`

// prepared returns a connection to a database that a script has filled, with statistics as
// ANALYZE makes them.
func prepared(t *testing.T, script string) *pgx.Conn {
	t.Helper()
	conn := assert.Must(pgx.Connect(t.Context(), ephemeral.Migrated(t)))(t)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	assert.Must(conn.PgConn().Exec(t.Context(), script).ReadAll())(t)
	assert.Must(conn.Exec(t.Context(), "VACUUM (FREEZE, ANALYZE)"))(t)
	return conn
}

// hideRows updates 3 % of the rows, and lets the planner know, but does not vacuum.
func hideRows(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	assert.Must(conn.PgConn().Exec(t.Context(), `
		ALTER TABLE subscriptions SET (autovacuum_enabled = off);
		SET session_replication_role = DEFAULT;
		UPDATE subscriptions SET updated_at = now() WHERE id % 33 = 0;
		ANALYZE subscriptions`).ReadAll())(t)
}

// maxSkip is how many rows a page by number skips at most.
const maxSkip = 1_000_000

// planCase is a query of store 1 and what its plan may read.
type planCase struct {
	name string
	q    subscriptions.Query
	rows int // number of rows returned
	read int // maximum of subscriptions read; 0 for twice the rows returned
}

// With a million rows, every statement of the source finds its rows by index, reads only
// rows that it returns, and sorts only the rows of one customer. This holds for custom
// plans (a connection's first requests) and generic ones (later), and also after updates
// that hide rows from their indexes.
func TestPlans_UseIndexesAndDoNotSort(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	conn := prepared(t, aMillion)
	cases := slices.Concat(customerCases, externalCases, statusCases(1_000_000, 20_000), periodEndCases(20_000), []planCase{
		{"page 1", subscriptions.Query{Limit: 16}, 16, 0},
		{"page 1, long", subscriptions.Query{Limit: 101}, 101, 0},
		{"by link", subscriptions.Query{Limit: 16, After: subscriptions.Position{ID: 850_000}}, 16, 0},
		{"by link, back", subscriptions.Query{Limit: 15, Before: subscriptions.Position{ID: 850_000}}, 15, 0},
		{"page 1000 by number", subscriptions.Query{Limit: 16, Skip: 999 * 15}, 16, 999*15 + 2*16},
		{"past the end", subscriptions.Query{Limit: 16, Skip: 999_999 * 100}, 0, 100_000},
		{"by active, past the end", subscriptions.Query{Limit: 16, Skip: maxSkip, Filter: subscriptions.Filter{Statuses: subscriptions.SetOf(subscriptions.Active)}}, 0, 68_749},
		{"by calling code, past the end", subscriptions.Query{Limit: 16, Skip: maxSkip, Filter: subscriptions.Filter{CallingCode: "966"}}, 0, 40_000},
	})
	checkPlans(t, conn, cases, 1)
	plan := assert.Must(explain(t.Context(), conn, "force_generic_plan", getSQL, []any{int64(1), "ar", int64(850_004)}))(t)
	assert.Equal(t, plan.faults(false), nil, "one by id: %s", plan)
	checkChangesPlans(t, conn)
	hideRows(t, conn)
	checkPlans(t, conn, cases, 1)
	checkChangesPlans(t, conn)
	deleteSome(t, conn)
	checkChangesPlans(t, conn)
}

// customerCases find customers first. Customer 20 has 10 subscriptions: 6 active, 2
// canceled, 1 past due and 1 paused.
var customerCases = []planCase{
	{"by e-mail", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Email: "customer20@EXAMPLE.com"}}, 10, 0},
	{"by phone", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Phone: "520000020"}}, 10, 0},
	{"by phone and calling code in it", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Phone: "971520000020"}}, 10, 0},
	{"by phone, stored with its calling code", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Phone: "520000120"}}, 10, 0},
	{"by phone and calling code, stored with both", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Phone: "971520000120"}}, 10, 0},
	{"by e-mail, second page by link", subscriptions.Query{Limit: 16, After: subscriptions.Position{ID: 800_000}, Filter: subscriptions.Filter{Email: "customer20@example.com"}}, 8, 0},
	{"by e-mail, second page by number", subscriptions.Query{Limit: 6, Skip: 5, Filter: subscriptions.Filter{Email: "customer20@example.com"}}, 5, 15},
	{"by e-mail, phone and calling code", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Email: "customer20@example.com", Phone: "520000020", CallingCode: "971"}}, 10, 0},
	{"by two that differ", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Email: "customer20@example.com", Phone: "520000030"}}, 0, 0},
	{"without a match", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Email: "nobody@example.com"}}, 0, 0},
	{"by e-mail and active", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Email: "customer20@example.com", Statuses: subscriptions.SetOf(subscriptions.Active)}}, 6, 10 + 6},
	{"by phone and two states", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Phone: "520000020", Statuses: subscriptions.SetOf(subscriptions.Paused, subscriptions.PastDue)}}, 2, 10 + 2},
	{"by e-mail and expired", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Email: "customer20@example.com", Statuses: subscriptions.SetOf(subscriptions.Expired)}}, 0, 10},
	{"by e-mail and external ID", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Email: "customer20@example.com", ExternalCustomerID: "crm-20"}}, 10, 0},
	{"by e-mail and another's external ID", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{Email: "customer20@example.com", ExternalCustomerID: "crm-40"}}, 0, 10},
	{"by all", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{
		Email: "customer20@example.com", Phone: "520000020", CallingCode: "971", Statuses: subscriptions.SetOf(subscriptions.Active), ExternalCustomerID: "crm-20",
	}}, 6, 10 + 6},
}

// externalCases find the 10 subscriptions of customer 20, who has calling code 971, by
// their external ID.
var externalCases = []planCase{
	{"by external ID", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20"}}, 10, 0},
	{"by external ID, by link", subscriptions.Query{Limit: 16, After: subscriptions.Position{ID: 800_000}, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20"}}, 8, 0},
	{"by external ID, by link back", subscriptions.Query{Limit: 16, Before: subscriptions.Position{ID: 800_000}, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20"}}, 2, 0},
	{"by external ID, past the end", subscriptions.Query{Limit: 16, Skip: maxSkip, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20"}}, 0, 10},
	{"by an external ID without rows", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-0"}}, 0, 0},
	{"by external ID and active", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20", Statuses: subscriptions.SetOf(subscriptions.Active)}}, 6, 10 + 6},
	{"by external ID and two states", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20", Statuses: subscriptions.SetOf(subscriptions.Paused, subscriptions.PastDue)}}, 2, 10 + 2},
	{"by external ID and calling code", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20", CallingCode: "971"}}, 10, 0},
	{"by external ID, calling code and active", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20", CallingCode: "971", Statuses: subscriptions.SetOf(subscriptions.Active)}}, 6, 10 + 6},
	{"by external ID and another calling code", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20", CallingCode: "966"}}, 0, 10},
}

// statusCases are pages by states and calling codes, by number up to a number of skipped
// rows and by link in the table's IDs. Two fifths of the rows have 966, and none has 44.
func statusCases(ids int64, skip int) []planCase {
	var cases []planCase
	for _, set := range []subscriptions.StatusSet{0, subscriptions.SetOf(subscriptions.Active), subscriptions.SetOf(subscriptions.Paused), subscriptions.SetOf(subscriptions.Paused, subscriptions.PastDue), subscriptions.SetOf(subscriptions.Active, subscriptions.Paused), subscriptions.SetOf(subscriptions.Canceled, subscriptions.Expired, subscriptions.Active), subscriptions.EveryStatus} {
		for _, code := range []string{"", "966", "44"} {
			name := fmt.Sprintf("by states %v and calling code %q", set.Names(), code)
			f := subscriptions.Filter{Statuses: set, CallingCode: code}
			for _, q := range []subscriptions.Query{
				{Limit: 16},
				{Limit: 101},
				{Limit: 16, After: subscriptions.Position{ID: ids * 7 / 10}},
				{Limit: 15, Before: subscriptions.Position{ID: ids / 100}},
				{Limit: 16, Skip: skip / 4},
				{Limit: 16, Skip: skip},
			} {
				q.Filter = f
				switch rows := q.Limit; {
				case code == "44":
					cases = append(cases, planCase{name, q, 0, 0})
				case q.Skip != 0 && !set.Has(subscriptions.Active) && set != 0: // too few rows
				default:
					cases = append(cases, planCase{name, q, rows, q.Skip + 2*rows + oneAhead})
				}
			}
		}
	}
	return cases
}

// periodEndCases are pages by the end of the period: with and without states, of a month, by number
// and by link in both directions. Order 50007 has one subscription of store 1.
func periodEndCases(skip int) []planCase {
	const order = 50_007
	cases := []planCase{
		{"by order", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{OrderID: order}}, 1, 0},
		{"by order, by link", subscriptions.Query{Limit: 16, After: subscriptions.Position{ID: order + 1}, Filter: subscriptions.Filter{OrderID: order}}, 1, 0},
		{"by order and states", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{OrderID: order, Statuses: subscriptions.EveryStatus}}, 1, 0},
		{"by order and calling code", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{OrderID: order, CallingCode: "966"}}, 1, 0},
		{"by order and another calling code", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{OrderID: order, CallingCode: "971"}}, 0, 1},
		{"by an order without rows", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{OrderID: 1 << 40}}, 0, 0},
	}
	from := time.Now().AddDate(0, 6, 0)
	month := subscriptions.Filter{PeriodEndFrom: from, PeriodEndBefore: from.AddDate(0, 1, 0)}
	middle := subscriptions.Position{PeriodEnd: from.AddDate(0, 0, 15), ID: 1}
	for _, set := range []subscriptions.StatusSet{0, subscriptions.SetOf(subscriptions.Active), subscriptions.SetOf(subscriptions.Paused), subscriptions.SetOf(subscriptions.Active, subscriptions.PastDue)} {
		for _, q := range []subscriptions.Query{
			{Limit: 16},
			{Limit: 101},
			{Limit: 16, After: middle},
			{Limit: 15, Before: middle},
			{Limit: 16, Filter: month},
			{Limit: 15, After: middle, Filter: month},
			{Limit: 15, Before: middle, Filter: month},
			{Limit: 16, Skip: skip},
		} {
			q.ByPeriodEnd, q.Filter.Statuses = true, set
			if q.Skip != 0 && !set.Has(subscriptions.Active) && set != 0 {
				continue // too few rows
			}
			most := q.Limit + oneAhead
			if q.Skip != 0 {
				most += q.Skip + q.Limit
			}
			cases = append(cases, planCase{fmt.Sprintf("by period end from %v and states %v", q.Filter.PeriodEndFrom, set.Names()), q, q.Limit, most})
		}
	}
	return cases
}

// oneAhead is the number of rows that a merge of six states has read and not returned.
const oneAhead = len(subscriptions.Statuses) - 1

// checkPlans explains every query with both kinds of plan. slack is by how much they may
// read more than they return.
func checkPlans(t *testing.T, conn *pgx.Conn, cases []planCase, slack float64) {
	t.Helper()
	for _, tt := range cases {
		tt.q.Language = locale.Ar
		sql, args := listSQL(1, tt.q)
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			if mode == "force_custom_plan" && tt.q.Skip > manySkips {
				continue // to skip most rows of a store, sorting them can be as fast
			}
			plan, err := explain(t.Context(), conn, mode, sql, args)
			assert.Require(t, err == nil, "%s: %v", tt.name, err)
			allowed := slack * float64(cmp.Or(tt.read, 2*tt.rows))
			customers, _ := plan.read("customers")
			read, _ := plan.read("subscriptions")
			wrong := plan.faults(tt.q.Filter.ByCustomer())
			assert.That(t, len(wrong) == 0 && customers <= 2 && plan.Rows == float64(tt.rows) && read <= allowed,
				"%s, skipping %d, %s: %v; returns %v rows of %v read and %v customers, want %d of %v at most and 2\n%s",
				tt.name, tt.q.Skip, mode, wrong, plan.Rows, read, customers, tt.rows, allowed, plan)
		}
	}
}

// A platform may have a single store, which then has all rows of the table, or one store
// with half of them. The planner must not choose a scan because the limit is a large share
// of them.
func TestPlans_OfALargeStoreReadByIndex(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	small := []string{
		"generate_series(1, 100000) c", "generate_series(1, 10000) c", "generate_series(1, 1000000)", "generate_series(1, 100000)",
		"i * 7 % 100000", "i * 7 % 10000",
	}
	for name, changes := range map[string][]string{
		"all rows":     append([]string{"generate_series(1, 1000) s", "generate_series(1, 1) s", "1 + c % 1000 END", "1 END"}, small...),
		"half of them": append([]string{"CASE c % 10 WHEN 0 THEN 1", "CASE c % 2 WHEN 0 THEN 1"}, small...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := prepared(t, strings.NewReplacer(changes...).Replace(aMillion))
			cases := slices.Concat(statusCases(100_000, 10_000), periodEndCases(10_000), []planCase{
				{"by external ID", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20"}}, 10, 0},
				{"by external ID and calling code", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20", CallingCode: "971"}}, 10, 0},
				{"by external ID and another calling code", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20", CallingCode: "966"}}, 0, 10},
				{"page 1", subscriptions.Query{Limit: 16}, 16, 0},
				{"page 1, long", subscriptions.Query{Limit: 101}, 101, 0},
				{"by link", subscriptions.Query{Limit: 16, After: subscriptions.Position{ID: 50_000}}, 16, 0},
				{"by link, back", subscriptions.Query{Limit: 15, Before: subscriptions.Position{ID: 50_000}}, 15, 0},
			})
			checkPlans(t, conn, cases, 1)
			checkChangesPlans(t, conn)
			hideRows(t, conn)
			checkPlans(t, conn, cases, 1.5) // a state of most rows may be a filter on the list of all
			checkChangesPlans(t, conn)
		})
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
	case instant:
		return literal(time.Time(arg))
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

// nodes returns the node and all those below it.
func (n explained) nodes() []explained {
	all := []explained{n}
	for _, p := range n.Plans {
		all = append(all, p.nodes()...)
	}
	return all
}

// faults names the nodes that must not be in a plan.
func (n explained) faults(maySort bool) (found []string) {
	for _, n := range n.nodes() {
		switch {
		case strings.Contains(n.Type, "Index"), n.Type == "Bitmap Heap Scan", n.Type == "BitmapOr", n.Type == "Limit", n.Type == "Nested Loop", n.Type == "Merge Append", n.Type == "Subquery Scan":
		case n.Type == "Sort" && maySort:
		case n.Type == "Memoize", n.Type == "Materialize":
		case n.Relation == "products", n.Relation == "plans": // tables that may be smaller than a page
		default:
			found = append(found, n.Type)
		}
	}
	return found
}

// read returns how many rows of a table were read, and whether any without an index.
func (n explained) read(table string) (rows float64, whole bool) {
	for _, n := range n.nodes() {
		if n.Relation == table {
			rows += (n.Rows + n.Removed) * n.Loops
			whole = whole || n.Type == "Seq Scan"
		}
	}
	return rows, whole
}

func (n explained) String() string {
	text, _ := json.MarshalIndent(n, "", " ")
	return string(text)
}

// The summary of a store with a tenth of a million rows is read from its index alone.
func TestPlans_OfASummaryReadOnlyItsIndex(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	conn := prepared(t, aMillion)
	for _, mode := range []string{"force_custom_plan", "force_generic_plan", "auto"} {
		plan := assert.Must(explain(t.Context(), conn, mode, totalsSQL, []any{int64(1)}))(t)
		scans := slices.DeleteFunc(plan.nodes(), func(n explained) bool { return n.Relation == "" })
		assert.That(t, len(scans) == 1 && scans[0].Type == "Index Only Scan" && scans[0].Index == "subscriptions_by_status",
			"%s: want an index-only scan of subscriptions_by_status alone\n%s", mode, plan)
	}
	rows := assert.Must(conn.Query(t.Context(), "EXPLAIN (ANALYZE) "+strings.ReplaceAll(totalsSQL, "$1", "1")))(t)
	text := strings.Join(assert.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
	assert.That(t, strings.Contains(text, "Heap Fetches: 0\n"), "reads the table, although it was vacuumed:\n%s", text)
}
