package feed

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions/recorded"
	"commerce/subscriptions/suite/plans"
)

// Changes are read by index also where a store has a large share of all rows, and after updates and deletions that
// hide rows from their indexes.
func TestPlans_OfChangesReadOnlyTheirPage(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	scripts := plans.LargeStores()
	scripts["a tenth of them"] = plans.AMillion
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := plans.Prepared(t, script)
			checkChangesPlans(t, conn)
			plans.HideRows(t, conn)
			checkChangesPlans(t, conn)
			plans.DeleteSome(t, conn)
			checkChangesPlans(t, conn)
		})
	}
}

// checkChangesPlans explains the statements of a page of changes of store 1, from the
// beginning, from the middle of its changes and from their end. They read
// subscriptions and deletions by index and only those of the page, and sort nothing but the
// page.
func checkChangesPlans(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	ephemeral.Settle(t, conn)
	for _, limit := range []int{1, 100, 1000} {
		for name, after := range map[string]recorded.Change{"the beginning": {}, "the middle": middle(t, conn), "the end": {Transaction: 1 << 62, ID: 1}} {
			rows := limit + 1
			if name == "the end" {
				rows = 0
			}
			args := []any{int64(1), fmt.Sprint(after.Transaction), after.ID, limit + 1, int64(1), int64(1)}
			plan := plans.CheckPage(t, conn, fmt.Sprintf("%d changes after %s", limit, name), changesSQL(limit), args, rows, "force_custom_plan", "force_generic_plan")
			assert.That(t, largestSort(plan) <= float64(limit+2), // an incremental sort reads one row ahead
				"%d changes after %s: sorts more than the page\n%s", limit, name, plan)
		}
	}
	for _, stores := range []int{1, 200} {
		for _, after := range []int64{0, 1 << 62} {
			checkLatestPlan(t, conn, stores, after)
		}
	}
}

// checkLatestPlan explains a check of some stores for changes after a transaction. It reads the latest
// entries of the indexes, and nothing else.
func checkLatestPlan(t *testing.T, conn *pgx.Conn, stores int, after int64) {
	t.Helper()
	all, name := make([]int64, stores), fmt.Sprintf("the latest changes of %d stores after %d", stores, after)
	for i := range all {
		all[i] = int64(i + 1)
	}
	args := []any{all, slices.Repeat([]int64{after}, stores), make([]int64, stores)}
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		plan := plans.CheckPage(t, conn, name, latestSQL, args, stores, mode)
		for _, n := range plan.Nodes() {
			known := n.Relation == "" || n.Type == "Index Only Scan" && strings.HasSuffix(n.Index, "_by_change")
			assert.That(t, known || n.Rows == 0, "%s, %s: %s of %s\n%s", name, mode, n.Type, n.Relation, plan)
		}
		assert.That(t, (plan.Rows == 0) == (after > 0), "%s, %s: returns %v changes\n%s", name, mode, plan.Rows, plan)
	}
}

// A store that was replaced has a void deletion for each subscription. A page reads only few of
// them.
func TestPlans_OfChangesOfAReplacedStore(t *testing.T) {
	t.Parallel()
	conn := plans.Prepared(t, strings.NewReplacer(
		"generate_series(1, 1000) s", "generate_series(1, 1) s", "1 + c % 1000 END", "1 END",
		"generate_series(1, 100000) c", "generate_series(1, 2000) c", "generate_series(1, 1000000)", "generate_series(1, 20000)",
		"i * 7 % 100000", "i * 7 % 2000",
	).Replace(plans.AMillion)+`;
		SET session_replication_role = DEFAULT;
		CREATE TEMPORARY TABLE before AS SELECT * FROM subscriptions;
		BEGIN; DELETE FROM subscriptions; INSERT INTO subscriptions SELECT * FROM before; COMMIT`)
	ephemeral.Settle(t, conn)
	for _, limit := range []int{1, 100, 1000} {
		args := []any{int64(1), "0", int64(0), limit + 1, int64(1), int64(1)}
		plans.CheckPage(t, conn, fmt.Sprintf("%d changes", limit), changesSQL(limit), args, limit+1, "force_custom_plan", "force_generic_plan")
	}
}

// largestSort returns the rows of the largest sort.
func largestSort(of plans.Plan) (most float64) {
	for _, n := range of.Nodes() {
		if n.Type == "Sort" || n.Type == "Incremental Sort" {
			most = max(most, n.Rows)
			for _, p := range n.Plans {
				most = max(most, p.Rows)
			}
		}
	}
	return most
}

// middle returns the place of a change in the middle of those of store 1.
func middle(t *testing.T, conn *pgx.Conn) (c recorded.Change) {
	t.Helper()
	assert.NoError(t, conn.QueryRow(t.Context(), "SELECT changed_in, id FROM subscriptions WHERE store_id = 1 ORDER BY changed_in, id OFFSET 40000 LIMIT 1", plans.Unprepared).Scan(&c.Transaction, &c.ID))
	return c
}
