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
	"strings"

	"github.com/redis/go-redis/v9"
)

// RedisSentinels is a master with one replica and three sentinels. Two sentinels promote
// the replica when the master has not responded for a second. URL names all sentinels.
type RedisSentinels struct {
	URL             string
	Master, Replica *Server
	Sentinels       []*Server
}

// sentinelsMaker makes a master, its replica and three sentinels. The sentinels start last, because
// they never promote a replica that they have not seen working.
func sentinelsMaker(guard Guard) maker {
	return func(ports []int) (*group, error) {
		var all []*Server
		var hosts []string
		for i, port := range ports {
			server, err := newRedis(guard, port)
			if i == 1 && err == nil {
				server.arguments = append(server.arguments, "--replicaof", "127.0.0.1 "+fmt.Sprint(ports[0]))
			}
			if i > 1 && err == nil {
				err = server.makeSentinel(guard, ports, i)
				hosts = append(hosts, server.admin.Addr)
			}
			if err != nil {
				return nil, err
			}
			all = append(all, server)
		}
		all[0].ready = replicates
		query := url.Values{"master": {"main"}}
		if guard.password != "" {
			query.Set("sentinel_password", guard.password)
		}
		return &group{url: guard.url(hosts, query), stages: [][]*Server{all[:2], all[2:]}}, nil
	}
}

// makeSentinel lets the server on ports[own] be a sentinel. A sentinel has a password but no users,
// and writes its state into its configuration file. The file lists the replica and the other
// sentinels. Otherwise the sentinel would find the other sentinels only after 2 s, and a new replica
// after up to 10 s.
func (s *Server) makeSentinel(guard Guard, ports []int, own int) error {
	var conf strings.Builder
	id := func(i int) string { return fmt.Sprintf("%040x", i) }
	fmt.Fprintf(&conf, "sentinel myid %s\nsentinel monitor main 127.0.0.1 %d 2\n"+
		"sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 2000\n"+
		"sentinel known-replica main 127.0.0.1 %d\n", id(own), ports[0], ports[1])
	for i, port := range ports {
		if i > 1 && i != own {
			fmt.Fprintf(&conf, "sentinel known-sentinel main 127.0.0.1 %d %s\n", port, id(i))
		}
	}
	if guard.password != "" {
		fmt.Fprintf(&conf, "requirepass %[1]s\nsentinel auth-user main sentinel\nsentinel auth-pass main %[1]s\n", guard.password)
	}
	file := filepath.Join(s.dir, "sentinel.conf")
	s.admin.Username, s.ready = "", watches
	s.arguments = slices.Concat([]string{s.arguments[0], file, "--sentinel"}, guard.listen(ports[own]))
	return os.WriteFile(file, []byte(conf.String()), 0o600)
}

// replicates returns an error unless a replica confirms a write. A new replica may need a
// second for that after it has connected.
func replicates(ctx context.Context, master *redis.Client) error {
	pipe := master.Pipeline() // WAIT counts only writes of its own connection
	pipe.Publish(ctx, "ephemeral", "settle")
	replicas := pipe.Do(ctx, "wait", 1, 1000)
	_, err := pipe.Exec(ctx)
	if err == nil && replicas.Val() != int64(1) {
		err = errors.New("replica does not confirm")
	}
	return err
}

// watches returns an error unless a sentinel is connected to the replica and to the other
// sentinels, and knows that the replica works.
func watches(ctx context.Context, sentinel *redis.Client) error {
	pipe := sentinel.Pipeline()
	replicas, sentinels := pipe.Do(ctx, "sentinel", "replicas", "main"), pipe.Do(ctx, "sentinel", "sentinels", "main")
	_, err := pipe.Exec(ctx)
	others, _ := sentinels.Slice()
	known := fmt.Sprint(replicas.Val(), others)
	if err == nil && (!strings.Contains(known, "master-link-status:ok") || len(others) != 2 ||
		strings.Contains(known, "disconnected") || strings.Contains(known, "s_down")) {
		err = fmt.Errorf("sentinel knows %s", known)
	}
	return err
}
