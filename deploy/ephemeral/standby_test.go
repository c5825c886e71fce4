//go:build unix

package ephemeral

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// wantRows checks which numbers a table has.
func wantRows(t *testing.T, url, table string, want ...int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), "SELECT n FROM "+table+" ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%s at %s (-want +got): %v\n%s", table, url, err, diff)
	}
}

func TestStandby_FollowsUntilItIsCutOff(t *testing.T) {
	t.Parallel()
	primary := StartPostgres(t)
	execute(t, primary.URL, "CREATE TABLE followed (n int)", "INSERT INTO followed VALUES (1)")
	standby := StartStandby(t, primary)
	execute(t, primary.URL, "INSERT INTO followed VALUES (2)")
	standby.CatchUp(primary)
	wantRows(t, standby.URL, "followed", 1, 2)

	standby.CutOff()
	execute(t, primary.URL, "INSERT INTO followed VALUES (3)", "CHECKPOINT")
	standby.Restart()
	wantRows(t, standby.URL, "followed", 1, 2)

	standby.Follow(primary)
	standby.CatchUp(primary)
	wantRows(t, standby.URL, "followed", 1, 2, 3)
}

// A promoted standby lacks what it did not receive. Others can follow it.
func TestStandby_BecomesAPrimaryWithoutTheLastWrites(t *testing.T) {
	t.Parallel()
	Slow(t)
	primary := StartPostgres(t)
	execute(t, primary.URL, "CREATE TABLE promoted (n int)", "INSERT INTO promoted VALUES (1)")
	first := StartStandby(t, primary)
	second := StartStandby(t, primary)
	second.Follow(first.Server)
	first.CutOff()
	execute(t, primary.URL, "INSERT INTO promoted VALUES (2)")
	primary.Kill()
	first.Promote()
	execute(t, first.URL, "INSERT INTO promoted VALUES (3)")
	second.CatchUp(first.Server)
	second.Promote()
	second.Kill()
	second.Restart()
	execute(t, second.URL, "INSERT INTO promoted VALUES (4)")
	wantRows(t, first.URL, "promoted", 1, 3)
	wantRows(t, second.URL, "promoted", 1, 3, 4)
	wantTimelines(t, map[*Server]int{first.Server: 2, second.Server: 3})
}

func wantTimelines(t *testing.T, want map[*Server]int) {
	t.Helper()
	for server, timeline := range want {
		err := query(t.Context(), server.URL, func(conn *pgx.Conn) error {
			var got int
			err := conn.QueryRow(t.Context(), "SELECT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)::int").Scan(&got)
			if err == nil && got != timeline {
				t.Errorf("%s is on timeline %d, want %d", server.URL, got, timeline)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestStartPostgres_TakesSettings(t *testing.T) {
	t.Parallel()
	server := StartPostgres(t, "fsync=on", "synchronous_commit=off")
	for name, want := range map[string]string{"fsync": "on", "synchronous_commit": "off"} {
		err := query(t.Context(), server.URL, func(conn *pgx.Conn) error {
			var got string
			err := conn.QueryRow(t.Context(), "SHOW "+name).Scan(&got)
			if err == nil && got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
