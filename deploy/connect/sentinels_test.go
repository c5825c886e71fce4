package connect_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestRedisSentinels_ListAReplicaThatHangs(t *testing.T) {
	t.Parallel()
	servers := ephemeral.StartSentinels(t)
	sentinels, err := connect.RedisSentinels(servers.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer sentinels.Close()
	servers.Replica.Freeze()
	defer servers.Replica.Thaw()
	if n, err := sentinels.Replicas(t.Context(), time.Hour); n != 1 || err != nil {
		t.Errorf("%d replicas, %v", n, err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		n, err := sentinels.Replicas(t.Context(), 100*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 { // it has not responded for 100 ms
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a replica that does not respond still counts")
		}
	}
}

// Every durable change waits for the list, and then for the replicas in the same time.
func TestRedisSentinels_ListReplicasWhileASentinelHangs(t *testing.T) {
	t.Parallel()
	servers := ephemeral.StartSentinels(t)
	sentinels, err := connect.RedisSentinels(servers.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer sentinels.Close()
	for i, sentinel := range servers.Sentinels {
		sentinel.Freeze()
		eventually(t, fmt.Sprintf("a list while sentinel %d hangs", i), func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			n, err := sentinels.Replicas(ctx, time.Hour)
			return n == 1 && err == nil
		})
		sentinel.Thaw()
	}
}

func TestRedisSentinels_AreNoneWithoutAMaster(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://localhost", "redis://a,b", "redis://a?cluster=true"} {
		if s, err := connect.RedisSentinels(url); s != nil || err != nil {
			t.Errorf("%s: %v, %v", url, s, err)
		}
		var none *connect.Sentinels
		if err := none.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := connect.RedisSentinels("http://a"); err == nil {
		t.Error("another scheme was taken")
	}
}

// If a machine is lost, its sentinel hangs instead of refusing connections.
func TestRedis_FindsTheMasterWhileASentinelHangs(t *testing.T) {
	t.Parallel()
	servers := ephemeral.StartSentinels(t)
	client := open(t, servers.URL)
	findsMaster := func() {
		t.Helper()
		for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // as for a request
			err := client.Ping(ctx).Err()
			cancel()
			if err == nil {
				return
			}
			if time.Since(began) > 10*time.Second {
				t.Fatalf("no master for 10 s: %v", err)
			}
		}
	}
	findsMaster()
	for _, sentinel := range servers.Sentinels { // the client uses one of them
		sentinel.Freeze()
		if err := servers.Master.Admin().ClientKillByFilter(t.Context(), "type", "normal").Err(); err != nil {
			t.Fatal(err)
		}
		findsMaster()
		sentinel.Thaw()
	}
}

// go-redis tries one sentinel several times. A request's time must be enough for another one.
func TestRedis_FindsTheMasterWhileASentinelIsDown(t *testing.T) {
	t.Parallel()
	servers := ephemeral.StartSentinels(t)
	client := open(t, servers.URL)
	for _, sentinel := range servers.Sentinels { // the client uses one of them
		eventually(t, "the client finds the master", func() bool { return client.Ping(t.Context()).Err() == nil })
		sentinel.Stop()
		if err := servers.Master.Admin().ClientKillByFilter(t.Context(), "type", "normal").Err(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the client finds the master", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // of a request
			defer cancel()
			return client.Ping(ctx).Err() == nil
		})
		sentinel.Restart()
	}
}

// go-redis stops asking the sentinels for a second after as many failures as the pool has
// connections.
func TestRedis_UsesSentinelsThatAreBackImmediately(t *testing.T) {
	t.Parallel()
	servers := ephemeral.StartSentinels(t)
	client := open(t, servers.URL, func(o *redis.UniversalOptions) { o.MaxRetries, o.PoolSize = -1, 5 })
	for _, sentinel := range servers.Sentinels {
		sentinel.Stop()
	}
	for range 20 {
		err := client.Ping(t.Context()).Err()
		if failed, ok := errors.AsType[*net.OpError](err); !ok || failed.Op != "dial" {
			t.Errorf("ping without sentinels: %v, want that the dial failed", err)
		}
	}
	for _, sentinel := range servers.Sentinels {
		sentinel.Restart()
	}
	for range 20 {
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatalf("ping with sentinels that are back: %v", err)
		}
	}
}
