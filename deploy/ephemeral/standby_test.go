//go:build unix

package ephemeral

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
)

// wantRows checks which numbers a table has.
func wantRows(t *testing.T, url, table, want string) {
	t.Helper()
	assert.Equal(t, ask(t, url, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM "+table), want, "%s at %s", table, url)
}

func TestStandby_FollowsUntilItIsCutOff(t *testing.T) {
	t.Parallel()
	primary := StartPostgres(t)
	statements(t, primary.URL, "CREATE TABLE followed (n int)", "INSERT INTO followed VALUES (1)")
	standby := StartStandby(t, primary)
	statements(t, primary.URL, "INSERT INTO followed VALUES (2)")
	standby.CatchUp(primary)
	wantRows(t, standby.URL, "followed", "1 2")

	standby.CutOff()
	statements(t, primary.URL, "INSERT INTO followed VALUES (3)", "CHECKPOINT")
	standby.Restart()
	wantRows(t, standby.URL, "followed", "1 2")

	standby.Follow(primary)
	standby.CatchUp(primary)
	wantRows(t, standby.URL, "followed", "1 2 3")
}

// A promoted standby lacks what it did not receive. Others can follow it.
func TestStandby_BecomesAPrimaryWithoutTheLastWrites(t *testing.T) {
	t.Parallel()
	Slow(t)
	primary := StartPostgres(t)
	statements(t, primary.URL, "CREATE TABLE promoted (n int)", "INSERT INTO promoted VALUES (1)")
	first := StartStandby(t, primary)
	second := StartStandby(t, primary)
	second.Follow(first.Server)
	first.CutOff()
	statements(t, primary.URL, "INSERT INTO promoted VALUES (2)")
	primary.Kill()
	first.Promote()
	statements(t, first.URL, "INSERT INTO promoted VALUES (3)")
	second.CatchUp(first.Server)
	second.Promote()
	second.Kill()
	second.Restart()
	statements(t, second.URL, "INSERT INTO promoted VALUES (4)")
	wantRows(t, first.URL, "promoted", "1 3")
	wantRows(t, second.URL, "promoted", "1 3 4")
	wantTimelines(t, map[*Server]string{first.Server: "00000002", second.Server: "00000003"})
}

func wantTimelines(t *testing.T, want map[*Server]string) {
	t.Helper()
	for server, timeline := range want {
		assert.Equal(t, ask(t, server.URL, "SELECT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)"), timeline,
			"%s is on timeline", server.URL)
	}
}

func TestStartPostgres_TakesSettings(t *testing.T) {
	t.Parallel()
	server := StartPostgres(t, "fsync=on", "synchronous_commit=off")
	for name, want := range map[string]string{"fsync": "on", "synchronous_commit": "off"} {
		assert.Equal(t, ask(t, server.URL, "SHOW "+name), want, "%s", name)
	}
}

// ask returns the text that a query gives.
func ask(t *testing.T, url, sql string) (text string) {
	t.Helper()
	err := query(url, func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, sql).Scan(&text) })
	assert.Require(t, err == nil, "%s: %v", sql, err)
	return text
}
