//go:build unix

package ephemeral

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

func startRedis(home *home, lock lock, settings ...string) (*Server, error) {
	return retried(func() (*Server, error) {
		ports, err := freePorts(1)
		if err != nil {
			return nil, err
		}
		server, err := newRedis(home, lock, ports[0], settings...)
		if err != nil {
			return nil, err
		}
		return server, server.start()
	})
}

// newRedis returns a server that does not persist its data, unless settings say so. It is
// not started.
func newRedis(home *home, lock lock, port int, settings ...string) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is not installed (sh deploy/ephemeral/install.sh)")
	}
	dir, err := home.serverDir("redis")
	if err != nil {
		return nil, err
	}
	return &Server{
		URL:   lock.url([]string{address(port)}, url.Values{}),
		dir:   dir,
		admin: lock.admin(port),
		arguments: slices.Concat(
			[]string{program, "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"},
			lock.listen(port), lock.login(), settings),
		answers:  redisAnswers,
		shutdown: syscall.SIGTERM,
		crash:    syscall.SIGKILL,
	}, nil
}

// redisAnswers checks that the process of s serves s.URL.
func redisAnswers(ctx context.Context, s *Server) error {
	// Dial without go-redis first, which would log every failed dial.
	probe, err := net.Dial("tcp", s.admin.addr)
	if err != nil {
		return err
	}
	_ = probe.Close()
	client := dialRedis(s)
	defer client.Close()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("process_id:%d\r\n", s.process.Pid); !strings.Contains(info, want) {
		return errors.New("another server uses its port")
	}
	return nil
}

// adminAccess is how this package connects to a Redis server. The URL for tests may have
// fewer rights.
type adminAccess struct {
	addr           string // host:port
	user, password string
	tls            *tls.Config // nil without TLS
}

// Admin returns a client of this Redis server that has all rights, whatever the guard.
// It is closed when the test ends.
func (s *Server) Admin() *redis.Client {
	client := dialRedis(s)
	s.tb.Cleanup(func() { _ = client.Close() })
	return client
}

// dialRedis returns an admin client of one server.
func dialRedis(s *Server) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                  s.admin.addr,
		Username:              s.admin.user,
		Password:              s.admin.password,
		TLSConfig:             s.admin.tls,
		MaxRetries:            -1,
		PoolSize:              1,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	})
}
