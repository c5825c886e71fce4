package connect_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestMain(m *testing.M) {
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)}) // go-redis logs every failed dial
	os.Exit(m.Run())
}

func open(t *testing.T, url string, edits ...func(*redis.UniversalOptions)) redis.UniversalClient {
	t.Helper()
	client, err := connect.Redis(url, edits...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// roundTrip writes a key and reads it back.
func roundTrip(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	key := "connect:" + t.Name()
	if err := client.Set(t.Context(), key, "v", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := client.Get(t.Context(), key).Result(); err != nil || got != "v" {
		t.Fatalf("GET = %q, %v", got, err)
	}
}

func TestRedis_ConnectsToASingleServer(t *testing.T) {
	t.Parallel()
	roundTrip(t, open(t, ephemeral.Redis(t)))
}

func TestRedis_ConnectsToAClusterFromOneSeed(t *testing.T) {
	t.Parallel()
	seeds := ephemeral.Cluster(t)
	roundTrip(t, open(t, seeds))
	first, _, _ := strings.Cut(seeds, ",")
	roundTrip(t, open(t, first+"?cluster=true"))
}

func TestRedis_ConnectsToTheMasterThatSentinelsName(t *testing.T) {
	t.Parallel()
	roundTrip(t, open(t, ephemeral.StartSentinels(t).URL))
}

func TestRedis_RefusesABadURL(t *testing.T) {
	t.Parallel()
	if _, err := connect.Redis("redis://u:hunter@h:x"); err == nil {
		t.Error("a port that is no number was accepted")
	}
}

func TestRedis_DeadlineEndsACallToAFrozenServer(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	client := open(t, server.URL, func(o *redis.UniversalOptions) { o.ReadTimeout = time.Minute })
	roundTrip(t, client)
	server.Freeze()

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := client.Get(ctx, "k").Err()
	if took := time.Since(start); err == nil || took > 20*time.Second {
		t.Errorf("GET of a frozen server: %v after %v, want an error after 200ms", err, took)
	}
	server.Thaw()
	roundTrip(t, client)
}

func TestRedis_ReconnectsToARestartedServer(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	client := open(t, server.URL)
	roundTrip(t, client)
	server.Kill()

	var refused *net.OpError
	if err := client.Get(t.Context(), "k").Err(); !errors.As(err, &refused) || refused.Op != "dial" {
		t.Errorf("GET of a dead server: %v, want a failed dial", err)
	}
	server.Restart()
	roundTrip(t, client)
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
	start := time.Now()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err := client.Set(ctx, key, "v", time.Minute).Err()
		cancel()
		if err == nil {
			break
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("20s after its master's death: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("writable again after %v", time.Since(start).Round(10*time.Millisecond))
}

// keyOf returns a key that node serves.
func keyOf(t *testing.T, client redis.UniversalClient, node *ephemeral.Server) string {
	t.Helper()
	for i := range 1000 {
		key := "connect:failover:" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		master, err := client.(*redis.ClusterClient).MasterForKey(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(node.URL, master.Options().Addr) {
			return key
		}
	}
	t.Fatalf("found no key of %s", node.URL)
	return ""
}
