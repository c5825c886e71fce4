package telemetry

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"commerce/auth/quota"
	"commerce/cart/redisstore"
	"commerce/deploy/connect"
)

// readBatch is the command of a round trip that reads one cart or several.
const readBatch = "read_batch"

// otherCommand stands for commands that are not listed in redisCommands.
const otherCommand = "other"

// redisCommands are the commands that have a series of their own.
func redisCommands() []string {
	return append(redisstore.ScriptNames(),
		quota.ScriptName, readBatch, "hgetall", "hget", "exists", "pttl", "ping", "time", "role", "wait", "cluster slots", "cluster nodes", otherCommand)
}

// connecting are the commands with which go-redis sets up a connection. They are not counted:
// their errors are those of the command that needed the connection.
var connecting = []string{"hello", "auth", "select", "client", "readonly"}

// redisHook measures the commands of a Redis client. It is safe for concurrent use.
type redisHook struct {
	duration *prometheus.HistogramVec
	failures *prometheus.CounterVec
	took     map[string]prometheus.Observer // by command
	failed   map[string]prometheus.Counter  // by kind
}

func newRedisHook() *redisHook {
	h := &redisHook{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "commerce_redis_command_duration_seconds",
			Help:    "Time of a Redis command or script, with the wait for a connection.",
			Buckets: []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .2, .3, .5, 1},
		}, []string{"command"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "commerce_redis_errors_total",
			Help: "Redis commands that failed, by kind.",
		}, []string{"kind"}),
		took:   map[string]prometheus.Observer{},
		failed: map[string]prometheus.Counter{},
	}
	for _, name := range redisCommands() {
		h.took[name] = h.duration.WithLabelValues(name)
	}
	for _, kind := range redisKinds {
		h.failed[kind] = h.failures.WithLabelValues(kind)
	}
	return h
}

// DialHook implements redis.Hook.
func (*redisHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (h *redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
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
func (h *redisHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
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

// pipelineName returns the command of a pipeline. All pipelines read carts, except for those
// with which go-redis follows the redirection of a single command.
func pipelineName(cmds []redis.Cmder) string {
	if cmds[0].Name() == "asking" && len(cmds) == 2 {
		return cmds[1].FullName()
	}
	return readBatch
}

func (h *redisHook) observe(command string, took time.Duration, failure string) {
	series, known := h.took[command]
	if !known {
		series = h.took[otherCommand]
	}
	series.Observe(took.Seconds())
	if failure != "" {
		h.failed[failure].Inc()
	}
}

// ObserveRedis measures the commands and the pool of a client. Call it once, before the client
// is used.
//
// A command counts once, with all its retries. But on a cluster each attempt at a node counts,
// so that the redirections and failures of single nodes are seen.
func (m *Metrics) ObserveRedis(client redis.UniversalClient) {
	if m == nil {
		return
	}
	m.registry.MustRegister(redisPool(client)...)
	connect.AddHook(client, m.redis)
}
