package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/ephemeral"
)

// The summary of a store with a tenth of a million rows is read from its index alone.
func TestPlans_OfASummaryReadOnlyItsIndex(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	conn := prepared(t, aMillion)
	for _, mode := range []string{"force_custom_plan", "force_generic_plan", "auto"} {
		plan, err := explain(t.Context(), conn, mode, totalsSQL, []any{int64(1)})
		if err != nil {
			t.Fatal(err)
		}
		scans := plan.scans()
		if len(scans) != 1 || scans[0].Type != "Index Only Scan" || scans[0].Index != "subscriptions_by_status" {
			t.Errorf("%s: want an index-only scan of subscriptions_by_status alone\n%s", mode, plan)
		}
	}
	rows, err := conn.Query(t.Context(), "EXPLAIN (ANALYZE) "+strings.ReplaceAll(totalsSQL, "$1", "1"))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(lines, "\n")
	if !strings.Contains(text, "Heap Fetches: 0\n") {
		t.Errorf("reads the table, although it was vacuumed:\n%s", text)
	}
}

// scans returns the nodes that read a table.
func (n explained) scans() []explained {
	var found []explained
	if n.Relation != "" {
		found = append(found, n)
	}
	for _, p := range n.Plans {
		found = append(found, p.scans()...)
	}
	return found
}
