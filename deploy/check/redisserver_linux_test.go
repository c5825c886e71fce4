package check_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
)

// passwords returns the folder that deploy/redis/passwords.sh fills.
func passwords(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for range 2 { // the second time keeps the passwords
		out, err := exec.CommandContext(t.Context(), "sh", filepath.Join(root, "deploy/redis/passwords.sh"), dir).CombinedOutput()
		assert.Require(t, err == nil, "passwords.sh: %v\n%s", err, out)
	}
	return dir
}

// password returns the password of a user.
func password(t *testing.T, secrets, user string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(secrets, user+".password"))
	assert.Require(t, err == nil && len(text) == 40, "the password of %s has %d characters, want 40: %v", user, len(text), err)
	return string(text)
}

// redisServer is a Redis server or a sentinel on a machine of its own: a folder with copies
// of the files that docs/deploy.md puts into /etc/redis.
type redisServer struct {
	secrets   string
	port      int
	arguments []string
	sentinel  bool
	process   *exec.Cmd
	ended     chan error
	log       *bytes.Buffer // to be read when the process has ended
}

func (s *redisServer) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// startRedis starts a server from a file of deploy/redis. The words that stand for addresses
// of other servers are replaced, as an operator would replace them. Settings are arguments
// that make the test faster.
func startRedis(t *testing.T, secrets string, port int, file string, replace *strings.Replacer, settings ...string) *redisServer {
	t.Helper()
	machine := t.TempDir()
	files := strings.NewReplacer("/etc/redis/", machine+"/", "/var/lib/redis", machine)
	for _, name := range []string{
		filepath.Join(root, "deploy/redis/common.conf"), filepath.Join(root, "deploy/redis", file),
		filepath.Join(secrets, "users.acl"), filepath.Join(secrets, "replication.conf"), filepath.Join(secrets, "sentinel.conf"),
	} {
		text := assert.Must(os.ReadFile(name))(t)
		assert.NoError(t, os.WriteFile(filepath.Join(machine, filepath.Base(name)), []byte(replace.Replace(files.Replace(string(text)))), 0o600))
	}
	s := &redisServer{secrets: secrets, port: port, sentinel: file == "sentinel.conf"}
	s.arguments = []string{filepath.Join(machine, file), "--bind", "127.0.0.1", "--port", strconv.Itoa(port)}
	if s.sentinel {
		s.arguments = append(s.arguments, "--sentinel")
	}
	s.arguments = append(s.arguments, settings...)
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	s.start(t)
	return s
}

// start starts the process and waits until it answers.
func (s *redisServer) start(t *testing.T) {
	t.Helper()
	s.process = exec.Command("redis-server", s.arguments...)
	s.log, s.ended = new(bytes.Buffer), make(chan error, 1)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := s.process.Start()
	assert.Require(t, err == nil, "%v (sh deploy/ephemeral/install.sh)", err)
	process, ended := s.process, s.ended // those of this start, also if the process outlives it
	go func() { ended <- process.Wait() }()
	client := s.client(t)
	eventually(t, func() error {
		select {
		case err := <-s.ended:
			s.ended <- err
			t.Fatalf("redis-server %s: %v\n%s", strings.Join(s.arguments, " "), err, s.log)
		default:
		}
		return client.Ping(t.Context()).Err()
	})
}

// end sends a signal and waits for the end of the process. It repeats the signal, because
// Redis ignores SIGTERM while it writes the first AOF of a new replica.
func (s *redisServer) end(signal syscall.Signal) {
	for s.process.Process.Signal(signal) == nil {
		select {
		case err := <-s.ended:
			s.ended <- err
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// client returns a client that may do everything.
func (s *redisServer) client(t *testing.T) *redis.Client {
	t.Helper()
	options := &redis.Options{Addr: s.addr(), Username: "admin", Password: password(t, s.secrets, "admin"), MaxRetries: -1}
	if s.sentinel { // it has a password, and no users
		options.Username, options.Password = "", password(t, s.secrets, "sentinel")
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// wantNoAnonymous checks that a client without a password can do nothing.
func (s *redisServer) wantNoAnonymous(t *testing.T) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.addr(), MaxRetries: -1})
	defer client.Close()
	err := client.Ping(t.Context()).Err()
	assert.That(t, redis.IsAuthError(err), "a client without a password: %v, want a refusal", err)
}

// role returns what ROLE answers.
func (s *redisServer) role(t *testing.T) ([]any, error) {
	return s.client(t).Do(t.Context(), "role").Slice()
}

// eventually repeats a check until it succeeds, for up to two minutes.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	err := errors.New("not checked")
	for start := time.Now(); time.Since(start) < 2*time.Minute; time.Sleep(50 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatal(fmt.Errorf("not within two minutes: %w", err))
}
