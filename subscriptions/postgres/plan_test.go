package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions"
	"commerce/subscriptions/suite/plans"
)

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
	conn := plans.Prepared(t, plans.AMillion)
	cases := slices.Concat(customerCases, externalCases, statusCases(1_000_000, 20_000), periodEndCases(20_000), filterCases(1_000_000), []planCase{
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
	plan := assert.Must(plans.Explain(t.Context(), conn, "force_generic_plan", getSQL, []any{int64(1), "ar", int64(850_004)}))(t)
	assert.Equal(t, plan.Faults(false), nil, "one by id: %s", plan)
	checkInOrder(t, conn)
	plans.HideRows(t, conn)
	checkPlans(t, conn, cases, 1)
	checkInOrder(t, conn)
	plans.DeleteSome(t, conn)
	checkInOrder(t, conn)
}

// checkInOrder explains the statement that reads subscriptions by their IDs. With a custom plan, to scan a small
// table can be as fast.
func checkInOrder(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, n := range []int{1, 100, 1000} {
		rows := assert.Must(conn.Query(t.Context(), "SELECT id FROM subscriptions WHERE store_id = 1 ORDER BY changed_in DESC, id LIMIT $1", plans.Unprepared, n))(t)
		ids := assert.Must(pgx.CollectRows(rows, pgx.RowTo[int64]))(t)
		plans.CheckPage(t, conn, fmt.Sprintf("%d subscriptions", n), inOrderSQL, []any{int64(1), "ar", ids}, n, "force_generic_plan")
	}
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

// filterCases are pages by what only an index or two have. In store 1, product 5 and variant 49 are rare, and product 7 and
// variant 44 have no rows.
func filterCases(ids int64) (cases []planCase) {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	days := func(from, to int) subscriptions.Filter {
		return subscriptions.Filter{CreatedFrom: today.AddDate(0, 0, -from), CreatedBefore: today.AddDate(0, 0, 1-to)}
	}
	with := func(f subscriptions.Filter, set func(*subscriptions.Filter)) subscriptions.Filter {
		set(&f)
		return f
	}
	active := func(f *subscriptions.Filter) { f.Statuses = subscriptions.SetOf(subscriptions.Active) }
	const full, near, tries, allDays = 16, 2 * 20 * 16, 100 * 16, 1900
	for _, tt := range []struct {
		name       string
		f          subscriptions.Filter
		rows, read int
	}{
		{"product of half", subscriptions.Filter{ProductID: 6}, full, 2*full + oneAhead},
		{"rare product", subscriptions.Filter{ProductID: 5}, full, 2*full + oneAhead},
		{"product without rows", subscriptions.Filter{ProductID: 7}, 0, 0},
		{"product without rows, and active", subscriptions.Filter{ProductID: 7, Statuses: subscriptions.SetOf(subscriptions.Active)}, 0, 0},
		{"product and active", subscriptions.Filter{ProductID: 6, Statuses: subscriptions.SetOf(subscriptions.Active)}, full, 0},
		{"rare product and calling code", subscriptions.Filter{ProductID: 5, CallingCode: "44"}, 0, 2 * 200},
		{"rare product and a common calling code", subscriptions.Filter{ProductID: 5, CallingCode: "966"}, full, 200},
		{"product of half, and a calling code without rows", subscriptions.Filter{ProductID: 6, CallingCode: "44"}, 0, 2 * (tries + oneAhead)},
		{"product of half, and a common calling code", subscriptions.Filter{ProductID: 6, CallingCode: "966"}, full, 8 * full},
		{"rare product and a month", with(days(1330, 1300), func(f *subscriptions.Filter) { f.ProductID = 5 }), 4, 2 * 200},
		{"product without rows, and all days", with(days(5000, 0), func(f *subscriptions.Filter) { f.ProductID = 7 }), 0, 0},
		{"product of half, and a month", with(days(1330, 1300), func(f *subscriptions.Filter) { f.ProductID = 6 }), full, 2*tries + 3*31 + 4*full*full},
		{"product of half, a calling code without rows, and all days", with(days(5000, 0), func(f *subscriptions.Filter) { f.ProductID, f.CallingCode = 6, "44" }), 0, 2 * (tries + oneAhead)},
		{"product of half, and days without rows", with(days(5000, 4000), func(f *subscriptions.Filter) { f.ProductID = 6 }), 0, 2 * (tries + oneAhead)},
		{"calling code and a month", with(days(1330, 1300), func(f *subscriptions.Filter) { f.CallingCode = "966" }), full, 2*tries + 3*31 + 4*full*full},
		{"those that end, of a month", with(days(1330, 1300), func(f *subscriptions.Filter) { f.CancelAtPeriodEnd = subscriptions.Yes }), full, 2*tries + 3*31 + 40*full*full},
		{"variant", subscriptions.Filter{VariantID: 42}, full, 2*full + oneAhead},
		{"variant of one", subscriptions.Filter{VariantID: 49}, 1, 0},
		{"variant of one, and its product", subscriptions.Filter{VariantID: 49, ProductID: 4}, 1, 0},
		{"variant without rows", subscriptions.Filter{VariantID: 44}, 0, 0},
		{"those that end", subscriptions.Filter{CancelAtPeriodEnd: subscriptions.Yes}, full, 2*full + oneAhead},
		{"those that end, and active", subscriptions.Filter{CancelAtPeriodEnd: subscriptions.Yes, Statuses: subscriptions.SetOf(subscriptions.Active)}, full, 0},
		{"those that do not end", subscriptions.Filter{CancelAtPeriodEnd: subscriptions.No}, full, 2*full + oneAhead},
		{"IDs", subscriptions.Filter{IDs: "17,50007,99997,9223372036854775807"}, 3, 4},
		{"IDs and active", subscriptions.Filter{IDs: "50007", Statuses: subscriptions.EveryStatus}, 1, 0},
		{"a day", days(1300, 1300), full, near + 3 + 2*full},
		{"a month", days(1330, 1300), full, near + 3*31 + full*full},
		{"a month, and active", with(days(1330, 1300), active), full, near + 2*(3*31+full*full)},
		{"all days", days(5000, 0), full, 8 * full},
		{"days until the year before", with(days(0, 365), func(f *subscriptions.Filter) { f.CreatedFrom = time.Time{} }), full, near + 3*allDays + full*full},
		{"days without rows", days(5000, 4000), 0, near},
	} {
		for name, at := range map[string]subscriptions.Query{
			"": {}, ", by link": {After: subscriptions.Position{ID: ids * 9 / 10}}, ", by link back": {Before: subscriptions.Position{ID: ids / 100}},
		} {
			at.Limit, at.Filter = full, tt.f
			if rows := tt.rows; rows == full || name == "" {
				cases = append(cases, planCase{"by " + tt.name + name, at, rows, tt.read})
			}
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
			plan, err := plans.Explain(t.Context(), conn, mode, sql, args)
			assert.Require(t, err == nil, "%s: %v", tt.name, err)
			allowed := slack * float64(cmp.Or(tt.read, 2*tt.rows))
			customers, _ := plan.Read("customers")
			read, _ := plan.Read("subscriptions")
			several := readsSeveral(tt.q.Filter)
			wrong := plan.Faults(tt.q.Filter.ByCustomer() || several || tt.q.Filter.By()[0] == subscriptions.Few)
			if mode == "force_custom_plan" && several {
				wantRecounted(t, conn, tt.name, tt.q)
			}
			assert.That(t, len(wrong) == 0 && customers <= 2 && plan.Rows == float64(tt.rows) && read <= allowed,
				"%s, skipping %d, %s: %v; returns %v rows of %v read and %v customers, want %d of %v at most and 2\n%s",
				tt.name, tt.q.Skip, mode, wrong, plan.Rows, read, customers, tt.rows, allowed, plan)
		}
	}
}

// wantRecounted compares a page with one of a statement that leaves the choice of an index to Postgres.
func wantRecounted(t *testing.T, conn *pgx.Conn, name string, q subscriptions.Query) {
	t.Helper()
	ids := func(sql string, args []any) []int64 {
		rows, _ := conn.Query(t.Context(), "SELECT id FROM ("+sql+") page ORDER BY id", append([]any{plans.Unprepared}, args...)...)
		return assert.Must(pgx.CollectRows(rows, pgx.RowTo[int64]))(t)
	}
	got := ids(listSQL(1, q))
	var args []any
	p := pageSQL{what: "id", of: "store_id = 1", byID: true, arg: func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	}}
	p.place(&q)
	sql := p.subscriptions(p.tested(q.Filter, subscriptions.Few)) + " ORDER BY " + p.order + " LIMIT " + strconv.Itoa(q.Limit)
	assert.Equal(t, got, ids(sql, args), "%s: the IDs of the page, compared with a recount", name)
}

// A platform may have a single store, which then has all rows of the table, or one store
// with half of them. The planner must not choose a scan because the limit is a large share
// of them.
func TestPlans_OfALargeStoreReadByIndex(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	for name, script := range plans.LargeStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := plans.Prepared(t, script)
			cases := slices.Concat(statusCases(100_000, 10_000), periodEndCases(10_000), filterCases(100_000), []planCase{
				{"by external ID", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20"}}, 10, 0},
				{"by external ID and calling code", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20", CallingCode: "971"}}, 10, 0},
				{"by external ID and another calling code", subscriptions.Query{Limit: 16, Filter: subscriptions.Filter{ExternalCustomerID: "crm-20", CallingCode: "966"}}, 0, 10},
				{"page 1", subscriptions.Query{Limit: 16}, 16, 0},
				{"page 1, long", subscriptions.Query{Limit: 101}, 101, 0},
				{"by link", subscriptions.Query{Limit: 16, After: subscriptions.Position{ID: 50_000}}, 16, 0},
				{"by link, back", subscriptions.Query{Limit: 15, Before: subscriptions.Position{ID: 50_000}}, 15, 0},
			})
			checkPlans(t, conn, cases, 1)
			checkInOrder(t, conn)
			plans.HideRows(t, conn)
			checkPlans(t, conn, cases, 1.5) // a state of most rows may be a filter on the list of all
			checkInOrder(t, conn)
		})
	}
}
