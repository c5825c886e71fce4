//go:build unix

package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

func startRedis(home *home) (*Server, error) {
	return retried(func() (*Server, error) {
		ports, err := freePorts(1)
		if err != nil {
			return nil, err
		}
		server, err := newRedis(home, ports[0])
		if err != nil {
			return nil, err
		}
		return server, server.start()
	})
}

// newRedis is a server that keeps nothing on disk, not started yet.
func newRedis(home *home, port int, settings ...string) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is not installed (sh deploy/ephemeral/install.sh)")
	}
	dir, err := home.room("redis")
	if err != nil {
		return nil, err
	}
	return &Server{
		URL: "redis://" + address(port),
		dir: dir,
		arguments: append([]string{
			program, "--bind", "127.0.0.1", "--port", strconv.Itoa(port),
			"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
		}, settings...),
		answers:  redisAnswers,
		farewell: syscall.SIGTERM,
		crash:    syscall.SIGKILL,
	}, nil
}

// redisAnswers asks whoever serves s.URL for its process id.
func redisAnswers(ctx context.Context, s *Server) error {
	// go-redis would log every dial that fails.
	probe, err := net.Dial("tcp", s.addr())
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

// addr is host:port of a Redis server.
func (s *Server) addr() string { return strings.TrimPrefix(s.URL, "redis://") }

// dialRedis is a plain client of one server, for its administration.
func dialRedis(s *Server) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                  s.addr(),
		MaxRetries:            -1,
		PoolSize:              1,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	})
}
