package connect_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestMain(m *testing.M) {
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)}) // go-redis logs every failed dial
	os.Exit(m.Run())
}

// open returns a client with long timeouts, unless edits say otherwise, for a machine that is busy.
func open(t *testing.T, url string, edits ...func(*redis.UniversalOptions)) redis.UniversalClient {
	t.Helper()
	return openAsShipped(t, url, append([]func(*redis.UniversalOptions){ephemeral.PatientRedis}, edits...)...)
}

func openAsShipped(t *testing.T, url string, edits ...func(*redis.UniversalOptions)) redis.UniversalClient {
	t.Helper()
	client := assert.Must(connect.Redis(url, edits...))(t)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func roundTrip(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	key := "connect:" + t.Name()
	assert.NoError(t, client.Set(t.Context(), key, "v", time.Minute).Err())
	got, err := client.Get(t.Context(), key).Result()
	assert.Require(t, err == nil && got == "v", "GET = %q, %v", got, err)
}

func TestRedis_ConnectsToEachKind(t *testing.T) {
	t.Parallel()
	seeds := ephemeral.Cluster(t)
	first, _, _ := strings.Cut(seeds, ",")
	for _, url := range []string{ephemeral.Redis(t), seeds, first + "?cluster=true", ephemeral.StartSentinels(t).URL} {
		roundTrip(t, open(t, url))
	}
}

func TestRedis_DeadlineEndsACallToAFrozenServer(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	client := open(t, server.URL, func(o *redis.UniversalOptions) { o.ReadTimeout = time.Minute })
	roundTrip(t, client)
	server.Freeze()

	wantLate(t, client)
	server.Thaw()
	roundTrip(t, client)
}

// wantLate checks that a call to a frozen server ends with its context.
func wantLate(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	start := time.Now()
	err := client.Ping(briefly(t)).Err()
	took := time.Since(start)
	assert.That(t, err != nil && took <= ephemeral.Patience(20*time.Second), "frozen: %v after %v, want an error after 200ms", err, took)
}

func TestRedis_FollowsAClustersFailover(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	cluster := ephemeral.StartCluster(t)
	client := openAsShipped(t, cluster.URL)
	roundTrip(t, client)

	// Node 0 is a master and serves the key's slot.
	key := keyOf(t, client, cluster.Nodes[0])
	cluster.Nodes[0].Kill()
	ephemeral.Eventually(t, "the key can be written", func() bool { return client.Set(briefly(t), key, "v", time.Minute).Err() == nil })
}

// keyOf returns a key that node serves.
func keyOf(t *testing.T, client redis.UniversalClient, node *ephemeral.Server) string {
	t.Helper()
	for i := range 1000 {
		key := "connect:failover:" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		master := assert.Must(client.(*redis.ClusterClient).MasterForKey(t.Context(), key))(t)
		if strings.HasSuffix(node.URL, master.Options().Addr) {
			return key
		}
	}
	t.Fatalf("found no key of %s", node.URL)
	return ""
}

// By default, go-redis stops dialing for a second after as many failures as connections.
func TestRedis_UsesAServerThatIsBackImmediately(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	client := open(t, server.URL, func(o *redis.UniversalOptions) { o.MaxRetries, o.PoolSize = -1, 5 })
	server.Stop()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { wantNoDial(t, client) })
	}
	all.Wait()
	server.Restart()
	wantPings(t, client)
}

func wantNoDial(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	err := client.Ping(t.Context()).Err()
	failed, ok := errors.AsType[*net.OpError](err)
	assert.That(t, ok && failed.Op == "dial", "ping of a stopped server: %v, want that the dial failed", err)
}

func wantPings(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	for range 20 {
		assert.NoError(t, client.Ping(t.Context()).Err())
	}
}

