package inspect

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// What is between the check and Postgres: a pooler, or a network that breaks.

// startPooler starts a PgBouncer for a database, and returns the URL through it.
func startPooler(t *testing.T, database, mode string) string {
	t.Helper()
	to := assert.Must(pgx.ParseConfig(database))(t)
	dir, port := t.TempDir(), ephemeral.FreePorts(t, 1)[0]
	users, settings := filepath.Join(dir, "users.txt"), filepath.Join(dir, "pgbouncer.ini")
	for file, text := range map[string]string{
		users: `"postgres" ""` + "\n",
		settings: fmt.Sprintf("[databases]\n%s = host=%s port=%d\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
			"unix_socket_dir =\nauth_type = trust\nauth_file = %s\npool_mode = %s\nlogfile = /dev/null\n"+
			"ignore_startup_parameters = statement_timeout, default_transaction_read_only\n",
			to.Database, to.Host, to.Port, port, users, mode),
	} {
		assert.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	arguments := []string{"-q", settings}
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		for readable := dir; readable != os.TempDir() && readable != "/"; readable = filepath.Dir(readable) {
			assert.NoError(t, os.Chmod(readable, 0o755))
		}
		arguments = append(arguments, "-u", "postgres")
	}
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // where Debian installs it, out of the path of most users
	}
	cmd := exec.Command(program, arguments...)
	assert.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	u := assert.Must(url.Parse(database))(t)
	u.Host = fmt.Sprintf("127.0.0.1:%d", port)
	ephemeral.Until(t, func() error {
		conn, err := net.Dial("tcp", u.Host)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return u.String()
}

func TestPooler_DeliversNotificationsOnlyInSessionMode(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]Level{"transaction": Warning, "session": OK} {
		got, err := Servers(t.Context(), Config{DatabaseURL: startPooler(t, ephemeral.Postgres(t), mode)})
		is := Level("")
		for _, f := range got {
			if f.Code == "postgres_listen" {
				is = f.Level
			}
		}
		assert.That(t, err == nil && is == want, "%s: %q, %v, want %q: %+v", mode, is, err, want, got)
	}
}

// The server may stop answering while it is checked.
func TestPostgres_StallsInTheMiddle(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	database := assert.Must(url.Parse(ephemeral.Migrated(t)))(t)
	for _, bytes := range []int64{900, 1500} { // of the server's replies on each connection
		through := *database
		through.Host = serve(t, func(client net.Conn) {
			server, err := net.Dial("tcp", database.Host)
			if err != nil {
				_ = client.Close()
				return
			}
			context.AfterFunc(t.Context(), func() { _ = client.Close(); _ = server.Close() })
			go func() { _, _ = io.CopyN(client, server, bytes) }()
			go func() { _, _ = io.Copy(server, client) }()
		})
		check(t, "stalled", Config{DatabaseURL: through.String()}, wrong{"postgres_answers": Serious})
	}
}
