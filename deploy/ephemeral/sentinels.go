//go:build unix

package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// RedisSentinels is a master with one replica, and one sentinel which makes
// the replica a master when the master was silent for a second. URL names the
// sentinel.
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

func startSentinels(home *home) (*RedisSentinels, error) {
	return retried(func() (*RedisSentinels, error) {
		s, err := newSentinels(home)
		if err != nil {
			return nil, err
		}
		err = inParallel(s.servers(), func(_ int, server *Server) error { return server.start() })
		if err == nil {
			err = s.settle()
		}
		if err != nil {
			for _, server := range s.servers() {
				err = errors.Join(err, server.kill())
			}
			return nil, err
		}
		return s, nil
	})
}

func newSentinels(home *home) (*RedisSentinels, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	master, err := newRedis(home, ports[0])
	if err != nil {
		return nil, err
	}
	replica, err := newRedis(home, ports[1], "--replicaof", "127.0.0.1 "+strconv.Itoa(ports[0]))
	if err != nil {
		return nil, err
	}
	sentinel, err := newRedis(home, ports[2])
	if err != nil {
		return nil, err
	}
	// A sentinel rewrites its file as it learns.
	file := filepath.Join(sentinel.dir, "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %d\nsentinel monitor main 127.0.0.1 %d 1\n"+
		"sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 2000\n", ports[2], ports[0])
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	sentinel.arguments = []string{sentinel.arguments[0], file, "--sentinel"}
	return &RedisSentinels{
		URL:    sentinel.URL + "?master=main",
		Master: master, Replica: replica, Sentinel: sentinel,
	}, nil
}

// settle waits until the replica is linked to the master.
func (s *RedisSentinels) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	client := dialRedis(s.Replica)
	defer client.Close()
	return until(ctx, func() error {
		info, err := client.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "master_link_status:up\r\n") {
			err = errors.New("replica is not linked")
		}
		return err
	})
}
