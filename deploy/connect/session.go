package connect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sessions begins the sessions of a pool, directly on Postgres or on a pooler such as PgBouncer.
//
// A pooler may run each transaction in another session of Postgres, which it shares with other clients. There, a
// setting would change their statements, and a statement with a name would be missing, or there already. So both are
// for direct connections alone, where the name saves three quarters of the CPU of a list: it is planned once.
type sessions struct {
	settings string // rows of names and values in SQL

	// chosen is pgx's mode that the URL names; 0: none, so it depends on what the connection leads to.
	chosen pgx.QueryExecMode
	pooled atomic.Bool // the latest connection leads to a pooler
}

// beginSessions makes pool begin its sessions with settings. They are no startup parameters, because poolers refuse those
// that they do not know. Without a pool, as for a Listener, each connection of its configuration has them too.
func beginSessions(pool *pgxpool.Config, settings map[string]string) {
	s := &sessions{}
	if mode := pool.ConnConfig.DefaultQueryExecMode; mode != pgx.QueryExecModeCacheStatement {
		s.chosen = mode
	}
	var rows []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		rows = append(rows, "("+quote(name)+", "+quote(settings[name])+")")
	}
	s.settings = strings.Join(rows, ", ")
	validate := pool.ConnConfig.ValidateConnect
	pool.ConnConfig.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := s.begin(ctx, conn); err != nil || validate == nil {
			return err
		}
		return validate(ctx, conn) // as target_session_attrs says
	}
	pool.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		c.DefaultQueryExecMode = s.mode(s.pooled.Load())
		return nil
	}
	pool.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		pooled := Pooled(conn)
		s.pooled.Store(pooled)
		if conn.Config().DefaultQueryExecMode != s.mode(pooled) {
			conn.PgConn().CustomData()[unfitKey] = true
		}
		return nil
	}
	pool.PrepareConn = func(_ context.Context, conn *pgx.Conn) (fit bool, err error) {
		return conn.PgConn().CustomData()[unfitKey] == nil, nil // else the pool opens another one
	}
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func (s *sessions) mode(pooled bool) pgx.QueryExecMode {
	switch {
	case s.chosen != 0:
		return s.chosen
	case pooled:
		return pgx.QueryExecModeCacheDescribe // no names
	}
	return pgx.QueryExecModeCacheStatement
}

const (
	pooledKey = "commerce pooled"
	unfitKey  = "commerce unfit" // for a connection whose mode is for another kind of server
)

// begin makes the settings, unless conn leads to a pooler. A pooler has process IDs of its own for its clients. For one
// that shows those of Postgres, the URL can name a mode.
func (s *sessions) begin(ctx context.Context, conn *pgconn.PgConn) error {
	direct := conn.PID()
	if s.chosen != 0 {
		direct = 0
	}
	made, err := conn.Exec(ctx, fmt.Sprintf(`/* begin_session */ SELECT set_config(name, value, false)
		FROM (VALUES %s) AS setting (name, value) WHERE pg_backend_pid() = %d`, s.settings, direct)).ReadAll()
	if err != nil {
		return fmt.Errorf("begin session: %w", err)
	}
	conn.CustomData()[pooledKey] = len(made[0].Rows) == 0
	return nil
}

// Pooled reports whether a connection of a pool leads to a pooler such as PgBouncer.
func Pooled(conn *pgx.Conn) bool { return conn.PgConn().CustomData()[pooledKey] == true }
