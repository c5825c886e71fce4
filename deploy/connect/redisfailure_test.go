package connect_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"commerce/auth/cause"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func addr(t *testing.T, server *ephemeral.Server) string {
	t.Helper()
	return assert.Must(url.Parse(server.URL))(t).Host
}

// wantFailure compares an error, with ADDR and TIME, on a new connection or not.
func wantFailure(t *testing.T, err error, server *ephemeral.Server, want string) {
	t.Helper()
	want = regexp.QuoteMeta(want)
	want = strings.ReplaceAll(want, "ADDR", regexp.QuoteMeta(addr(t, server)))
	want = strings.ReplaceAll(want, "TIME", `\d+(\.\d+)?m?s(, on a new connection)?`)
	assert.That(t, err != nil && regexp.MustCompile("^"+want+"$").MatchString(err.Error()), "got %v\nwant %s", err, want)
}

func briefly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestRedisFailure_NamesTheServerAndWhatHappened(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fail func(*testing.T, *ephemeral.Server)
		want string
	}{
		"stopped": {func(_ *testing.T, s *ephemeral.Server) { s.Stop() }, "redis ADDR: connection refused"},
		"frozen":  {func(_ *testing.T, s *ephemeral.Server) { s.Freeze() }, "redis ADDR: no answer after TIME"},
		"read-only": {
			func(t *testing.T, s *ephemeral.Server) { do(t, s, "REPLICAOF 127.0.0.1 1") },
			"redis ADDR: READONLY You can't write against a read only replica.",
		},
		"full": {
			func(t *testing.T, s *ephemeral.Server) { do(t, s, "CONFIG SET maxmemory 1") },
			"redis ADDR: OOM command not allowed when used memory > 'maxmemory'.",
		},
		"another password": {
			func(t *testing.T, s *ephemeral.Server) { do(t, s, "CONFIG SET requirepass other", killClients) },
			"redis ADDR: NOAUTH Authentication required.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := ephemeral.StartRedis(t)
			client := open(t, server.URL)
			roundTrip(t, client)
			test.fail(t, server)
			within := func() context.Context { return t.Context() } // a server that refuses may be slow on a busy machine
			if name == "frozen" {
				within = func() context.Context { return briefly(t) }
			}
			wantFailure(t, client.Set(within(), "k", "v", 0).Err(), server, test.want)
			pipe := client.Pipeline()
			pipe.Set(within(), "k", "v", 0)
			pipe.Set(within(), "k", "v", 0)
			_, err := pipe.Exec(within())
			wantFailure(t, err, server, test.want)
		})
	}
}

// The commands that set up a connection must not hide how long the caller waited.
func TestRedisFailure_SaysHowLongACallThatOpensAConnectionTook(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	for name, hooks := range map[string]int{"without a hook": 0, "with a hook": 1} {
		client := open(t, slowed(t, server, 150*time.Millisecond))
		for range hooks {
			connect.AddHook(client, passing{})
		}
		began := time.Now()
		err := client.Set(briefly(t), "k", "v", 0).Err()
		took := time.Since(began)
		assert.That(t, took >= 190*time.Millisecond, "%s: it failed after %s", name, took)
		failed, ok := errors.AsType[*cause.Failure](err)
		assert.Require(t, ok && failed.Took >= 190*time.Millisecond, "%s: got %v", name, err)
		said := ": no answer after " + cause.Text(failed.Took) + ", on a new connection"
		assert.That(t, strings.HasSuffix(failed.Error(), said), "%s: got %v", name, err)
	}
}

// slowed returns the URL of a proxy that delays each reply of a server.
func slowed(t *testing.T, server *ephemeral.Server, delay time.Duration) string {
	t.Helper()
	proxy := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "slow", "127.0.0.1:0", addr(t, server))
	assert.NoError(t, proxy.Start())
	t.Cleanup(proxy.Stop)
	toxic := fmt.Sprintf(`{"type":"latency","stream":"downstream","attributes":{"latency":%d}}`, delay.Milliseconds())
	assert.Must(proxy.Toxics.AddToxicJson(strings.NewReader(toxic)))(t)
	return "redis://" + proxy.Listen
}

type passing struct{}

