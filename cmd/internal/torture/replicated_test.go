package torture

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

type redisNode struct {
	*ephemeral.Server
	admin *redis.Client
}

func nodeOf(s *ephemeral.Server) redisNode { return redisNode{s, s.Admin()} }

func (n redisNode) addr() (host, port string) {
	host, port, _ = net.SplitHostPort(n.admin.Options().Addr) // of a client that works
	return host, port
}

// says reports whether INFO REPLICATION has these texts. A node that does not answer says nothing.
func (n redisNode) says(texts ...string) bool {
	info := n.admin.Info(context.Background(), "replication").Val()
	return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(info, text) })
}

// offsets returns those of a master and of its only replica.
func (n redisNode) offsets() (master, replica int64) {
	for line := range strings.Lines(n.admin.Info(context.Background(), "replication").Val()) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "master_repl_offset:"); ok {
			master, _ = strconv.ParseInt(rest, 10, 64)
		}
		if _, rest, ok := strings.Cut(line, ",offset="); ok {
			rest, _, _ = strings.Cut(rest, ",")
			replica, _ = strconv.ParseInt(rest, 10, 64)
		}
	}
	return master, replica
}

// replicatedRedis is a Redis that replaces its masters by itself. It has the recommended
// setup: TLS, and users with few permissions.
type replicatedRedis struct {
	URL     string
	shards  []redisShard
	shardOf func(key string) int // by its index
	beside  []redisNode          // the sentinels, one of them on the machine of the master
}

type redisShard struct{ master, replica redisNode }

// now is the master. On a busy machine, a failover may happen although no node was lost.
func (s redisShard) now() redisNode {
	if s.master.says("role:slave") {
		return s.replica
	}
	return s.master
}

func redisGuard(t testing.TB) ephemeral.Guard {
	t.Helper()
	return ephemeral.Guard{TLS: true, Users: readFile(t, "../../../deploy/redis/users.conf")}
}

func startReplicatedCluster(t testing.TB) *replicatedRedis {
	t.Helper()
	cluster := redisGuard(t).StartCluster(t)
	r := &replicatedRedis{URL: cluster.URL}
	n := len(cluster.Nodes) / 2
	for i := range n {
		r.shards = append(r.shards, redisShard{nodeOf(cluster.Nodes[i]), nodeOf(cluster.Nodes[i+n])})
	}
	r.shardOf = func(key string) int {
		slot := r.shards[0].master.admin.ClusterKeySlot(t.Context(), key).Val()
		return int(slot+1) * n / 16384 // rounded as StartCluster does
	}
	return r
}

func startReplicatedSentinels(t testing.TB) *replicatedRedis {
	t.Helper()
	trio := redisGuard(t).StartSentinels(t)
	r := &replicatedRedis{URL: trio.URL, shards: []redisShard{{nodeOf(trio.Master), nodeOf(trio.Replica)}}, shardOf: func(string) int { return 0 }}
	for _, s := range trio.Sentinels {
		r.beside = append(r.beside, nodeOf(s))
	}
	return r
}

// managedRedis is a master with two replicas behind one address, like a managed service:
// only the master knows the replicas. Each replica follows its master over a line that can
// be slowed down and cut.
type managedRedis struct {
	t       testing.TB
	nodes   []redisNode
	lines   []*line // from each node to its master
	address *line   // of the master, for the service
	master  int
}

func startManagedRedis(t testing.TB) *managedRedis {
	t.Helper()
	m := &managedRedis{t: t}
	for range 3 {
		m.nodes = append(m.nodes, nodeOf(ephemeral.StartRedis(t)))
		m.lines = append(m.lines, startLine(t, m.masterAddr()))
	}
	m.address = startLine(t, m.masterAddr())
	m.settle()
	return m
}

func (m *managedRedis) masterAddr() string { return m.nodes[m.master].admin.Options().Addr }

func (m *managedRedis) URL() string { return "redis://" + m.address.proxy.Listen }

func (m *managedRedis) replicas() []int { return []int{(m.master + 1) % 3, (m.master + 2) % 3} }

func (m *managedRedis) promote(replica int) {
	m.t.Helper()
	assert.NoError(m.t, m.nodes[replica].admin.ReplicaOf(m.t.Context(), "no", "one").Err())
	m.master = replica
	m.address.aim(m.masterAddr())
}

// settle waits until all other nodes are the master's replicas without faults, with all writes.
func (m *managedRedis) settle() {
	m.t.Helper()
	for _, i := range m.replicas() {
		m.heal(i)
		host, port, _ := net.SplitHostPort(m.lines[i].proxy.Listen)
		ephemeral.Until(m.t, func() error { // the old connection to a restarted node fails
			return m.nodes[i].admin.ReplicaOf(m.t.Context(), host, port).Err()
		})
	}
	ephemeral.Until(m.t, func() error { return confirmed(m.nodes[m.master].admin, 2) })
}

// confirmed returns an error unless so many replicas confirm a write within a moment.
func confirmed(master *redis.Client, replicas int64) error {
	ctx := context.Background()
	pipe := master.Pipeline() // WAIT covers only the writes of its own connection
	pipe.Publish(ctx, "settled", "settled")
	n := pipe.Do(ctx, "wait", replicas, 1000)
	if _, err := pipe.Exec(ctx); err != nil || n.Val() != replicas {
		return fmt.Errorf("%v of %d replicas have all writes: %w", n.Val(), replicas, err)
	}
	return nil
}

// hide cuts a replica off and waits until its master no longer lists it.
func (m *managedRedis) hide(replica int) {
	m.t.Helper()
	m.lines[replica].down()
	ephemeral.Eventually(m.t, "the master knows one replica", func() bool { return m.nodes[m.master].says("connected_slaves:1\r\n") })
}

func (m *managedRedis) heal(replica int) {
	m.t.Helper()
	m.lines[replica].heal()
	m.lines[replica].aim(m.masterAddr())
}
