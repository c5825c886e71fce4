package telemetry

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"commerce/auth/limit"
	"commerce/cart/redisstore"
	"commerce/deploy/connect"
)

// readBatch is the command label of a round trip that reads one or more carts.
const readBatch = "read_batch"

// otherCommand is the command label of commands that redisCommands does not list.
const otherCommand = "other"

// redisCommands returns the values of the command label.
func redisCommands() []string {
	return append(redisstore.ScriptNames(),
		limit.ScriptName, readBatch, "hgetall", "hget", "exists", "pttl", "ping", "time", "role", "wait", "cluster slots", "cluster nodes", otherCommand)
}

// connecting lists the commands that go-redis sends to set up a connection. They do not count.
// If one fails, the command that needs the connection fails with its error.
var connecting = []string{"hello", "auth", "select", "client", "readonly"}

// redisHook measures the commands of a Redis client. It is safe for concurrent use.
type redisHook struct {
	took     map[string]prometheus.Observer // by command
	failures *prometheus.CounterVec
}

func newRedisHook(r registry) redisHook {
	duration := r.histograms("commerce_redis_command_duration_seconds", "Time of a Redis command or script, with the wait for a connection.",
		[]float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .2, .3, .5, 1}, "command")
	h := redisHook{
		took:     map[string]prometheus.Observer{},
		failures: r.counters("commerce_redis_errors_total", "Redis commands that failed, by kind.", "kind", redisKinds...),
	}
	for _, name := range redisCommands() {
		h.took[name] = duration.WithLabelValues(name)
	}
	return h
}

func (redisHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(connecting, cmd.Name()) {
			return next(ctx, cmd)
		}
		began := time.Now()
		err := next(ctx, cmd)
		h.observe(cmd.FullName(), time.Since(began), commandFailure(cmd, err))
		return err
	}
}

// ProcessPipelineHook implements redis.Hook. A pipeline counts once, with its first failure.
func (h redisHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if slices.Contains(connecting, cmds[0].Name()) {
			return next(ctx, cmds)
		}
		began := time.Now()
		err := next(ctx, cmds)
		h.observe(pipelineName(cmds), time.Since(began), pipelineFailure(cmds, err))
		return err
	}
}

// pipelineName returns the command label of a pipeline. All pipelines read carts, except those
// that go-redis sends to follow the redirection of a single command.
func pipelineName(cmds []redis.Cmder) string {
	if cmds[0].Name() == "asking" && len(cmds) == 2 {
		return cmds[1].FullName()
	}
	return readBatch
}

func (h redisHook) observe(command string, took time.Duration, failure string) {
	series, known := h.took[command]
	if !known {
		series = h.took[otherCommand]
	}
	series.Observe(took.Seconds())
	if failure != "" {
		h.failures.WithLabelValues(failure).Inc()
	}
}

// ObserveRedis adds the metrics of a client's commands and of its pools, summed over all nodes.
// Call it once, before the first use of the client.
//
// A command counts once, together with its retries. On a cluster, each attempt at a node
// counts, so that redirections and failures of single nodes show.
func (m *Metrics) ObserveRedis(client redis.UniversalClient) {
	if m == nil {
		return
	}
	const connections, now = "commerce_redis_pool_connections", "Connections to Redis now, of all nodes together."
	m.registry.gauge(connections, now, prometheus.Labels{"state": "idle"}, func() float64 { return float64(client.PoolStats().IdleConns) })
	m.registry.gauge(connections, now, prometheus.Labels{"state": "used"}, func() float64 {
		s := client.PoolStats()
		return max(float64(s.TotalConns)-float64(s.IdleConns), 0) // go-redis does not count them at the same moment
	})
	m.registry.counter("commerce_redis_pool_waits_total", "Redis commands that waited for a connection to become free.", nil,
		func() float64 { return float64(client.PoolStats().WaitCount) })
	m.registry.counter("commerce_redis_pool_timeouts_total", "Redis commands for which no connection became free in time.", nil,
		func() float64 { return float64(client.PoolStats().Timeouts) })
	connect.AddHook(client, m.redis)
}