func (passing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (passing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (passing) ProcessPipelineHook(n redis.ProcessPipelineHook) redis.ProcessPipelineHook { return n }

const killClients = "CLIENT KILL TYPE normal SKIPME yes"

// do sends commands on one connection, which stays open.
func do(t *testing.T, server *ephemeral.Server, commands ...string) {
	t.Helper()
	conn := server.Admin().Conn()
	t.Cleanup(func() { _ = conn.Close() })
	for _, command := range commands {
		var args []any
		for _, word := range strings.Fields(command) {
			args = append(args, word)
		}
		assert.NoError(t, conn.Do(t.Context(), args...).Err())
	}
}

func TestRedisFailure_SaysThatThePoolIsUsedUp(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	client := open(t, server.URL, func(o *redis.UniversalOptions) { o.PoolSize, o.PoolTimeout = 1, 50*time.Millisecond })
	conn := client.(*redis.Client).Conn()
	defer conn.Close()
	assert.NoError(t, conn.Ping(t.Context()).Err())
	wantFailure(t, client.Ping(t.Context()).Err(), server, "redis ADDR: no connection became free within TIME")
}

func TestRedisFailure_NamesTheNodeOfACluster(t *testing.T) {
	t.Parallel()
	cluster := ephemeral.StartCluster(t)
	client := open(t, cluster.URL)
	key := keyOf(t, client, cluster.Nodes[0])
	for _, node := range cluster.Nodes { // so that no replica is promoted
		if node != cluster.Nodes[0] {
			do(t, node, "CONFIG SET cluster-replica-no-failover yes")
		}
	}
	cluster.Nodes[0].Freeze()
	err := client.Set(briefly(t), key, "v", 0).Err()
	for range 5 { // go-redis may use up the time for its map of the slots
		if !strings.HasSuffix(err.Error(), "not called, because its time was over") {
			break
		}
		err = client.Set(briefly(t), key, "v", 0).Err()
	}
	wantFailure(t, err, cluster.Nodes[0], "redis ADDR: no answer after TIME")
	cluster.Nodes[0].Kill()
	wantFailure(t, client.Set(briefly(t), key, "v", 0).Err(), cluster.Nodes[0], "redis ADDR: connection refused")
}

func TestRedisFailure_NamesTheMasterOfSentinelsOrTheSentinels(t *testing.T) {
	t.Parallel()
	servers := ephemeral.StartSentinels(t)
	client := open(t, servers.URL)
	roundTrip(t, client)
	servers.Master.Freeze()
	wantFailure(t, client.Ping(briefly(t)).Err(), servers.Master, "redis ADDR: no answer after TIME")
	servers.Master.Thaw()
	for _, sentinel := range servers.Sentinels {
		sentinel.Stop()
	}
	servers.Master.Kill()
	wantSentinelsBlamed(t, client, ": connection refused")
}

func TestRedisFailure_NamesAMasterThatNoSentinelKnows(t *testing.T) {
	t.Parallel()
	servers := ephemeral.StartSentinels(t)
	client := open(t, strings.Replace(servers.URL, "master=main", "master=nobody", 1))
	wantSentinelsBlamed(t, client, ": they know no master nobody")
}

func wantSentinelsBlamed(t *testing.T, client redis.UniversalClient, what string) {
	t.Helper()
	got := fmt.Sprint(client.Ping(briefly(t)).Err())
	assert.That(t, strings.HasPrefix(got, "redis sentinels 127.0.0.1:") && strings.HasSuffix(got, what), "got %s", got)
}

// A missing key and a closed client are no failures of the server.
func TestRedisFailure_LeavesOtherErrorsAsTheyAre(t *testing.T) {
	t.Parallel()
	client := open(t, ephemeral.Redis(t))
	assert.That(t, client.Get(t.Context(), "connect:none").Err() == redis.Nil, "a missing key is another error")
	err := client.Do(t.Context(), "EVALSHA", strings.Repeat("0", 40), 0).Err()
	_, named := errors.AsType[*cause.Failure](err)
	assert.That(t, named && redis.HasErrorPrefix(err, "NOSCRIPT"), "a missing script: %v", err)
	assert.NoError(t, client.Close())
	assert.That(t, client.Ping(t.Context()).Err() == redis.ErrClosed, "a closed client has another error")
}
