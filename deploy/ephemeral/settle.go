//go:build unix

package ephemeral

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Settle waits until every transaction that has begun on the server of db has ended. Only then
// is what was committed so far among the changes of subscriptions. Other tests share the
// server, so that can take as long as their transactions.
func Settle(tb testing.TB, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) {
	tb.Helper()
	transaction := func(bound string) (id uint64) {
		// Unprepared, for tests that deallocate prepared statements.
		err := db.QueryRow(tb.Context(), "SELECT pg_snapshot_"+bound+"(pg_current_snapshot())", pgx.QueryExecModeExec).Scan(&id)
		if err != nil {
			tb.Fatalf("ephemeral: %v", err)
		}
		return id
	}
	for begun := transaction("xmax"); transaction("xmin") < begun; {
		time.Sleep(time.Millisecond)
	}
}
