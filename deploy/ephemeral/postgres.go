//go:build unix

package ephemeral

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// startPostgres starts a server on a new database cluster. Settings are added to
// postgresSettings, "name=value".
func startPostgres(home *home, settings ...string) (*Server, error) {
	return newPostgres(home, settings, func(programs postgresPrograms, data string) error {
		return programs.run("initdb", "-D", data,
			"-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
	})
}

// postgresSettings are those of every server. Commits stay synchronous, because VACUUM does
// not mark rows as visible to all before their commit is written.
var postgresSettings = []string{
	"fsync=off", "full_page_writes=off", "max_connections=300",
	"wal_retrieve_retry_interval=100ms", // how long a standby waits before it connects again
}

// newPostgres starts a server whose data directory fill creates.
func newPostgres(home *home, settings []string, fill func(programs postgresPrograms, data string) error) (*Server, error) {
	programs, err := findPostgres()
	if err != nil {
		return nil, err
	}
	dir, err := programs.serverDir(home)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if err := fill(programs, data); err != nil {
		return nil, err
	}
	return retried(func() (*Server, error) {
		ports, err := freePorts(1)
		if err != nil {
			return nil, err
		}
		arguments := []string{
			programs.path("postgres"), "-D", data, "-p", strconv.Itoa(ports[0]), "-h", "127.0.0.1", "-k", dir,
		}
		for _, setting := range slices.Concat(postgresSettings, settings) {
			arguments = append(arguments, "-c", setting)
		}
		server := &Server{
			URL:       "postgres://postgres@" + address(ports[0]) + "/postgres?sslmode=disable",
			dir:       dir,
			arguments: arguments,
			as:        programs.as,
			answers:   postgresAnswers,
			shutdown:  syscall.SIGINT,  // "fast": does not wait for sessions
			crash:     syscall.SIGQUIT, // "immediate"; SIGKILL would leave shared memory behind
		}
		return server, server.start()
	})
}

// postgresPrograms are the programs of one version, and the user who runs them.
type postgresPrograms struct {
	bin string
	as  *syscall.Credential // nil: the current user
}

func findPostgres() (postgresPrograms, error) {
	bin, err := postgresBin()
	if err != nil {
		return postgresPrograms{}, err
	}
	as, err := postgresUser()
	return postgresPrograms{bin, as}, err
}

func (p postgresPrograms) path(name string) string { return filepath.Join(p.bin, name) }

// serverDir creates a directory that the server's user owns.
func (p postgresPrograms) serverDir(home *home) (string, error) {
	dir, err := home.serverDir("postgres")
	if err != nil {
		return "", err
	}
	if p.as != nil {
		if err := os.Chown(dir, int(p.as.Uid), int(p.as.Gid)); err != nil {
			return "", fmt.Errorf("give %s to Postgres' user: %w", dir, err)
		}
	}
	return dir, nil
}

// command returns a program that ends with this process.
func (p postgresPrograms) command(name string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(p.path(name), arguments...)
	cmd.Dir = "/" // the user may not be allowed to enter the current directory
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.as}
	dieWithParent(cmd.SysProcAttr, syscall.SIGKILL)
	return cmd
}

func (p postgresPrograms) run(name string, arguments ...string) error {
	if out, err := p.command(name, arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w:\n%s", name, err, out)
	}
	return nil
}

// postgresAnswers checks that s.URL serves the data directory of s.
func postgresAnswers(ctx context.Context, s *Server) error {
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var data string
	if err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&data); err != nil {
		return err
	}
	if data != filepath.Join(s.dir, "data") {
		return errors.New("another server uses its port")
	}
	return nil
}

// postgresBin returns the directory of initdb and postgres: the first in PATH, otherwise
// the newest version that Debian has installed outside of PATH. It follows links, because
// the other programs of that version are where postgres is.
func postgresBin() (string, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), dirs...) {
		_, noInit := exec.LookPath(filepath.Join(dir, "initdb"))
		_, noServer := exec.LookPath(filepath.Join(dir, "postgres"))
		if noInit == nil && noServer == nil {
			server, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
			return filepath.Dir(server), err
		}
	}
	return "", errors.New("postgres and initdb are not installed (sh deploy/ephemeral/install.sh)")
}

// postgresUser returns the user to run Postgres as, because it refuses to run as root.
// It returns nil if we are not root.
func postgresUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("find a user for Postgres, which refuses to run as root: %w", err)
		}
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", account.Username, err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", account.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
