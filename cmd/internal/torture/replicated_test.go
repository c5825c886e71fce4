package torture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// replicatedRedis is a Redis that replaces its masters by itself. It has the recommended
// setup: TLS, and users with few permissions.
type replicatedRedis struct {
	URL     string
	shards  []*redisShard
	shardOf func(token string) int // of a guest's cart
	follow  func(replica, master redisNode) error
	settled func() error  // returns nil when every node knows all others and they work
	between time.Duration // minimum from one failover to the next
	beside  []redisNode   // the sentinels, one of them on the machine of the master
}

type redisShard struct{ master, replica redisNode }

// find finds out which node is the master. On a busy machine, a failover may happen although no
// node was lost.
func (s *redisShard) find(t testing.TB) {
	t.Helper()
	if strings.Contains(s.master.admin.Info(t.Context(), "replication").Val(), "role:slave") {
		s.master, s.replica = s.replica, s.master
	}
}

type redisNode struct {
	*ephemeral.Server
	admin *redis.Client
}

func nodeOf(s *ephemeral.Server) redisNode { return redisNode{s, s.Admin()} }

func (n redisNode) addr() (host, port string) {
	host, port, _ = net.SplitHostPort(n.admin.Options().Addr) // of a client that works
	return host, port
}

func redisGuard(t testing.TB) ephemeral.Guard {
	t.Helper()
	users := assert.Must(os.ReadFile("../../../deploy/redis/users.conf"))(t)
	return ephemeral.Guard{TLS: true, Users: string(users)}
}

func startReplicatedCluster(t testing.TB) *replicatedRedis {
	t.Helper()
	cluster := redisGuard(t).StartCluster(t)
	r := &replicatedRedis{
		URL: cluster.URL,
		// A node keeps the configuration of the cluster, so it follows on its own.
		follow: func(_, _ redisNode) error { return nil },
	}
	var nodes []redisNode
	for _, s := range cluster.Nodes {
		nodes = append(nodes, nodeOf(s))
	}
	n := len(nodes) / 2
	for i := range n {
		r.shards = append(r.shards, &redisShard{nodes[i], nodes[i+n]})
	}
	r.shardOf = func(token string) int {
		key := fmt.Sprintf("cart:{1:g:%s}", auth.CartToken(token).Digest())
		slot, err := nodes[0].admin.ClusterKeySlot(t.Context(), key).Result()
		if err != nil { // the node was lost; shards never exchange slots
			slot = nodes[n].admin.ClusterKeySlot(t.Context(), key).Val()
		}
		return int(slot+1) * n / 16384 // rounded as StartCluster does
	}
	r.settled = func() error {
		for _, node := range nodes {
			seen, err := node.admin.ClusterNodes(t.Context()).Result()
			if err != nil {
				return err
			}
			if strings.Contains(seen, "fail") || strings.Contains(seen, "disconnected") || strings.Count(seen, "slave") != n {
				return fmt.Errorf("a node sees %s", seen)
			}
		}
		return r.linked(t)
	}
	return r
}

func startReplicatedSentinels(t testing.TB) *replicatedRedis {
	t.Helper()
	trio := redisGuard(t).StartSentinels(t)
	r := &replicatedRedis{
		URL:     trio.URL,
		shards:  []*redisShard{{nodeOf(trio.Master), nodeOf(trio.Replica)}},
		shardOf: func(string) int { return 0 },
		// The sentinels would do this too, but only after 8 s or more.
		follow: func(replica, master redisNode) error {
			host, port := master.addr()
			return replica.admin.ReplicaOf(t.Context(), host, port).Err()
		},
		// Twice the failover-timeout, and up to a random second.
		between: 6 * time.Second,
	}
	for _, s := range trio.Sentinels {
		r.beside = append(r.beside, nodeOf(s))
	}
	r.settled = func() error {
		r.shards[0].find(t)
		host, port := r.shards[0].master.addr()
		for _, s := range r.beside {
			master, err := s.admin.Do(t.Context(), "sentinel", "get-master-addr-by-name", "main").StringSlice()
			if err != nil {
				return err
			}
			replicas, err := s.admin.Do(t.Context(), "sentinel", "replicas", "main").Slice()
			if err != nil {
				return err
			}
			seen := fmt.Sprint(master, replicas)
			if fmt.Sprint(master) != fmt.Sprint([]string{host, port}) || !strings.Contains(seen, "master-link-status:ok") ||
				strings.Contains(seen, "_down") || strings.Contains(seen, "disconnected") {
				return fmt.Errorf("a sentinel sees %s", seen)
			}
		}
		return r.linked(t)
	}
	return r
}