// A dial may fail after its command has given up, and must not reach another command.
func TestRedis_DoesNotUseADialThatFailedLate(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t, "--tcp-backlog", "1")
	dials := ephemeral.Patience(200 * time.Millisecond)
	client := open(t, server.URL, func(o *redis.UniversalOptions) { o.MaxRetries, o.DialTimeout = -1, dials })
	server.Freeze()
	for range 10 { // the server's queue is full after a few, and further dials hang
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		assert.That(t, client.Ping(ctx).Err() != nil, "ping of a frozen server succeeded")
		cancel()
	}
	time.Sleep(2 * dials) // which fail by then
	server.Thaw()
	ephemeral.Eventually(t, "the server's queue has room", func() bool {
		return open(t, server.URL).Ping(t.Context()).Err() == nil
	})
	wantPings(t, client)
}

func TestRedisSentinels_ListAReplicaThatHangs(t *testing.T) {
	t.Parallel()
	servers := ephemeral.StartSentinels(t)
	sentinels := assert.Must(connect.RedisSentinels(servers.URL))(t)
	defer sentinels.Close()
	servers.Replica.Freeze()
	defer servers.Replica.Thaw()
	n, err := sentinels.Replicas(t.Context(), time.Hour)
	assert.That(t, n == 1 && err == nil, "%d replicas, %v", n, err)
	ephemeral.Eventually(t, "a replica that has not responded for 100 ms does not count", func() bool {
		n, err := sentinels.Replicas(t.Context(), 100*time.Millisecond)
		return n == 0 && err == nil
	})
}

// Every durable change waits for the list, and then for the replicas in the same time.
func TestRedisSentinels_ListReplicasWhileASentinelHangs(t *testing.T) {
	t.Parallel()
	servers := ephemeral.StartSentinels(t)
	sentinels := assert.Must(connect.RedisSentinels(servers.URL))(t)
	defer sentinels.Close()
	for i, sentinel := range servers.Sentinels {
		sentinel.Freeze()
		ephemeral.Eventually(t, fmt.Sprintf("a list while sentinel %d hangs", i), func() bool {
			n, err := sentinels.Replicas(briefly(t), time.Hour)
			return n == 1 && err == nil
		})
		sentinel.Thaw()
	}
}

func TestRedisSentinels_AreNoneWithoutAMaster(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://localhost", "redis://a,b", "redis://a?cluster=true"} {
		s, err := connect.RedisSentinels(url)
		assert.That(t, s == nil && err == nil, "%s: %v, %v", url, s, err)
		assert.NoError(t, s.Close())
	}
	_, err := connect.RedisSentinels("http://a")
	assert.That(t, err != nil, "another scheme was taken")
}

// If a machine is lost, its sentinel hangs instead of refusing connections. If it is down, go-redis
// tries it several times. A request's time must be enough for another one.
func TestRedis_FindsTheMasterWhileASentinelHangsOrIsDown(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(*ephemeral.Server) }{
		"hangs":   {(*ephemeral.Server).Freeze, (*ephemeral.Server).Thaw},
		"is down": {(*ephemeral.Server).Stop, (*ephemeral.Server).Restart},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := ephemeral.StartSentinels(t)
			client := openAsShipped(t, servers.URL)
			findsMaster := func() {
				t.Helper()
				ephemeral.Eventually(t, "the client finds the master", func() bool { return client.Ping(briefly(t)).Err() == nil })
			}
			findsMaster()
			for _, sentinel := range servers.Sentinels { // the client uses one of them
				outage.begin(sentinel)
				assert.NoError(t, servers.Master.Admin().ClientKillByFilter(t.Context(), "type", "normal").Err())
				findsMaster()
				outage.end(sentinel)
			}
		})
	}
}

// go-redis stops asking the sentinels for a second after as many failures as connections.
func TestRedis_UsesSentinelsThatAreBackImmediately(t *testing.T) {
	t.Parallel()
	servers := ephemeral.StartSentinels(t)
	client := open(t, servers.URL, func(o *redis.UniversalOptions) { o.MaxRetries, o.PoolSize = -1, 5 })
	for _, sentinel := range servers.Sentinels {
		sentinel.Stop()
	}
	for range 20 {
		wantNoDial(t, client)
	}
	for _, sentinel := range servers.Sentinels {
		sentinel.Restart()
	}
	wantPings(t, client)
}
