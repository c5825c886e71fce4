package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PostgresConfig has a pool's settings. Zero is the service's own: bounded and read-only.
type PostgresConfig struct {
	// Writable allows writes. Without it, default_transaction_read_only makes every
	// transaction read-only, even if the role may write; behind a pooler, the role alone decides.
	Writable bool

	// Only is the host and port of the only server to use, one of PostgresHosts. Default: the
	// first one of the url that accepts a connection.
	Only string

	// ApplicationName is shown in pg_stat_activity. Default: "commerce".
	ApplicationName string

	// MaxConns is the maximum size of the pool. Default: 8 for each CPU in use.
	// All pools of all instances must stay below the server's max_connections.
	MaxConns int

	// ConnectTimeout is the maximum time to connect with TLS and login. Default: 1 s.
	ConnectTimeout time.Duration

	// StatementTimeout cancels a statement on the server. A context cannot do that when the
	// connection is lost. In whole milliseconds. Default: 1 s; negative: no timeout. Behind a
	// pooler, that of the role counts.
	StatementTimeout time.Duration

	// Tracer is called for each statement and connection; nil: none.
	Tracer pgx.QueryTracer

	// Settings are further ones of Postgres. One in the url takes precedence.
	Settings map[string]string

	// Edit, if not nil, may change the pool's own settings.
	Edit func(*pgxpool.Config)
}

// Postgres returns a pool for url, which is in libpq's format: a URL or key=value
// pairs. Timeouts and the application name of c take precedence over those of url.
//
// It does not connect: if the server is down, the first query fails. The caller closes the pool.
// Errors are one line and do not contain any part of url, so that no password gets into a log.
func Postgres(ctx context.Context, url string, c PostgresConfig) (*pgxpool.Pool, error) {
	pool, err := parsePostgresURL(url)
	if err != nil {
		return nil, err
	}
	if c.Only != "" {
		keepOnly(pool.ConnConfig, c.Only)
	}
	pool.MaxConns = int32(cmp.Or(c.MaxConns, 8*runtime.GOMAXPROCS(0)))
	pool.MaxConnLifetime = time.Hour
	pool.MaxConnLifetimeJitter = 6 * time.Minute // so that connections are not all renewed at once
	pool.MaxConnIdleTime = 5 * time.Minute
	pool.PingTimeout = 300 * time.Millisecond // for a connection that was idle for 1 s
	pool.ConnConfig.ConnectTimeout = cmp.Or(c.ConnectTimeout, time.Second)
	endSoon(pool, pool.ConnConfig.ConnectTimeout)

	pool.ConnConfig.RuntimeParams["application_name"] = cmp.Or(c.ApplicationName, "commerce") // poolers know it
	beginSessions(pool, c.settings(pool.ConnConfig.RuntimeParams))
	pool.ConnConfig.Tracer = c.Tracer
	if c.Edit != nil {
		c.Edit(pool)
	}
	made, err := pgxpool.NewWithConfig(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("create postgres pool: %w", err)
	}
	return made, nil
}

// settings returns those of a session. It removes those of the url that have no effect.
func (c PostgresConfig) settings(url map[string]string) map[string]string {
	statement := cmp.Or(c.StatementTimeout, time.Second)
	all := map[string]string{
		"statement_timeout":             strconv.FormatInt(max(statement.Milliseconds(), 0), 10),
		"default_transaction_read_only": "on",
	}
	if c.Writable {
		all["default_transaction_read_only"] = "off"
	}
	for name := range all {
		delete(url, name)
	}
	for name, value := range c.Settings {
		if url[name] == "" {
			all[name] = value
		}
	}
	return all
}

// endSoon limits the time in which connections end if their server hangs. When the time of a statement is over, pgx
// cancels it on a second connection and waits up to 15 s for its end. Meanwhile its pool opens no other connection in
// its place, so it would not use the next server. A server that answers the request to cancel may still run the
// statement, for example because its disk hangs: further connections would use up its max_connections.
func endSoon(pool *pgxpool.Config, limit time.Duration) {
	dial := pool.ConnConfig.DialFunc
	pool.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return conn, conn.SetDeadline(time.Now().Add(limit))
	}
	pool.ConnConfig.AfterConnect = func(_ context.Context, conn *pgconn.PgConn) error { // not of one that cancels
		return conn.Conn().SetDeadline(time.Time{})
	}
	pool.BeforeClose = func(conn *pgx.Conn) {
		time.AfterFunc(limit, func() { closeIfHung(conn.PgConn(), limit) })
	}
}

// closeIfHung closes a connection that has not ended, if its server does not answer a request to cancel within limit.
func closeIfHung(conn *pgconn.PgConn, limit time.Duration) {
	select {
	case <-conn.CleanupDone():
		return
	default:
	}
	began := time.Now()
	if err := conn.CancelRequest(context.Background()); err != nil || time.Since(began) >= limit { // no answer is no error
		_ = conn.Conn().Close()
	}
}

// parsePostgresURL replaces pgx's error, which masks only passwords that pgx recognizes.
func parsePostgresURL(url string) (*pgxpool.Config, error) {
	if url == "" {
		// pgx would use the PG* environment variables.
		return nil, errors.New("postgres url: empty")
	}
	pool, err := pgxpool.ParseConfig(url)
	if err == nil && !slices.ContainsFunc(targets(pool.ConnConfig), misread) {
		return pool, nil
	}
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("postgres url: %w", file) // a certificate, for example
	}
	return nil, errors.New("postgres url: not in libpq's format " +
		"(reserved characters of user and password must be percent-encoded; sslmode and port must be valid)")
}

// misread reports whether a host begins with a part of the password, which has an @.
func misread(target *pgconn.FallbackConfig) bool {
	return strings.Contains(target.Host, "@") && !strings.HasPrefix(target.Host, "/")
}

// PostgresHosts returns the hosts of url with their ports, each once, in their order. Errors are
// those of Postgres.
func PostgresHosts(url string) ([]string, error) {
	pool, err := parsePostgresURL(url)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, target := range targets(pool.ConnConfig) {
		if host := address(target); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// keepOnly removes the other hosts. A host that is not one of config changes nothing.
func keepOnly(config *pgx.ConnConfig, host string) {
	kept := slices.DeleteFunc(targets(config), func(target *pgconn.FallbackConfig) bool { return address(target) != host })
	if len(kept) > 0 {
		config.Host, config.Port, config.TLSConfig = kept[0].Host, kept[0].Port, kept[0].TLSConfig
		config.Fallbacks = kept[1:]
	}
}

// targets returns what pgx tries to connect to, in its order. A host can occur twice, with and
// without TLS.
func targets(config *pgx.ConnConfig) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, config.Fallbacks...)
}

func address(target *pgconn.FallbackConfig) string {
	return net.JoinHostPort(target.Host, strconv.Itoa(int(target.Port)))
}

// StatementName returns the name in the comment with which the SQL texts of this program
// begin, as in "/* products */ SELECT …". pg_stat_activity shows it too. ok is false for a text
// without one, such as those of pgx itself.
func StatementName(sql string) (name string, ok bool) {
	text, begun := strings.CutPrefix(sql, "/* ")
	name, _, ended := strings.Cut(text, " */")
	return name, begun && ended
}
