//go:build unix

package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
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

	tb   testing.TB // nil: the cluster is shared
	home *home
	lock lock
}

func (c *RedisCluster) belongTo(tb testing.TB) {
	c.tb = tb
	for _, node := range c.Nodes {
		node.belongTo(tb)
	}
}

// startCluster starts a cluster. ahead[i], if given, is how far the clock of node i is ahead.
func startCluster(home *home, lock lock, failover time.Duration, ahead ...time.Duration) (*RedisCluster, error) {
	return retried(func() (*RedisCluster, error) {
		nodes, err := startNodes(home, lock, 2*masters, ahead)
		if err == nil {
			err = formCluster(nodes, failover)
		}
		if err != nil {
			for _, node := range nodes {
				err = errors.Join(err, node.kill())
			}
			return nil, err
		}
		addrs := make([]string, len(nodes))
		for i, node := range nodes {
			addrs[i] = node.admin.addr
		}
		return &RedisCluster{URL: lock.url(addrs, url.Values{}), Nodes: nodes, home: home, lock: lock}, nil
	})
}

// startNodes starts n servers that do not know each other yet.
func startNodes(home *home, lock lock, n int, ahead []time.Duration) ([]*Server, error) {
	ports, err := freePorts(n)
	if err != nil {
		return nil, err
	}
	nodes := make([]*Server, len(ports))
	for i, port := range ports {
		nodes[i], err = newRedis(home, lock, port,
			"--cluster-enabled", "yes",
			"--cluster-node-timeout", strconv.FormatInt(fastFailover.Milliseconds(), 10),
			"--cluster-require-full-coverage", "no",
			"--cluster-allow-replica-migration", "no",
			"--cluster-replica-validity-factor", "0",
			// The cluster lists a replica only after it has received data.
			"--repl-ping-replica-period", "1")
		if err != nil {
			return nil, err
		}
		if i < len(ahead) {
			nodes[i].ahead = ahead[i]
		}
	}
	return nodes, inParallel(nodes, func(_ int, node *Server) error { return node.start() })
}

// AddShards starts n masters without slots, and a replica of each, and lets them join the
// cluster. It returns when they serve requests. At the end of Nodes are then the new masters,
// followed by their replicas. From then on, no node fails over, because a failover in the middle
// of Rebalance would lose keys.
func (c *RedisCluster) AddShards(n int) {
	c.tb.Helper()
	added, err := retried(func() ([]*Server, error) { return startNodes(c.home, c.lock, 2*n, nil) })
	if err == nil {
		for _, node := range added {
			node.belongTo(c.tb)
		}
		c.Nodes = append(c.Nodes, added...)
		err = join(c.Nodes, added)
	}
	if err != nil {
		c.tb.Fatalf("ephemeral: add shards: %v", err)
	}
}

// join introduces added nodes to the first one, waits until all know each other, and makes the
// second half of added replicas of the first.
func join(all, added []*Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	clients := make([]*redis.Client, len(all))
	for i, node := range all {
		clients[i] = dialRedis(node)
		defer clients[i].Close()
	}
	host, port, err := net.SplitHostPort(all[0].admin.addr)
	if err != nil {
		return err
	}
	fresh := clients[len(all)-len(added):]
	steps := []func(i int, client *redis.Client) error{
		func(i int, client *redis.Client) error {
			if i < len(all)-len(added) {
				return nil
			}
			return client.ClusterMeet(ctx, host, port).Err()
		},
		func(i int, client *redis.Client) error {
			return until(ctx, func() error { return knows(ctx, client, len(all)) })
		},
		func(i int, client *redis.Client) error {
			if i < len(all)-len(added)/2 {
				return nil
			}
			master, err := fresh[i-len(all)+len(added)/2].ClusterMyID(ctx).Result()
			if err != nil {
				return err
			}
			return until(ctx, func() error { return client.ClusterReplicate(ctx, master).Err() })
		},
		func(i int, client *redis.Client) error {
			return until(ctx, func() error { return serves(ctx, client) })
		},
		func(_ int, client *redis.Client) error {
			return client.ConfigSet(ctx, "cluster-node-timeout", strconv.FormatInt(startLimit.Milliseconds(), 10)).Err()
		},
	}
	for _, step := range steps {
		if err := inParallel(clients, step); err != nil {
			return err
		}
	}
	return nil
}

// knows returns an error unless a node knows n nodes and can talk to all of them.
func knows(ctx context.Context, client *redis.Client, n int) error {
	seen, err := client.ClusterNodes(ctx).Result()
	if err == nil && (strings.Count(seen, "\n") != n || strings.Contains(seen, "handshake") || strings.Contains(seen, "fail")) {
		err = fmt.Errorf("a node sees %s", seen)
	}
	return err
}

// serves returns an error unless a node serves requests, and has its master's data if it is a
// replica.
func serves(ctx context.Context, client *redis.Client) error {
	state, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	link, err := client.Info(ctx, "replication").Result()
	if err == nil && (!strings.Contains(state, "cluster_state:ok\r\n") || strings.Contains(link, "master_link_status:down")) {
		err = fmt.Errorf("a node does not serve requests: %s%s", state, link)
	}
	return err
}

