//go:build unix

package ephemeral

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// redisMaker makes a Redis server that does not persist its data, unless settings say so.
func redisMaker(guard Guard, settings ...string) maker {
	return func(ports []int) (*group, error) {
		s, err := newRedis(guard, ports[0], settings...)
		if err != nil {
			return nil, err
		}
		return &group{url: s.URL, stages: [][]*Server{{s}}}, nil
	}
}

func newRedis(guard Guard, port int, settings ...string) (*Server, error) {
	name := cmp.Or(os.Getenv(EnvRedisServer), "redis-server")
	program, err := exec.LookPath(name)
	if err != nil {
		return nil, errors.New(name + " is not installed (sh deploy/ephemeral/install.sh)")
	}
	dir, err := serverDir("redis")
	if err != nil {
		return nil, err
	}
	return &Server{
		URL:   guard.url([]string{address(port)}, url.Values{}),
		dir:   dir,
		admin: guard.admin(port),
		arguments: slices.Concat(
			[]string{program, "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"},
			guard.listen(port), guard.login(), settings),
		answers:  redisAnswers,
		shutdown: syscall.SIGTERM,
		crash:    syscall.SIGKILL,
	}, nil
}

// redisAnswers checks that the process of s serves s.URL.
func redisAnswers(ctx context.Context, s *Server) error {
	// Dial without go-redis first, which would log every failed dial.
	probe, err := net.Dial("tcp", s.admin.Addr)
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

// Admin returns a client with all rights, which is closed when the test ends.
func (s *Server) Admin() *redis.Client {
	client := dialRedis(s)
	s.tb.Cleanup(func() { _ = client.Close() })
	return client
}

func dialRedis(s *Server) *redis.Client {
	options := s.admin
	return redis.NewClient(&options)
}

func (s *Server) becomeReady() error {
	if s.ready == nil {
		return nil
	}
	client := dialRedis(s)
	defer client.Close()
	return until(func(ctx context.Context) error { return s.ready(ctx, client) })
}