func (r *replicatedRedis) linked(t testing.TB) error {
	for _, shard := range r.shards {
		shard.find(t)
		master, err := shard.master.admin.Info(t.Context(), "replication").Result()
		if err != nil {
			return err
		}
		replica, err := shard.replica.admin.Info(t.Context(), "replication").Result()
		if err != nil {
			return err
		}
		if !strings.Contains(master, "role:master") || !strings.Contains(master, "state=online") ||
			!strings.Contains(replica, "master_link_status:up") {
			return errors.New("a replica is not linked to its master")
		}
	}
	return nil
}

func settles(t testing.TB, attempt func() error) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := attempt()
		if err == nil {
			return
		}
		assert.Require(t, time.Since(began) <= 2*startLimit, "Redis is not settled after %v: %v", 2*startLimit, err)
	}
}

// managedRedis is a master with two replicas behind one address, like a managed service:
// only the master knows the replicas. Each replica follows its master over a line that can
// be slowed down and cut.
type managedRedis struct {
	t       testing.TB
	nodes   []redisNode
	lines   []*toxiproxy.Proxy // from each node to its master
	address *toxiproxy.Proxy   // of the master, for the service
	master  int
}

func startManagedRedis(t testing.TB) *managedRedis {
	t.Helper()
	m := &managedRedis{t: t}
	for range 3 {
		m.nodes = append(m.nodes, nodeOf(ephemeral.StartRedis(t)))
		m.lines = append(m.lines, newProxy(t, m.nodes[0].admin.Options().Addr))
	}
	m.address = newProxy(t, m.nodes[0].admin.Options().Addr)
	for _, proxy := range append(m.lines, m.address) {
		assert.NoError(t, proxy.Start())
	}
	m.settle()
	return m
}

func (m *managedRedis) URL() string { return "redis://" + m.address.Listen }

func (m *managedRedis) replicas() []int { return []int{(m.master + 1) % 3, (m.master + 2) % 3} }

func (m *managedRedis) promote(replica int) {
	m.t.Helper()
	assert.NoError(m.t, m.nodes[replica].admin.ReplicaOf(m.t.Context(), "no", "one").Err())
	m.master = replica
	m.aim(m.address)
}

func (m *managedRedis) aim(proxy *toxiproxy.Proxy) {
	m.t.Helper()
	proxy.Stop()
	to := &toxiproxy.Proxy{Listen: proxy.Listen, Upstream: m.nodes[m.master].admin.Options().Addr, Enabled: true}
	assert.NoError(m.t, proxy.Update(to))
}

// settle waits until all other nodes are the master's replicas without faults, with all writes.
func (m *managedRedis) settle() {
	m.t.Helper()
	for _, i := range m.replicas() {
		m.lines[i].Toxics.ResetToxics(m.t.Context())
		m.aim(m.lines[i])
		host, port, _ := net.SplitHostPort(m.lines[i].Listen)
		settles(m.t, func() error { // the old connection to a restarted node fails
			return m.nodes[i].admin.ReplicaOf(m.t.Context(), host, port).Err()
		})
	}
	settles(m.t, func() error {
		pipe := m.nodes[m.master].admin.Pipeline() // WAIT covers only the writes of its own connection
		pipe.Set(m.t.Context(), "settled", 1, time.Minute)
		confirmed := pipe.Do(m.t.Context(), "wait", 2, 200)
		if _, err := pipe.Exec(m.t.Context()); err != nil {
			return err
		}
		if confirmed.Val() != int64(2) {
			return fmt.Errorf("%v of 2 replicas have all writes", confirmed.Val())
		}
		return nil
	})
}

// slow adds a toxic to the line of a replica. format makes its JSON.
func (m *managedRedis) slow(replica int, format string, arguments ...any) {
	m.t.Helper()
	assert.Must(m.lines[replica].Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(format, arguments...))))(m.t)
}

func (m *managedRedis) lag(replica int, d time.Duration) {
	m.slow(replica, `{"type":"latency","attributes":{"latency":%d,"jitter":%d}}`, d.Milliseconds(), d.Milliseconds()/4)
}

func (m *managedRedis) narrow(replica, kibPerSecond int) {
	m.slow(replica, `{"type":"bandwidth","attributes":{"rate":%d}}`, kibPerSecond)
}

// swallow keeps the connection of a replica open, and delivers nothing.
func (m *managedRedis) swallow(replica int) {
	m.slow(replica, `{"type":"timeout","attributes":{"timeout":0}}`)
}

// hide cuts a replica off and waits until its master no longer lists it.
func (m *managedRedis) hide(replica int) {
	m.t.Helper()
	m.lines[replica].Stop()
	settles(m.t, func() error {
		info, err := m.nodes[m.master].admin.Info(m.t.Context(), "replication").Result()
		if err == nil && !strings.Contains(info, "connected_slaves:1\r\n") {
			err = errors.New("the master still knows both replicas")
		}
		return err
	})
}

func (m *managedRedis) heal(replica int) {
	m.t.Helper()
	m.lines[replica].Toxics.ResetToxics(context.WithoutCancel(m.t.Context()))
	m.aim(m.lines[replica])
}
