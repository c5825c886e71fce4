//go:build unix

package ephemeral

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Standby is a Postgres server that replicates another one until it is promoted. It serves
// reads meanwhile. Its methods fail its test like those of Server.
type Standby struct{ *Server }

// StartStandby starts a hot standby of primary for this test alone, with all databases. The
// primary must not be a standby, but a standby can follow another one later. It has the settings, too.
func StartStandby(tb testing.TB, primary *Server, settings ...string) *Standby {
	tb.Helper()
	copied := postgresMaker(settings, "pg_basebackup", "-d", primary.URL, "-R", "-X", "stream", "-c", "fast", "--no-sync")
	return &Standby{private(tb, 1, copied).servers()[0]}
}

// CatchUp waits until the standby shows all that is on the primary's disk when CatchUp is
// called. That includes each transaction whose synchronous commit has returned.
func (s *Standby) CatchUp(primary *Server) {
	s.tb.Helper()
	var end string
	must(s.tb, "read the primary's position", query(primary.URL, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
			ELSE pg_current_wal_flush_lsn() END::text`).Scan(&end)
	}))
	s.alter("catch up", "pg_last_wal_replay_lsn() >= '"+end+"'")
}

// CutOff ends the replication. The standby receives nothing more, and still serves reads.
func (s *Standby) CutOff() {
	s.tb.Helper()
	s.alter("cut off", "NOT EXISTS (SELECT FROM pg_stat_wal_receiver)", follow("")...)
}

// Follow makes the standby replicate primary, and waits until it does. The primary may be a
// standby itself, and must have everything that this one has received.
func (s *Standby) Follow(primary *Server) {
	s.tb.Helper()
	from, err := pgx.ParseConfig(primary.URL)
	must(s.tb, "follow", err)
	s.alter("follow", fmt.Sprintf("EXISTS (SELECT FROM pg_stat_wal_receiver WHERE sender_port = %d AND status = 'streaming')", from.Port),
		follow(primary.URL)...)
}

// follow returns the statements that make a standby replicate a primary. ALTER SYSTEM takes no
// parameters.
func follow(primary string) []string {
	return []string{"ALTER SYSTEM SET primary_conninfo = '" + primary + "'", "SELECT pg_reload_conf()"}
}

// Promote makes the standby a primary with what it has, and waits until that accepts writes.
func (s *Standby) Promote() {
	s.tb.Helper()
	s.alter("promote", "NOT pg_is_in_recovery()", "SELECT pg_promote(false)")
}

// alter runs statements, and waits until a condition in SQL is true, up to startLimit.
func (s *Standby) alter(what, condition string, statements ...string) {
	s.tb.Helper()
	must(s.tb, what, query(s.URL, func(ctx context.Context, conn *pgx.Conn) error {
		if err := execute(ctx, conn, statements...); err != nil {
			return err
		}
		return until(func(ctx context.Context) error {
			var is bool
			err := conn.QueryRow(ctx, "SELECT "+condition).Scan(&is)
			if err == nil && !is {
				err = fmt.Errorf("not yet: %s", condition)
			}
			return err
		})
	}))
}
