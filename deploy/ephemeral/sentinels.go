//go:build unix

package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// RedisSentinels is a master with one replica and one sentinel. The sentinel promotes
// the replica when the master has not responded for a second. URL names the sentinel.
type RedisSentinels struct {
	URL                       string
	Master, Replica, Sentinel *Server
}

func (s *RedisSentinels) servers() []*Server { return []*Server{s.Master, s.Replica, s.Sentinel} }

func (s *RedisSentinels) belongTo(tb testing.TB) {
	for _, server := range s.servers() {
		server.belongTo(tb)
	}
}

func startSentinels(home *home, lock lock) (*RedisSentinels, error) {
	return retried(func() (*RedisSentinels, error) {
		s, err := newSentinels(home, lock)
		if err != nil {
			return nil, err
		}
		if err := s.start(); err != nil {
			for _, server := range s.servers() {
				err = errors.Join(err, server.kill())
			}
			return nil, err
		}
		return s, nil
	})
}

func newSentinels(home *home, lock lock) (*RedisSentinels, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	master, err := newRedis(home, lock, ports[0])
	if err != nil {
		return nil, err
	}
	replica, err := newRedis(home, lock, ports[1], "--replicaof", "127.0.0.1 "+strconv.Itoa(ports[0]))
	if err != nil {
		return nil, err
	}
	sentinel, err := newSentinel(home, lock, ports[2], ports[0])
	if err != nil {
		return nil, err
	}
	query := url.Values{"master": {"main"}}
	if lock.password != "" {
		query.Set("sentinel_password", lock.password)
	}
	return &RedisSentinels{
		URL:    lock.url([]string{sentinel.admin.addr}, query),
		Master: master, Replica: replica, Sentinel: sentinel,
	}, nil
}

// newSentinel returns a sentinel of the master on a port. It has a password but no users.
func newSentinel(home *home, lock lock, port, master int) (*Server, error) {
	sentinel, err := newRedis(home, lock, port)
	if err != nil {
		return nil, err
	}
	sentinel.admin.user = ""
	text := fmt.Sprintf("sentinel monitor main 127.0.0.1 %d 1\n"+
		"sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 2000\n", master)
	if lock.password != "" {
		text += fmt.Sprintf("requirepass %[1]s\nsentinel auth-user main sentinel\nsentinel auth-pass main %[1]s\n", lock.password)
	}
	// A sentinel writes its state into its configuration file.
	file := filepath.Join(sentinel.dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	sentinel.arguments = slices.Concat([]string{sentinel.arguments[0], file, "--sentinel"}, lock.listen(port))
	return sentinel, nil
}

// start starts the sentinel last. A sentinel asks a master for its replicas only every
// 10 s, and cannot fail over to a replica that it does not know.
func (s *RedisSentinels) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	err := inParallel([]*Server{s.Master, s.Replica}, func(_ int, server *Server) error { return server.start() })
	if err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := s.Sentinel.start(); err != nil {
		return err
	}
	sentinel := dialRedis(s.Sentinel)
	defer sentinel.Close()
	return until(ctx, func() error {
		replicas, err := sentinel.Do(ctx, "sentinel", "replicas", "main").Slice()
		if err == nil && !strings.Contains(fmt.Sprint(replicas), "master-link-status:ok") {
			err = fmt.Errorf("sentinel knows replicas %v", replicas)
		}
		return err
	})
}

// settle waits until the replica confirms a write. A new replica may need a second for
// that after it has connected.
func (s *RedisSentinels) settle(ctx context.Context) error {
	master := dialRedis(s.Master)
	defer master.Close()
	return until(ctx, func() error {
		pipe := master.Pipeline() // WAIT counts only writes of its own connection
		pipe.Publish(ctx, "ephemeral", "settle")
		replicas := pipe.Do(ctx, "wait", 1, 1000)
		_, err := pipe.Exec(ctx)
		if err == nil && replicas.Val() != int64(1) {
			err = errors.New("replica does not confirm")
		}
		return err
	})
}
