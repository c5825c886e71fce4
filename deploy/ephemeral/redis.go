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

func startRedis(home *home, lock lock) (*Server, error) {
	return retried(func() (*Server, error) {
		ports, err := freePorts(1)
		if err != nil {
			return nil, err
		}
		server, err := newRedis(home, lock, ports[0])
		if err != nil {
			return nil, err
		}
		return server, server.start()
	})
}

// newRedis is a server that keeps nothing on disk, not started yet.
func newRedis(home *home, lock lock, port int, settings ...string) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is not installed (sh deploy/ephemeral/install.sh)")
	}
	dir, err := home.room("redis")
	if err != nil {
		return nil, err
	}
	return &Server{
		URL:  lock.url([]string{address(port)}, url.Values{}),
		dir:  dir,
		door: lock.door(port),
		arguments: slices.Concat(
			[]string{program, "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"},
			lock.listen(port), lock.login(), settings),
		answers:  redisAnswers,
		farewell: syscall.SIGTERM,
		crash:    syscall.SIGKILL,
	}, nil
}

// redisAnswers asks whoever serves s.URL for its process id.
func redisAnswers(ctx context.Context, s *Server) error {
	// go-redis would log every dial that fails.
	probe, err := net.Dial("tcp", s.door.addr)
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
		return errors.New("another server has its port")
	}
	return nil
}

// door is how this package enters a Redis server. URL is the tests' way, by
// which they may have less rights.
type door struct {
	addr           string // host:port
	user, password string
	tls            *tls.Config // nil: plain
}

// Admin is a client of this one Redis server that may do everything, whatever its
// guard says. It is closed with the test.
func (s *Server) Admin() *redis.Client {
	client := dialRedis(s)
	s.tb.Cleanup(func() { _ = client.Close() })
	return client
}

// dialRedis is a client of one server, for its administration.
func dialRedis(s *Server) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                  s.door.addr,
		Username:              s.door.user,
		Password:              s.door.password,
		TLSConfig:             s.door.tls,
		MaxRetries:            -1,
		PoolSize:              1,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	})
}
