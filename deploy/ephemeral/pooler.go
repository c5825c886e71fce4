//go:build unix

package ephemeral

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// EnvPooler is the mode of a PgBouncer, "transaction" or "session", that is in front of each database of the shared
// Postgres server.
const EnvPooler = "TEST_POSTGRES_POOLER"

// Pooler returns the URL of a database through a PgBouncer for this test alone, with its default settings. Whoever
// connects gets another connection to Postgres each time.
func Pooler(tb testing.TB, database, mode string) string {
	tb.Helper()
	return private(tb, 1, poolerMaker(database, mode)).url
}

func poolerMaker(database, mode string) maker {
	return func(ports []int) (*group, error) {
		to, err := pgx.ParseConfig(database)
		if err != nil {
			return nil, err
		}
		through, err := url.Parse(database)
		if err != nil {
			return nil, err
		}
		through.Host = address(ports[0])
		program, err := exec.LookPath("pgbouncer")
		if err != nil {
			program = "/usr/sbin/pgbouncer" // where Debian installs it, out of the path of most users
		}
		as, err := postgresUser() // PgBouncer refuses to run as root too
		if err != nil {
			return nil, err
		}
		dir, err := serverDir("pgbouncer")
		if err != nil {
			return nil, err
		}
		if as != nil {
			if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
				return nil, err
			}
		}
		settings := filepath.Join(dir, "pgbouncer.ini")
		text := fmt.Sprintf("[databases]\n* = host=%s port=%d user=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
			"unix_socket_dir =\nauth_type = any\npool_mode = %s\nmax_client_conn = 1000\ndefault_pool_size = 100\n"+
			"min_pool_size = 3\nserver_round_robin = 1\n", to.Host, to.Port, to.User, ports[0], mode)
		if err := os.WriteFile(settings, []byte(text), 0o644); err != nil {
			return nil, err
		}
		server := &Server{
			URL: through.String(), dir: dir, arguments: []string{program, settings}, as: as,
			answers: func(_ context.Context, s *Server) error {
				return query(s.URL, func(ctx context.Context, conn *pgx.Conn) error { return conn.Ping(ctx) })
			},
			shutdown: syscall.SIGTERM, crash: syscall.SIGKILL,
		}
		return &group{url: server.URL, stages: [][]*Server{{server}}}, nil
	}
}
