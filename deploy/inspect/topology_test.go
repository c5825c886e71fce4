package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func startCluster(t *testing.T) *ephemeral.RedisCluster {
	t.Helper()
	cluster := ephemeral.StartCluster(t)
	for _, node := range cluster.Nodes {
		set(t, node, healthy)
	}
	return cluster
}

func TestCluster_FindsNothingWrongWithAHealthyOne(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	got := check(t, "healthy", Config{RedisURL: cluster.URL, MinReplicas: 1, Durable: true}, wrong{})
	wantOK(t, got, "redis", "slots coverage merges rights clock")
	servers := map[string]bool{}
	for _, f := range got {
		if f.Code == "redis_eviction" {
			servers[f.Server] = true
		}
	}
	assert.That(t, len(servers) == len(cluster.Nodes), "checks %v, want all %d nodes", servers, len(cluster.Nodes))

	one, _, _ := strings.Cut(cluster.URL, ",")
	check(t, "as a single server", Config{RedisURL: one}, wrong{"redis_role": Serious})

	second := cluster.Nodes[1]
	for _, test := range []struct {
		name, value, code string
		want              Level
	}{
		{"cluster-require-full-coverage", "yes", "redis_coverage", Warning},
		{"maxmemory-policy", "volatile-ttl", "redis_eviction", Serious},
	} {
		before := second.Admin().ConfigGet(t.Context(), test.name).Val()
		set(t, second, map[string]string{test.name: test.value})
		got := check(t, test.name, Config{RedisURL: cluster.URL}, wrong{test.code: test.want})
		addr := second.Admin().Options().Addr
		assert.That(t, got[0].Server == addr && got[1].Level == OK, "%s: %+v, want %s", test.name, got[:2], addr)
		set(t, second, before)
	}
}

func TestCluster_FindsSlotsWithoutAMaster(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	for _, node := range cluster.Nodes {
		err := node.Admin().ClusterDelSlots(t.Context(), 0).Err()
		assert.Require(t, err == nil || strings.Contains(err.Error(), "already unassigned"), "%v", err)
	}
	ephemeral.Until(t, func() error { // gossip may assign the slot again once
		got, err := Servers(t.Context(), Config{RedisURL: cluster.URL})
		if err != nil || got[0].Code != "redis_slots" || got[0].Level != Serious || !strings.Contains(got[0].Message, "1 of 16384 slots") {
			return fmt.Errorf("%+v, %w", got, err)
		}
		return nil
	})
}

// A replica that is listed but not connected can still become master, so merges wait for it.
func TestCluster_FindsAReplicaThatMergesWaitForInVain(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	cluster.Nodes[4].Kill()
	waitForReplicas(t, cluster.Nodes[1], 0)
	got := assert.Must(Servers(t.Context(), Config{RedisURL: cluster.URL}))(t)
	want := wrong{"redis_merges": Serious, "redis_replicas": Warning}
	for _, f := range got { // the cluster lists the replica until it counts it as failed
		if f.Code == "redis_answers" && f.Level != OK {
			want["redis_answers"] = Warning
		}
	}
	wantWrong(t, "a replica has died", got, want)
}

func TestCluster_FindsADeadMaster(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	cluster.Nodes[3].Kill() // so that no replica replaces its master
	cluster.Nodes[0].Kill()
	got := assert.Must(Servers(t.Context(), Config{RedisURL: cluster.URL}))(t)
	f := got[0]
	assert.That(t, f.Code == "redis_answers" && f.Level == Serious && strings.Contains(f.Message, "this shard") &&
		strings.Contains(cluster.URL, f.Server), "%+v, want the dead master", f)
}

func TestCluster_IsUnreachable(t *testing.T) {
	t.Parallel()
	got := check(t, "unreachable", Config{RedisURL: "redis://127.0.0.1:1,127.0.0.1:2"}, wrong{"redis_answers": Serious})
	assert.That(t, len(got) == 2, "%+v, want one finding for each node of the URL", got)
}

