package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// PostgresConfig holds a pool's settings. The zero value is the service's own:
// a bounded pool that can only read.
type PostgresConfig struct {
	// Writable allows writes. Without it every transaction is read-only, by
	// default_transaction_read_only, whatever the role may do.
	Writable bool

	// ApplicationName is what pg_stat_activity shows. Default "commerce".
	ApplicationName string

	// MaxConns bounds the pool. Default 8 for each CPU in use; with the
	// instances' number it must stay under the server's max_connections.
	MaxConns int

	// ConnectTimeout bounds one connection's making, TLS and login included.
	// Default 1 s.
	ConnectTimeout time.Duration

	// StatementTimeout ends a statement at the server, which a context
	// alone does not when the connection is gone. In whole milliseconds;
	// default 1 s, negative none.
	StatementTimeout time.Duration

	// Edit, when not nil, may change the rest before the pool is made, such
	// as a tracer.
	Edit func(*pgxpool.Config)
}

// Postgres returns a pool for url, which is as libpq has it: a URL, or
// key=value pairs. What it says about time-outs or the application's name
// yields to c.
//
// It waits for no connection: a server that is down shows with the first
// query. The caller closes the pool. An error is one line without any part of
// url, so that a password cannot end in a log.
//
// The settings travel as start-up parameters, since a transaction pooler would
// hand a SET on to other clients; PgBouncer must list them in
// ignore_startup_parameters.
func Postgres(ctx context.Context, url string, c PostgresConfig) (*pgxpool.Pool, error) {
	pool, err := parsePostgresURL(url)
	if err != nil {
		return nil, err
	}
	pool.MaxConns = int32(cmp.Or(c.MaxConns, 8*runtime.GOMAXPROCS(0)))
	pool.MaxConnLifetime = time.Hour
	pool.MaxConnLifetimeJitter = 6 * time.Minute // not all at once
	pool.MaxConnIdleTime = 5 * time.Minute
	pool.PingTimeout = 300 * time.Millisecond // of a connection that idled for 1 s
	pool.ConnConfig.ConnectTimeout = cmp.Or(c.ConnectTimeout, time.Second)

	statement := cmp.Or(c.StatementTimeout, time.Second)
	params := pool.ConnConfig.RuntimeParams
	params["application_name"] = cmp.Or(c.ApplicationName, "commerce")
	params["statement_timeout"] = strconv.FormatInt(max(statement.Milliseconds(), 0), 10)
	params["default_transaction_read_only"] = "on"
	if c.Writable {
		params["default_transaction_read_only"] = "off"
	}
	if c.Edit != nil {
		c.Edit(pool)
	}
	made, err := pgxpool.NewWithConfig(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("make postgres pool: %w", err)
	}
	return made, nil
}

// parsePostgresURL drops what pgx says about a bad url, which masks passwords
// only as far as it recognizes them.
func parsePostgresURL(url string) (*pgxpool.Config, error) {
	if url == "" {
		// pgx would take it for "whatever the PG… environment says".
		return nil, errors.New("postgres url: empty")
	}
	pool, err := pgxpool.ParseConfig(url)
	if err == nil {
		return pool, nil
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		return nil, fmt.Errorf("postgres url: %w", file) // a certificate, or the like
	}
	return nil, errors.New("postgres url: not as libpq has it " +
		"(reserved characters of user and password must be percent-encoded; sslmode and port must be valid)")
}
