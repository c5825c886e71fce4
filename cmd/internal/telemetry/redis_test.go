package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/limit"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// dialMeasured returns a client whose commands the metrics count.
func dialMeasured(t *testing.T, redisURL string) (redis.UniversalClient, *Metrics) {
	t.Helper()
	client := assert.Must(connect.Redis(redisURL, func(o *redis.UniversalOptions) {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = 10*time.Second, 10*time.Second, 10*time.Second
	}))(t)
	t.Cleanup(func() { client.Close() })
	m := New("test")
	m.ObserveRedis(client)
	return client, m
}

func TestRedis_EachCommandCountsOnce(t *testing.T) {
	t.Parallel()
	for kind, url := range map[string]func(testing.TB) string{
		"single":    ephemeral.Redis,
		"cluster":   ephemeral.Cluster,
		"sentinels": func(tb testing.TB) string { return ephemeral.StartSentinels(tb).URL },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			client, m := dialMeasured(t, url(t))
			carts := redisstore.New(redisstore.Config{Client: client, TTL: redisstore.TTLs{Guest: time.Hour, Customer: time.Hour}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			customer := redisstore.CustomerRef(1, t.Name())
			change := func() {
				t.Helper()
				assert.Must(carts.Change(ctx, customer, redisstore.Conditions{}, redisstore.Attempt{CartID: "A"}, redisstore.Clear()))(t)
			}
			change() // EVALSHA may be followed by EVAL
			clears := m.commands(t, "clear")
			change()
			got := m.commands(t, "clear") - clears
			assert.That(t, got == 1, "a script counts %v times", got)
			assert.Must(carts.Load(ctx, customer))(t)
			got = m.commands(t, "read_batch") + m.commands(t, "hgetall")
			assert.That(t, got == 1, "a read counts %v times", got)
			assert.NoError(t, client.Ping(ctx).Err())
			got = m.commands(t, "ping")
			assert.That(t, got == 1, "PING counts %v times", got)
			limit := limit.NewQuota(limit.Config{Name: "test", Redis: client, Timeout: time.Minute, Rates: []limit.Rate{{Uses: 1, Per: time.Second}}})
			limit.Use(ctx, t.Name()) // EVALSHA may be followed by EVAL
			limits := m.commands(t, "limit")
			limit.Use(ctx, t.Name())
			assert.That(t, m.commands(t, "limit")-limits == 1, "the script of limits counts %v times", m.commands(t, "limit")-limits)
			err := client.Get(ctx, "{never}").Err()
			assert.Require(t, err == redis.Nil, "%v", err)
			assert.Equal(t, m.failures(t, "redis"), map[string]float64{}, "failures, although nothing failed")
		})
	}
}

func TestRedis_CountsAPipelineOnceByItsFirstFailure(t *testing.T) {
	t.Parallel()
	client, m := dialMeasured(t, ephemeral.Redis(t))
	pipe := client.Pipeline()
	pipe.Get(t.Context(), "never")
	pipe.Do(t.Context(), "no such command")
	_ = pipe.Process(t.Context(), redis.NewRawCmd(t.Context(), "no such command either"))
	_, _ = pipe.Exec(t.Context())
	got := m.commands(t, readBatch)
	assert.That(t, got == 1, "a pipeline counts %v times", got)
	assert.Equal(t, m.failures(t, "redis"), map[string]float64{"other": 1}, "result")
}

func TestRedis_CountsFailuresByKind(t *testing.T) {
	t.Parallel()
	shared := assert.Must(url.Parse(ephemeral.Redis(t)))(t)
	closed := assert.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed.Close()
	for kind, redisURL := range map[string]string{
		"refused": "redis://" + closed.Addr().String(),
		"denied":  "redis://nobody:wrong@" + shared.Host,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			client, m := dialMeasured(t, redisURL)
			assert.Require(t, client.Ping(t.Context()).Err() != nil, "PING succeeds")
			assert.Equal(t, m.failures(t, "redis"), map[string]float64{kind: 1}, "result")
		})
	}
}

// reply is an error that Redis replied with.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestRedisKind_NamesEachFailure(t *testing.T) {
	t.Parallel()
	for want, errs := range map[string][]error{
		"":              {nil, redis.Nil, context.Canceled, reply("NOSCRIPT No matching script. Please use EVAL.")},
		"timeout":       {context.DeadlineExceeded, &net.OpError{Op: "read", Err: errTimeout{}}},
		"refused":       {fmt.Errorf("dial redis: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})},
		"reset":         {io.EOF, fmt.Errorf("read: %w", syscall.ECONNRESET), net.ErrClosed},
		"readonly":      {reply("READONLY You can't write against a read only replica.")},
		"loading":       {reply("LOADING Redis is loading the dataset in memory")},
		"out_of_memory": {reply("OOM command not allowed when used memory > 'maxmemory'. script: 1, on @user_script:1.")},
		"no_replicas":   {reply("NOREPLICAS Not enough good replicas to write.")},
		"misconf":       {reply("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.")},
		"dns":           {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "i/o timeout", Name: "redis", IsTimeout: true}}},
		"cluster_down":  {reply("CLUSTERDOWN The cluster is down")},
		"try_again":     {reply("TRYAGAIN Multiple keys request during rehashing of slot")},
		"moved":         {reply("MOVED 1 127.0.0.1:1"), reply("ASK 1 127.0.0.1:1")},
		"denied":        {reply("NOAUTH Authentication required."), fmt.Errorf("failed to authenticate: %w", reply("WRONGPASS invalid")), reply("NOPERM no")},
		"pool_timeout":  {redis.ErrPoolTimeout, redis.ErrPoolExhausted},
		"other":         {errors.New("what?"), reply("WRONGTYPE Operation"), fmt.Errorf("no sentinel knows the master: %w", redis.Nil)},
	} {
		for _, err := range errs {
			assert.Equal(t, redisKind(err), want, "%v", err)
		}
	}
}

type errTimeout struct{}

func (errTimeout) Error() string   { return "i/o timeout" }
func (errTimeout) Timeout() bool   { return true }
func (errTimeout) Temporary() bool { return true }