func TestCluster_FindsServersThatAreInNone(t *testing.T) {
	t.Parallel()
	alone, node := startHealthy(t), startHealthy(t, "--cluster-enabled", "yes")
	check(t, "a node in no cluster", Config{RedisURL: node.URL + "?cluster=true"},
		wrong{"redis_slots": Serious, "redis_replicas": Warning, "redis_coverage": Warning})
	with := func(other *ephemeral.Server) Config {
		return Config{RedisURL: alone.URL + "," + other.Admin().Options().Addr}
	}
	check(t, "two single servers", with(startHealthy(t)),
		wrong{"redis_slots": Serious, "redis_replicas": Warning, "redis_coverage": Warning, "redis_merges": Unknown})
	check(t, "one single server", with(startCluster(t).Nodes[0]), wrong{"redis_slots": Warning})
	check(t, "one single server, and a node without slots", with(node),
		wrong{"redis_slots": Serious, "redis_replicas": Warning, "redis_coverage": Warning, "redis_merges": Unknown})
}

func startSentinels(t *testing.T) *ephemeral.RedisSentinels {
	t.Helper()
	servers := ephemeral.StartSentinels(t)
	set(t, servers.Master, healthy)
	set(t, servers.Replica, healthy)
	return servers
}

func TestSentinels_FindNothingWrongWithHealthyServers(t *testing.T) {
	t.Parallel()
	got := check(t, "healthy", Config{RedisURL: startSentinels(t).URL, MinReplicas: 1, Durable: true}, wrong{})
	wantOK(t, got, "redis", "sentinel tls merges replicas eviction")
}

func TestSentinels_FindThatTheyCannotAgree(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	servers := startSentinels(t)
	for _, server := range servers.Sentinels[1:] { // one of three sentinels is not a majority
		server.Kill()
	}
	alone := redis.NewSentinelClient(servers.Sentinels[0].Admin().Options())
	defer alone.Close()
	ephemeral.Until(t, func() error { // it takes a second to notice
		if err := alone.CkQuorum(t.Context(), "main").Err(); !redis.HasErrorPrefix(err, "NOQUORUM") {
			return fmt.Errorf("quorum: %v", err)
		}
		return nil
	})
	check(t, "one of three", Config{RedisURL: servers.URL}, wrong{"redis_sentinel": Serious})
}

func TestSentinels_DoNotNameTheMaster(t *testing.T) {
	t.Parallel()
	servers := startSentinels(t)
	another := strings.Replace(servers.URL, "master=main", "master=other", 1)
	check(t, "another name", Config{RedisURL: another}, wrong{"redis_sentinel": Serious})
	one := strings.Replace(servers.URL, "redis://", "redis://127.0.0.1:1,", 1)
	check(t, "one does not answer", Config{RedisURL: one}, wrong{"redis_sentinel": Warning})
	for _, server := range servers.Sentinels {
		server.Kill()
	}
	check(t, "dead", Config{RedisURL: servers.URL}, wrong{"redis_sentinel": Serious})
}

// With only one replica, min-replicas-to-write 1 would stop all changes when the replica fails.
// So the check expects it only with two or more replicas.
func TestSentinels_FindAMasterThatAcceptsChangesAlone(t *testing.T) {
	t.Parallel()
	servers, second := startSentinels(t), startHealthy(t)
	follow(t, second, servers.Master)
	waitForReplicas(t, servers.Master, 2)
	check(t, "two replicas", Config{RedisURL: servers.URL}, wrong{"redis_min_replicas_to_write": Warning})
	set(t, servers.Master, map[string]string{"min-replicas-to-write": "1"})
	ephemeral.Until(t, func() error { // a replica counts once it has reported, which takes a second
		info := servers.Master.Admin().Info(t.Context(), "replication").Val()
		if !strings.Contains(info, "min_slaves_good_slaves:2") {
			return fmt.Errorf("not both: %s", info)
		}
		return nil
	})
	check(t, "demanded", Config{RedisURL: servers.URL}, wrong{})
}
