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

func startPostgres(home *home) (*Server, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	as, err := postgresUser()
	if err != nil {
		return nil, err
	}
	dir, err := initPostgres(home, bin, as)
	if err != nil {
		return nil, err
	}
	return retried(func() (*Server, error) {
		ports, err := freePorts(1)
		if err != nil {
			return nil, err
		}
		server := &Server{
			URL: "postgres://postgres@" + address(ports[0]) + "/postgres?sslmode=disable",
			dir: dir,
			arguments: []string{
				filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"),
				"-p", strconv.Itoa(ports[0]), "-h", "127.0.0.1", "-k", dir,
				// Commits stay synchronous, because VACUUM does not mark rows as visible
				// to all before their commit is written.
				"-c", "fsync=off", "-c", "full_page_writes=off",
				"-c", "max_connections=300",
			},
			as:       as,
			answers:  postgresAnswers,
			shutdown: syscall.SIGINT,  // "fast": does not wait for sessions
			crash:    syscall.SIGQUIT, // "immediate"; SIGKILL would leave shared memory behind
		}
		return server, server.start()
	})
}

// initPostgres creates a directory with an empty database cluster in data.
func initPostgres(home *home, bin string, as *syscall.Credential) (dir string, err error) {
	if dir, err = home.serverDir("postgres"); err != nil {
		return "", err
	}
	if as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			return "", fmt.Errorf("give %s to Postgres' user: %w", dir, err)
		}
	}
	cmd := exec.Command(filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"),
		"-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: as}
	dieWithParent(cmd.SysProcAttr, syscall.SIGKILL)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w:\n%s", err, out)
	}
	return dir, nil
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
// the newest version that Debian has installed outside of PATH.
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
			return dir, nil
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
