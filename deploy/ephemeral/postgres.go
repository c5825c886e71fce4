//go:build unix

package ephemeral

import (
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
	"testing"

	"github.com/jackc/pgx/v5"
)

// StartPostgres starts a Postgres server for this test alone. Its URL names an empty
// database. Settings are those of postgresql.conf, "name=value", such as "fsync=on", without
// which the server does not wait for the disk.
func StartPostgres(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return private(tb, 1, postgresMaker(settings, initdb...)).servers()[0]
}

var initdb = []string{"initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"}

// postgresSettings are those of every server. Commits stay synchronous, because VACUUM does
// not mark rows as visible to all before their commit is written.
var postgresSettings = []string{
	"fsync=off", "full_page_writes=off", "max_connections=300",
	"wal_retrieve_retry_interval=100ms", // how long a standby waits before it connects again
}

// postgresMaker makes a server whose data the command fill creates. fill is one of Postgres'
// programs with its arguments, without the directory.
func postgresMaker(settings []string, fill ...string) maker {
	return func(ports []int) (*group, error) {
		bin, err := postgresBin()
		if err != nil {
			return nil, err
		}
		as, err := postgresUser()
		if err != nil {
			return nil, err
		}
		dir, err := serverDir("postgres")
		if err != nil {
			return nil, err
		}
		if as != nil {
			if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
				return nil, err
			}
		}
		data := filepath.Join(dir, "data")
		cmd := exec.Command(filepath.Join(bin, fill[0]), append(slices.Clone(fill[1:]), "-D", data)...)
		cmd.Dir = "/" // the user may not be allowed to enter the current directory
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: as}
		dieWithParent(cmd.SysProcAttr, syscall.SIGKILL)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w:\n%s", fill[0], err, out)
		}
		arguments := []string{filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(ports[0]), "-h", "127.0.0.1", "-k", dir}
		for _, setting := range slices.Concat(postgresSettings, settings) {
			arguments = append(arguments, "-c", setting)
		}
		server := &Server{
			URL:       "postgres://postgres@" + address(ports[0]) + "/postgres?sslmode=disable",
			dir:       dir,
			arguments: arguments,
			as:        as,
			answers:   postgresAnswers,
			shutdown:  syscall.SIGINT,  // "fast": does not wait for sessions
			crash:     syscall.SIGQUIT, // "immediate"; SIGKILL would leave shared memory behind
		}
		return &group{url: server.URL, stages: [][]*Server{{server}}}, nil
	}
}

// postgresAnswers checks that s.URL serves the data directory of s.
func postgresAnswers(_ context.Context, s *Server) error {
	return query(s.URL, func(ctx context.Context, conn *pgx.Conn) error {
		var data string
		err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&data)
		if err == nil && data != filepath.Join(s.dir, "data") {
			err = errors.New("another server uses its port")
		}
		return err
	})
}

// postgresBin returns the directory of initdb and postgres: the first in PATH, otherwise
// the newest version that Debian has installed outside of PATH. It follows links, because
// the other programs of that version are where postgres is.
func postgresBin() (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/[1-9][0-9]/bin")
	slices.Reverse(dirs) // the newest first
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), dirs...) {
		_, noInit := exec.LookPath(filepath.Join(dir, "initdb"))
		server, noServer := exec.LookPath(filepath.Join(dir, "postgres"))
		if noInit == nil && noServer == nil {
			server, err := filepath.EvalSymlinks(server)
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
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("find a user for Postgres, which refuses to run as root: %w", err)
	}
	as := &syscall.Credential{}
	_, err = fmt.Sscan(account.Uid+" "+account.Gid, &as.Uid, &as.Gid)
	return as, err
}
