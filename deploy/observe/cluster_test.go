package observe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/ephemeral"
	"commerce/deploy/inspect"
	"commerce/deploy/observe"
)

// startHealthyCluster starts a cluster without problems.
func startHealthyCluster(t *testing.T) *ephemeral.RedisCluster {
	t.Helper()
	cluster := ephemeral.StartCluster(t)
	for _, node := range cluster.Nodes {
		set(t, node.Admin(), healthy)
	}
	return cluster
}

func TestCluster_FindsNothingWrongWithAHealthyOne(t *testing.T) {
	t.Parallel()
	cluster := startHealthyCluster(t)
	got := findings(t, observe.Config{RedisURL: cluster.URL}, inspect.Expect{MinReplicas: 1, Durable: true})
	wantWrong(t, "healthy", got, wrong{})
	wantOK(t, got, "redis_slots", "redis_coverage", "redis_merges", "redis_rights", "redis_clock")
	servers := map[string]bool{}
	for _, f := range got {
		if f.Code == "redis_eviction" {
			servers[f.Server] = true
		}
	}
	if len(servers) != len(cluster.Nodes) {
		t.Errorf("checks %v, want all %d nodes", servers, len(cluster.Nodes))
	}
}

func TestCluster_FindsWhatIsWrongWithOneNode(t *testing.T) {
	t.Parallel()
	cluster := startHealthyCluster(t)
	second := cluster.Nodes[1].Admin()
	for name, value := range map[string]string{"cluster-require-full-coverage": "yes", "maxmemory-policy": "volatile-ttl"} {
		before := second.ConfigGet(t.Context(), name).Val()
		set(t, second, map[string]string{name: value})
		code, level := "redis_eviction", inspect.Serious
		if strings.HasPrefix(name, "cluster") {
			code, level = "redis_coverage", inspect.Warning
		}
		got := findings(t, observe.Config{RedisURL: cluster.URL}, inspect.Expect{})
		wantWrong(t, name, got, wrong{code: level})
		if got[0].Server != second.Options().Addr || got[1].Level != inspect.OK {
			t.Errorf("%s: %+v, want one finding, for %s", name, got[:2], second.Options().Addr)
		}
		set(t, second, before)
	}
}

func TestCluster_FindsSlotsWithoutAMaster(t *testing.T) {
	t.Parallel()
	cluster := startHealthyCluster(t)
	for _, node := range cluster.Nodes {
		if err := node.Admin().ClusterDelSlots(t.Context(), 0).Err(); err != nil && !strings.Contains(err.Error(), "already unassigned") {
			t.Fatal(err)
		}
	}
	eventually(t, func() error { // gossip may assign the slot again once
		got := findings(t, observe.Config{RedisURL: cluster.URL}, inspect.Expect{})
		if got[0].Code != "redis_slots" || got[0].Level != inspect.Serious || !strings.Contains(got[0].Message, "1 of 16384 slots") {
			return fmt.Errorf("%+v", got[0])
		}
		return nil
	})
}

// A replica that is listed but not connected can still become master, so merges wait for it.
func TestCluster_FindsAReplicaThatMergesWaitForInVain(t *testing.T) {
	t.Parallel()
	cluster := startHealthyCluster(t)
	cluster.Nodes[4].Kill()
	waitForReplicas(t, cluster.Nodes[1].Admin(), 0)
	got := findings(t, observe.Config{RedisURL: cluster.URL}, inspect.Expect{})
	want := wrong{"redis_merges": inspect.Serious, "redis_replicas": inspect.Warning, "redis_answers": inspect.Warning}
	for _, f := range got { // the cluster lists the replica until it counts it as failed
		if f.Code == "redis_answers" && f.Level != inspect.OK {
			wantWrong(t, "replica is listed", got, want)
			return
		}
	}
	delete(want, "redis_answers")
	wantWrong(t, "replica is not listed anymore", got, want)
}

func TestCluster_FindsADeadMaster(t *testing.T) {
	t.Parallel()
	cluster := startHealthyCluster(t)
	cluster.Nodes[3].Kill() // so that no replica replaces its master
	cluster.Nodes[0].Kill()
	got := findings(t, observe.Config{RedisURL: cluster.URL}, inspect.Expect{})
	if f := got[0]; f.Code != "redis_answers" || f.Level != inspect.Serious || !strings.Contains(f.Message, "this shard") ||
		!strings.Contains(cluster.URL, f.Server) {
		t.Errorf("%+v, want the dead master", f)
	}
}

