//go:build unix

package ephemeral

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	masters = 3
	slots   = 16384

	// The time without a response after which a node is considered dead.
	fastFailover = time.Second
	slowFailover = 10 * time.Second
)

// RedisCluster is a Redis Cluster: Nodes[0] to Nodes[2] start as masters, and
// Nodes[i+3] as the replica of Nodes[i].
type RedisCluster struct {
	URL   string
	Nodes []*Server
}

// clusterMaker makes a cluster. ahead[i], if given, is how far the clock of node i is ahead. Most
// of the time until it works goes to Redis itself: a master rejects requests for its first 2 s.
func clusterMaker(guard Guard, failover time.Duration, ahead ...time.Duration) maker {
	return func(ports []int) (*group, error) {
		prefix := make([]byte, 19)
		_, _ = rand.Read(prefix) // never fails
		hosts, nodes := make([]string, len(ports)), make([]*Server, len(ports))
		for i, port := range ports {
			node, err := newRedis(guard, port,
				"--cluster-enabled", "yes",
				"--cluster-node-timeout", milliseconds(fastFailover),
				"--cluster-require-full-coverage", "no",
				"--cluster-allow-replica-migration", "no",
				"--cluster-replica-validity-factor", "0",
				// The cluster lists a replica only after it has received data.
				"--repl-ping-replica-period", "1")
			if err != nil {
				return nil, err
			}
			version, err := exec.Command(node.arguments[0], "--version").Output()
			if err != nil {
				return nil, fmt.Errorf("%s --version: %w", node.arguments[0], err)
			}
			conf := nodesConf(hex.EncodeToString(prefix), ports, i, !strings.Contains(string(version), " v=7.0."))
			if err := os.WriteFile(filepath.Join(node.dir, "nodes.conf"), []byte(conf), 0o600); err != nil {
				return nil, err
			}
			if i < len(ahead) && ahead[i] != 0 {
				if node.env, err = clockAhead(ahead[i]); err != nil {
					return nil, err
				}
			}
			node.ready = func(ctx context.Context, client *redis.Client) error {
				if err := joined(ctx, client); err != nil {
					return fmt.Errorf("form cluster: %s: %w", node.admin.Addr, err)
				}
				// Last, because nodes exchange news faster while the timeout is short.
				return client.ConfigSet(ctx, "cluster-node-timeout", milliseconds(failover)).Err()
			}
			hosts[i], nodes[i] = node.admin.Addr, node
		}
		return &group{url: guard.url(hosts, url.Values{}), stages: [][]*Server{nodes}}, nil
	}
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// nodesConf returns what node own of a cluster knows about all of its nodes. They find each
// other faster than with `redis-cli --cluster create`. prefix is unique, because a node of a
// dead cluster on the same port must not be taken for one of this cluster. Valkey, and Redis since
// 7.2, need shards: otherwise each node makes up others.
func nodesConf(prefix string, ports []int, own int, shards bool) string {
	var conf strings.Builder
	id := func(i int) string { return fmt.Sprintf("%s%02x", prefix, i) }
	for i, port := range ports {
		flags, master, served := "master", "-", fmt.Sprintf("%d-%d", i*slots/masters, (i+1)*slots/masters-1)
		if i >= masters {
			flags, master, served = "slave", id(i-masters), ""
		}
		if i == own {
			flags = "myself," + flags
		}
		shard := ""
		if shards {
			shard = ",,shard-id=" + id(i%masters)
		}
		fmt.Fprintf(&conf, "%s %s@%d%s %s %s 0 0 %d connected %s\n", id(i), address(port), port+busOffset, shard, flags, master, i+1, served)
	}
	fmt.Fprintf(&conf, "vars currentEpoch %d lastVoteEpoch 0\n", len(ports))
	return conf.String()
}

// joined returns an error unless a node serves requests, sees all nodes online and, if it is a
// replica, has the data of its master.
func joined(ctx context.Context, client *redis.Client) error {
	pipe := client.Pipeline()
	state, shards, link := pipe.ClusterInfo(ctx), pipe.Do(ctx, "cluster", "shards"), pipe.Info(ctx, "replication")
	_, err := pipe.Exec(ctx)
	seen := fmt.Sprint(shards.Val())
	if err == nil && (strings.Count(seen, "online") != 2*masters ||
		!strings.Contains(state.Val(), "cluster_state:ok\r\n") || strings.Contains(link.Val(), "master_link_status:down")) {
		err = fmt.Errorf("it sees %s%s%s", state.Val(), seen, link.Val())
	}
	return err
}

// clockAhead returns environment variables that set a program's clock ahead of this machine's.
// They preload libfaketime. They also preload libc, so that Redis does not use jemalloc:
// libfaketime and jemalloc would call each other endlessly at the start.
func clockAhead(by time.Duration) ([]string, error) {
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if len(found) == 0 {
		return nil, errors.New("faketime is not installed (sh deploy/ephemeral/install.sh)")
	}
	return []string{
		"LD_PRELOAD=" + found[0] + " libc.so.6",
		fmt.Sprintf("FAKETIME=%+.3fs", by.Seconds()),
		"DONT_FAKE_MONOTONIC=1",
		"NO_FAKE_STAT=1",
	}, nil
}

// removeClockFiles removes libfaketime's files for child processes, which a kill leaves behind.
func removeClockFiles(pid int) {
	_ = os.Remove("/dev/shm/faketime_shm_" + strconv.Itoa(pid))
	_ = os.Remove("/dev/shm/sem.faketime_sem_" + strconv.Itoa(pid))
}
