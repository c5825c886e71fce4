package observe

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cart/redisstore"
	"commerce/deploy/connect"
	"commerce/deploy/inspect"
)

// reader reads the Redis servers of one URL.
type reader struct {
	servers *connect.RedisServers
	kind    inspect.Kind
	now     func() time.Time
}

// askSentinels asks all sentinels, and returns the master that the first one names.
func (r reader) askSentinels(ctx context.Context) (masters []string, all []inspect.Sentinel) {
	type answer struct {
		inspect.Sentinel
		master string
	}
	answers := each(r.servers.Addrs(), func(addr string) answer {
		sentinel, master := r.sentinel(ctx, addr)
		return answer{sentinel, master}
	})
	for _, a := range answers {
		all = append(all, a.Sentinel)
		if a.master != "" && len(masters) == 0 {
			masters = []string{a.master}
		}
	}
	return masters, all
}

// sentinel asks one sentinel for the address of the master.
func (r reader) sentinel(ctx context.Context, addr string) (s inspect.Sentinel, master string) {
	s.Server = addr
	client := r.servers.Sentinel(addr)
	defer client.Close()
	at, err := client.GetMasterAddrByName(ctx, r.servers.Master()).Result()
	switch {
	case errors.Is(err, redis.Nil):
		s.Failure = "it does not know " + r.servers.Master()
	case err != nil:
		s.Failure = failure(err)
	case len(at) != 2:
		s.Failure = "its answer is not an address"
	default:
		master = net.JoinHostPort(at[0], at[1])
		s.Quorum, s.Hidden = quorum(ctx, client, r.servers.Master())
	}
	return s, master
}

// quorum returns why the sentinels cannot agree on a failover, or "" if they can. hidden reports
// that the sentinel does not show it.
func quorum(ctx context.Context, client *redis.SentinelClient, master string) (missing string, hidden bool) {
	err := client.CkQuorum(ctx, master).Err()
	switch {
	case redis.HasErrorPrefix(err, "NOQUORUM"):
		return strings.TrimRight(err.Error(), "."), false
	case err != nil:
		return "", true
	}
	return "", false
}

// askCluster asks the nodes in the URL for the layout of the cluster. If none answers, it returns
// these nodes as the masters. A node that is in no cluster answers with an empty layout.
func (r reader) askCluster(ctx context.Context) (c *inspect.Cluster, masters, replicas []string) {
	type layout struct {
		slots []redis.ClusterSlot
		err   error
	}
	layouts := each(r.servers.Addrs(), func(addr string) layout {
		client := r.servers.Server(addr)
		defer client.Close()
		slots := redis.NewClusterSlotsCmd(ctx, "cluster", "slots") // as go-redis's own cluster client does
		err := client.Process(ctx, slots)
		return layout{slots.Val(), err}
	})
	at := slices.IndexFunc(layouts, func(l layout) bool { return len(l.slots) > 0 })
	if at < 0 {
		if at = slices.IndexFunc(layouts, func(l layout) bool { return l.err == nil }); at >= 0 {
			c = &inspect.Cluster{Server: r.servers.Addrs()[at]}
		}
		return c, r.servers.Addrs(), nil
	}
	c = &inspect.Cluster{Server: r.servers.Addrs()[at]}
	for _, part := range layouts[at].slots {
		c.Slots += part.End - part.Start + 1
		for i, node := range part.Nodes {
			addr := reachable(node.Addr, c.Server)
			if i == 0 {
				masters = append(masters, addr)
			} else {
				replicas = append(replicas, addr)
			}
		}
	}
	return c, unique(masters), replicas
}

// reachable completes the address of a node that does not know its own host. The node is at the
// host that was asked.
func reachable(addr, asked string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" && host != "?" {
		return addr
	}
	host, _, _ = net.SplitHostPort(asked)
	return net.JoinHostPort(host, port)
}

func unique(addrs []string) []string {
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

// listed returns how many replicas of a master the cluster or the sentinels list, or nil if they
// do not tell.
func (r reader) listed(ctx context.Context, client *redis.Client) *int {
	switch r.kind {
	case inspect.Clustered:
		nodes, err := client.ClusterNodes(ctx).Result()
		if err != nil {
			return nil
		}
		return new(redisstore.ReplicasOfMyself(nodes, r.now()))
	case inspect.Watched:
		for _, addr := range r.servers.Addrs() {
			if n, err := r.replicasKnownTo(ctx, addr); err == nil {
				return &n
			}
		}
		return nil
	}
	return new(0)
}

// replicasKnownTo counts the replicas that have answered a sentinel recently.
func (r reader) replicasKnownTo(ctx context.Context, addr string) (int, error) {
	client := r.servers.Sentinel(addr)
	defer client.Close()
	return connect.KnownReplicas(ctx, client, r.servers.Master(), redisstore.ReplicasRemembered)
}
