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

	"github.com/redis/go-redis/v9"
)

// RedisSentinels is a master with one replica and three sentinels. Two sentinels promote
// the replica when the master has not responded for a second. URL names all sentinels.
type RedisSentinels struct {
	URL             string
	Master, Replica *Server
	Sentinels       []*Server
}

func (s *RedisSentinels) servers() []*Server {
	return append([]*Server{s.Master, s.Replica}, s.Sentinels...)
}

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
	ports, err := freePorts(5)
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
	s := &RedisSentinels{Master: master, Replica: replica}
	var addrs []string
	for i := range ports[2:] {
		sentinel, err := newSentinel(home, lock, ports, i)
		if err != nil {
			return nil, err
		}
		s.Sentinels = append(s.Sentinels, sentinel)
		addrs = append(addrs, sentinel.admin.addr)
	}
	query := url.Values{"master": {"main"}}
	if lock.password != "" {
		query.Set("sentinel_password", lock.password)
	}
	s.URL = lock.url(addrs, query)
	return s, nil
}

// newSentinel returns sentinel i. ports are those of the master, the replica and the
// sentinels. A sentinel has a password but no users.
func newSentinel(home *home, lock lock, ports []int, i int) (*Server, error) {
	port := ports[2+i]
	sentinel, err := newRedis(home, lock, port)
	if err != nil {
		return nil, err
	}
	sentinel.admin.user = ""
	// A sentinel writes its state into its configuration file.
	file := filepath.Join(sentinel.dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(sentinelConf(lock, ports, i)), 0o600); err != nil {
		return nil, err
	}
	sentinel.arguments = slices.Concat([]string{sentinel.arguments[0], file, "--sentinel"}, lock.listen(port))
	return sentinel, nil
}

// sentinelConf returns the configuration of sentinel i. It lists the replica and the other
// sentinels. Otherwise the sentinel would find the other sentinels only after 2 s, and a new
// replica after up to 10 s.
func sentinelConf(lock lock, ports []int, i int) string {
	var conf strings.Builder
	id := func(i int) string { return fmt.Sprintf("%040x", i+1) }
	fmt.Fprintf(&conf, "sentinel myid %s\nsentinel monitor main 127.0.0.1 %d 2\n"+
		"sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 2000\n"+
		"sentinel known-replica main 127.0.0.1 %d\n", id(i), ports[0], ports[1])
	for other, port := range ports[2:] {
		if other != i {
			fmt.Fprintf(&conf, "sentinel known-sentinel main 127.0.0.1 %d %s\n", port, id(other))
		}
	}
	if lock.password != "" {
		fmt.Fprintf(&conf, "requirepass %[1]s\nsentinel auth-user main sentinel\nsentinel auth-pass main %[1]s\n", lock.password)
	}
	return conf.String()
}

// start starts the sentinels last, because they never promote a replica that they have not
// seen working.
func (s *RedisSentinels) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	start := func(_ int, server *Server) error { return server.start() }
	if err := inParallel([]*Server{s.Master, s.Replica}, start); err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := inParallel(s.Sentinels, start); err != nil {
		return err
	}
	return inParallel(s.Sentinels, func(_ int, server *Server) error {
		sentinel := dialRedis(server)
		defer sentinel.Close()
		return until(ctx, func() error { return ready(ctx, sentinel) })
	})
}

// ready returns an error until a sentinel is connected to the replica and to the other
// sentinels, and knows that the replica works.
func ready(ctx context.Context, sentinel *redis.Client) error {
	replicas, err := sentinel.Do(ctx, "sentinel", "replicas", "main").Slice()
	if err != nil {
		return err
	}
	others, err := sentinel.Do(ctx, "sentinel", "sentinels", "main").Slice()
	if err != nil {
		return err
	}
	known := fmt.Sprint(replicas, others)
	if !strings.Contains(known, "master-link-status:ok") || len(others) != 2 ||
		strings.Contains(known, "disconnected") || strings.Contains(known, "s_down") {
		return fmt.Errorf("sentinel knows %s", known)
	}
	return nil
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