func TestCluster_IsUnreachable(t *testing.T) {
	t.Parallel()
	got := findings(t, observe.Config{RedisURL: "redis://127.0.0.1:1,127.0.0.1:2"}, inspect.Expect{})
	wantWrong(t, "unreachable", got, wrong{"redis_answers": inspect.Serious})
	if len(got) != 2 {
		t.Errorf("%+v, want one finding for each node of the URL", got)
	}
}

func TestSentinels_FindNothingWrongWithHealthyServers(t *testing.T) {
	t.Parallel()
	servers := startHealthySentinels(t)
	got := findings(t, observe.Config{RedisURL: servers.URL}, inspect.Expect{MinReplicas: 1, Durable: true})
	wantWrong(t, "healthy", got, wrong{})
	wantOK(t, got, "redis_sentinel", "redis_merges", "redis_replicas", "redis_eviction")
}

func TestCluster_FindsThatANodeIsInNoCluster(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t, "--cluster-enabled", "yes")
	set(t, server.Admin(), healthy)
	wantWrong(t, "alone", findings(t, observe.Config{RedisURL: server.URL + "?cluster=true"}, inspect.Expect{}),
		wrong{"redis_slots": inspect.Serious, "redis_replicas": inspect.Warning, "redis_coverage": inspect.Warning})
}

func startHealthySentinels(t *testing.T) *ephemeral.RedisSentinels {
	t.Helper()
	servers := ephemeral.StartSentinels(t)
	set(t, servers.Master.Admin(), healthy)
	set(t, servers.Replica.Admin(), healthy)
	return servers
}

func TestSentinels_FindThatTheyCannotAgree(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	servers := startHealthySentinels(t)
	for _, server := range servers.Sentinels[1:] { // one of three sentinels is not a majority
		server.Kill()
	}
	alone := redis.NewSentinelClient(servers.Sentinels[0].Admin().Options())
	defer alone.Close()
	eventually(t, func() error { // it takes a second to notice
		if err := alone.CkQuorum(t.Context(), "main").Err(); !redis.HasErrorPrefix(err, "NOQUORUM") {
			return fmt.Errorf("quorum: %v", err)
		}
		return nil
	})
	wantWrong(t, "one of three", findings(t, observe.Config{RedisURL: servers.URL}, inspect.Expect{}), wrong{"redis_sentinel": inspect.Serious})
}

func TestSentinels_DoNotNameTheMaster(t *testing.T) {
	t.Parallel()
	servers := startHealthySentinels(t)
	another := strings.Replace(servers.URL, "master=main", "master=other", 1)
	wantWrong(t, "another name", findings(t, observe.Config{RedisURL: another}, inspect.Expect{}), wrong{"redis_sentinel": inspect.Serious})

	one := strings.Replace(servers.URL, "redis://", "redis://127.0.0.1:1,", 1)
	wantWrong(t, "one does not answer", findings(t, observe.Config{RedisURL: one}, inspect.Expect{}), wrong{"redis_sentinel": inspect.Warning})

	for _, server := range servers.Sentinels {
		server.Kill()
	}
	wantWrong(t, "dead", findings(t, observe.Config{RedisURL: servers.URL}, inspect.Expect{}), wrong{"redis_sentinel": inspect.Serious})
}

// With only one replica, min-replicas-to-write 1 would stop all changes when the replica fails.
// So the check expects it only with two or more replicas.
func TestSentinels_FindAMasterThatAcceptsChangesAlone(t *testing.T) {
	t.Parallel()
	servers, second := startHealthySentinels(t), ephemeral.StartRedis(t)
	set(t, second.Admin(), healthy)
	follow(t, second.Admin(), servers.Master.Admin())
	waitForReplicas(t, servers.Master.Admin(), 2)
	want := wrong{"redis_min_replicas_to_write": inspect.Warning}
	wantWrong(t, "two replicas", findings(t, observe.Config{RedisURL: servers.URL}, inspect.Expect{}), want)
	set(t, servers.Master.Admin(), map[string]string{"min-replicas-to-write": "1"})
	eventually(t, func() error { // a replica counts once it has reported, which takes a second
		info := servers.Master.Admin().Info(t.Context(), "replication").Val()
		if !strings.Contains(info, "min_slaves_good_slaves:2") {
			return fmt.Errorf("not both: %s", info)
		}
		return nil
	})
	wantWrong(t, "demanded", findings(t, observe.Config{RedisURL: servers.URL}, inspect.Expect{}), wrong{})
}
