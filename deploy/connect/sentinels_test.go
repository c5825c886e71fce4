package connect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestRedisSentinels_ListAReplicaThatHangs(t *testing.T) {
	t.Parallel()
	servers := ephemeral.StartSentinels(t)
	sentinels := assert.Must(connect.RedisSentinels(servers.URL))(t)
	defer sentinels.Close()
	servers.Replica.Freeze()
	defer servers.Replica.Thaw()
	n, err := sentinels.Replicas(t.Context(), time.Hour)
	assert.That(t, n == 1 && err == nil, "%d replicas, %v", n, err)
	eventually(t, "a replica that has not responded for 100 ms does not count", func() bool {
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
		eventually(t, fmt.Sprintf("a list while sentinel %d hangs", i), func() bool {
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
			client := open(t, servers.URL)
			findsMaster := func() {
				t.Helper()
				eventually(t, "the client finds the master", func() bool { return client.Ping(briefly(t)).Err() == nil })
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
		wantNoDial(t, client)
	}
	for _, sentinel := range servers.Sentinels {
		sentinel.Restart()
	}
	wantPings(t, client)
}
