package figures

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions/suite/plans"
)

// The summary of a store with a tenth of a million rows is read from its index alone.
func TestPlans_OfASummaryReadOnlyItsIndex(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	conn := plans.Prepared(t, plans.AMillion)
	for _, mode := range []string{"force_custom_plan", "force_generic_plan", "auto"} {
		plan := assert.Must(plans.Explain(t.Context(), conn, mode, totalsSQL, []any{int64(1)}))(t)
		scans := slices.DeleteFunc(plan.Nodes(), func(n plans.Plan) bool { return n.Relation == "" })
		assert.That(t, len(scans) == 1 && scans[0].Type == "Index Only Scan" && scans[0].Index == "subscriptions_by_status",
			"%s: want an index-only scan of subscriptions_by_status alone\n%s", mode, plan)
	}
	rows := assert.Must(conn.Query(t.Context(), "EXPLAIN (ANALYZE) "+strings.ReplaceAll(totalsSQL, "$1", "1")))(t)
	text := strings.Join(assert.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
	assert.That(t, strings.Contains(text, "Heap Fetches: 0\n"), "reads the table, although it was vacuumed:\n%s", text)
}
