package observe_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/ephemeral"
	"commerce/deploy/inspect"
	"commerce/deploy/observe"
)

// startPooler starts a PgBouncer in front of a database, and returns the URL that goes through
// it.
func startPooler(t *testing.T, database, mode string) string {
	t.Helper()
	to, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = free.Close()
	dir := t.TempDir()
	users, settings := filepath.Join(dir, "users.txt"), filepath.Join(dir, "pgbouncer.ini")
	for file, text := range map[string]string{
		users: `"postgres" ""` + "\n",
		settings: fmt.Sprintf("[databases]\n%s = host=%s port=%d\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\n"+
			"unix_socket_dir =\nauth_type = trust\nauth_file = %s\npool_mode = %s\nlogfile = /dev/null\n"+
			"ignore_startup_parameters = statement_timeout, default_transaction_read_only\n",
			to.Database, to.Host, to.Port, port, users, mode),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	arguments := []string{"-q", settings}
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		for readable := dir; readable != os.TempDir() && readable != "/"; readable = filepath.Dir(readable) {
			if err := os.Chmod(readable, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		arguments = append(arguments, "-u", "postgres")
	}
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // where Debian installs it, out of the path of most users
	}
	cmd := exec.Command(program, arguments...)
	if err := cmd.Start(); err != nil {
		t.Fatalf("PgBouncer is not installed (sh deploy/ephemeral/install.sh): %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = addr
	eventually(t, func() error {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return u.String()
}

func TestPooler_DeliversNotificationsOnlyInSessionMode(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]inspect.Level{"transaction": inspect.Warning, "session": inspect.OK} {
		got := findings(t, observe.Config{DatabaseURL: startPooler(t, ephemeral.Postgres(t), mode)}, inspect.Expect{})
		is := inspect.Level("")
		for _, f := range got {
			if f.Code == "postgres_listen" {
				is = f.Level
			}
		}
		if is != want {
			t.Errorf("%s: %q, want %q: %+v", mode, is, want, got)
		}
	}
}
