package connect_test

import (
	"context"
	"errors"
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

func open(t *testing.T, url string, edits ...func(*redis.UniversalOptions)) redis.UniversalClient {
	t.Helper()
	client := assert.Must(connect.Redis(url, edits...))(t)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// roundTrip writes a key and reads it back.
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
	assert.That(t, err != nil && took <= 20*time.Second, "frozen: %v after %v, want an error after 200ms", err, took)
}

func TestRedis_FollowsAClustersFailover(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	cluster := ephemeral.StartCluster(t)
	client := open(t, cluster.URL)
	roundTrip(t, client)

	// Node 0 is a master and serves the key's slot.
	key := keyOf(t, client, cluster.Nodes[0])
	cluster.Nodes[0].Kill()
	eventually(t, "the key can be written", func() bool { return client.Set(briefly(t), key, "v", time.Minute).Err() == nil })
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

// By default, go-redis stops dialing for a second once as many dials have failed as the pool
// has connections.
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

// A dial may fail after its command has given up. No other command may get the failed
// connection.
func TestRedis_DoesNotUseADialThatFailedLate(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t, "--tcp-backlog", "1")
	client := open(t, server.URL, func(o *redis.UniversalOptions) { o.MaxRetries = -1 })
	server.Freeze()
	for range 10 { // the server's queue is full after a few, and further dials hang
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		assert.That(t, client.Ping(ctx).Err() != nil, "ping of a frozen server succeeded")
		cancel()
	}
	time.Sleep(500 * time.Millisecond) // dials fail after 200 ms
	server.Thaw()
	eventually(t, "the server's queue has room", func() bool {
		return open(t, server.URL).Ping(t.Context()).Err() == nil
	})
	wantPings(t, client)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
		assert.Require(t, time.Since(began) <= 20*time.Second, "not after 20s: %s", what)
	}
}
