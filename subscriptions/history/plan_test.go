package history

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions/recorded"
	"commerce/subscriptions/suite/plans"
)

// updates makes two events of a third of the subscriptions, beside the first states of all.
const updates = "UPDATE subscriptions SET price_amount = price_amount + 100, current_period_end = current_period_end + interval '1 day' WHERE id % 3 = 0"

// Events are read by index, with the state before each, also where a store has a large share of all rows and most states have none.
func TestPlans_OfEventsReadOnlyTheirPage(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	for name, script := range plans.LargeStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := plans.Prepared(t, script)
			for _, statement := range []string{"SET session_replication_role = DEFAULT", "SELECT record_missed_states()", updates, "VACUUM (ANALYZE) subscription_states"} {
				assert.Must(conn.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol))(t)
			}
			ephemeral.Settle(t, conn)
			var middle recorded.Change
			assert.NoError(t, conn.QueryRow(t.Context(), `SELECT recorded_in, number << 3 | 7 FROM subscription_states
				WHERE store_id = 1 AND NOT first ORDER BY recorded_in, number OFFSET 5000 LIMIT 1`, plans.Unprepared).Scan(&middle.Transaction, &middle.ID))
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				for _, limit := range []int{101, 1001} {
					for place, after := range map[string]recorded.Change{"the beginning": {}, "the middle": middle, "the end": {Transaction: 1 << 62, ID: 7}} {
						rows := limit
						if place == "the end" {
							rows = 0
						}
						checkStates(t, conn, fmt.Sprintf("%d events after %s", limit, place), mode, statesSQL(limit), 3*rows, 1, fmt.Sprint(after.Transaction), after.ID)
					}
				}
				checkStates(t, conn, "the latest events", mode, latestEventsSQL, 1, []int64{1}, fmt.Sprintf("{%d}", middle.Transaction), []int64{middle.ID})
			}
		})
	}
}

// checkStates explains a statement that may read that many states, by index.
func checkStates(t *testing.T, conn *pgx.Conn, name, mode, sql string, most int, args ...any) {
	t.Helper()
	plan, err := plans.Explain(t.Context(), conn, mode, sql, args)
	assert.Require(t, err == nil, "%s: %v", name, err)
	read, whole := plan.Read("subscription_states")
	assert.That(t, !whole && read <= float64(most), "%s, %s: reads %v states, want %d at most, by index\n%s", name, mode, read, most, plan)
}
