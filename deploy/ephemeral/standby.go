//go:build unix

package ephemeral

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Standby is a Postgres server that replicates another one until it is promoted. It serves
// reads meanwhile. Its methods fail its test like those of Server.
type Standby struct{ *Server }

func startStandby(home *home, primary *Server) (*Standby, error) {
	server, err := newPostgres(home, nil, func(programs postgresPrograms, data string) error {
		return programs.run("pg_basebackup", "-d", primary.URL, "-D", data, "-R", "-X", "stream", "-c", "fast", "--no-sync")
	})
	return &Standby{server}, err
}

// CatchUp waits until the standby shows all that is on the primary's disk when CatchUp is
// called. That includes each transaction whose synchronous commit has returned.
func (s *Standby) CatchUp(primary *Server) {
	s.tb.Helper()
	var end string
	s.must("read the primary's position", primary.query(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
			ELSE pg_current_wal_flush_lsn() END::text`).Scan(&end)
	}))
	s.must("catch up", s.waitUntil("pg_last_wal_replay_lsn() >= '"+end+"'"))
}

// CutOff ends the replication. The standby receives nothing more, and still serves reads.
func (s *Standby) CutOff() {
	s.tb.Helper()
	s.must("cut off", s.follow(""))
	s.must("cut off", s.waitUntil("NOT EXISTS (SELECT FROM pg_stat_wal_receiver)"))
}

// Follow makes the standby replicate primary, and waits until it does. The primary may be a
// standby itself, and must have everything that this one has received.
func (s *Standby) Follow(primary *Server) {
	s.tb.Helper()
	s.must("follow", s.follow(primary.URL))
	from, err := pgx.ParseConfig(primary.URL)
	s.must("follow", err)
	s.must("follow", s.waitUntil(fmt.Sprintf(
		"EXISTS (SELECT FROM pg_stat_wal_receiver WHERE sender_port = %d AND status = 'streaming')", from.Port)))
}

func (s *Standby) follow(primary string) error {
	return s.query(func(ctx context.Context, conn *pgx.Conn) error {
		// ALTER SYSTEM takes no parameters, and must be a statement of its own.
		if _, err := conn.Exec(ctx, "ALTER SYSTEM SET primary_conninfo = '"+primary+"'"); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "SELECT pg_reload_conf()")
		return err
	})
}

// Promote makes the standby a primary that begins a new timeline with what it has received,
// and waits until it accepts writes.
func (s *Standby) Promote() {
	s.tb.Helper()
	s.must("promote", s.query(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT pg_promote(false)")
		return err
	}))
	s.must("promote", s.waitUntil("NOT pg_is_in_recovery()"))
}

// waitUntil waits until a condition in SQL is true, up to startLimit.
func (s *Standby) waitUntil(condition string) error {
	return s.query(func(ctx context.Context, conn *pgx.Conn) error {
		return until(ctx, func() error {
			var is bool
			err := conn.QueryRow(ctx, "SELECT "+condition).Scan(&is)
			if err == nil && !is {
				err = fmt.Errorf("not yet: %s", condition)
			}
			return err
		})
	})
}

// query runs statements on a Postgres server, up to startLimit.
func (s *Server) query(do func(ctx context.Context, conn *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	return do(ctx, conn)
}