// Rebalance spreads the slots evenly over all masters with redis-cli, as operators do. It
// returns what redis-cli printed if that fails.
func (c *RedisCluster) Rebalance(ctx context.Context) error {
	cli := exec.CommandContext(ctx, "redis-cli", "--cluster", "rebalance", c.Nodes[0].admin.addr,
		"--cluster-use-empty-masters", "--cluster-threshold", "1", "--cluster-pipeline", "10")
	if said, err := cli.CombinedOutput(); err != nil {
		return fmt.Errorf("redis-cli --cluster rebalance: %w: %s", err, said[max(0, len(said)-1000):])
	}
	return nil
}

// Slots returns the number of slots that each of Nodes serves.
func (c *RedisCluster) Slots(ctx context.Context) ([]int, error) {
	client := dialRedis(c.Nodes[0])
	defer client.Close()
	shards, err := client.ClusterShards(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("list the shards of the cluster: %w", err)
	}
	served := make([]int, len(c.Nodes))
	for _, shard := range shards {
		for _, of := range shard.Nodes {
			i := slices.IndexFunc(c.Nodes, func(node *Server) bool {
				return node.admin.addr == address(int(of.Port))
			})
			if i < 0 || of.Role != "master" {
				continue
			}
			for _, r := range shard.Slots {
				served[i] += int(r.End-r.Start) + 1
			}
		}
	}
	return served, nil
}

// formCluster joins nodes into a cluster, like `redis-cli --cluster create` but without
// its pauses. Most of the time goes to Redis itself: a master of a new cluster rejects
// requests for its first 2 s.
func formCluster(nodes []*Server, failover time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	clients := make([]*redis.Client, len(nodes))
	for i, node := range nodes {
		clients[i] = dialRedis(node)
		defer clients[i].Close()
	}
	steps := []func(context.Context, []*redis.Client, int) error{assign, introduce, replicate, settle}
	for _, step := range steps {
		err := inParallel(clients, func(i int, _ *redis.Client) error { return step(ctx, clients, i) })
		if err != nil {
			return fmt.Errorf("form cluster: %w", err)
		}
	}
	// Last, because nodes exchange news faster while the timeout is short.
	return inParallel(clients, func(_ int, client *redis.Client) error {
		return client.ConfigSet(ctx, "cluster-node-timeout", strconv.FormatInt(failover.Milliseconds(), 10)).Err()
	})
}

// assign gives node i a unique epoch and, if it is a master, its slots.
func assign(ctx context.Context, clients []*redis.Client, i int) error {
	if err := clients[i].Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
		return err
	}
	if i >= masters {
		return nil
	}
	return clients[i].ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err()
}

// introduce makes node i meet all nodes after it, which is faster than gossip.
func introduce(ctx context.Context, clients []*redis.Client, i int) error {
	for _, other := range clients[i+1:] {
		host, port, err := net.SplitHostPort(other.Options().Addr)
		if err != nil {
			return err
		}
		if err := clients[i].ClusterMeet(ctx, host, port).Err(); err != nil {
			return err
		}
	}
	return nil
}

// replicate makes node i, if it is to be a replica, follow its master as soon as it
// knows the master.
func replicate(ctx context.Context, clients []*redis.Client, i int) error {
	if i < masters {
		return nil
	}
	master, err := clients[i-masters].ClusterMyID(ctx).Result()
	if err != nil {
		return err
	}
	return until(ctx, func() error { return clients[i].ClusterReplicate(ctx, master).Err() })
}

// settle waits until node i serves requests and sees every replica online.
func settle(ctx context.Context, clients []*redis.Client, i int) error {
	return until(ctx, func() error {
		info, err := clients[i].ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		if !strings.Contains(info, "cluster_state:ok\r\n") {
			return fmt.Errorf("node %d does not serve requests: %s", i, info)
		}
		shards, err := clients[i].ClusterShards(ctx).Result()
		if err != nil {
			return err
		}
		for _, shard := range shards {
			for _, node := range shard.Nodes {
				if node.Health != "online" {
					return fmt.Errorf("node %d sees %s %s", i, node.Endpoint, node.Health)
				}
			}
			if len(shard.Nodes) != 2 {
				return fmt.Errorf("node %d sees a shard of %d nodes", i, len(shard.Nodes))
			}
		}
		if len(shards) != masters {
			return fmt.Errorf("node %d sees %d shards", i, len(shards))
		}
		info, err = clients[i].Info(ctx, "replication").Result()
		if err == nil && i >= masters && !strings.Contains(info, "master_link_status:up\r\n") {
			err = fmt.Errorf("node %d is not linked to its master: %s", i, info)
		}
		return err
	})
}

// until repeats attempt until it succeeds or ctx ends. It returns the last error.
func until(ctx context.Context, attempt func() error) error {
	for {
		err := attempt()
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// inParallel calls do for all of items and returns every error.
func inParallel[T any](items []T, do func(i int, item T) error) error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { errs[i] = do(i, item) })
	}
	all.Wait()
	return errors.Join(errs...)
}
