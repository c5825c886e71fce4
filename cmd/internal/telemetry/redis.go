package telemetry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"commerce/auth/cause"
	"commerce/auth/limit"
	"commerce/auth/timing"
	"commerce/cart/redisstore"
	"commerce/deploy/connect"
)

const (
	readBatch    = "read_batch"   // the command label of a round trip that reads one or more carts
	changeBatch  = "change_batch" // of one that changes several carts
	otherCommand = "other"        // of commands that newRedisHook does not list
)

// connecting lists the commands that go-redis sends to set up a connection. They do not count.
// If one fails, the command that needs the connection fails with its error.
var connecting = []string{"hello", "auth", "select", "client", "readonly"}

// redisHook measures the commands of a Redis client, and adds a span for each to the trace of its
// request. redisotel would name all scripts EVALSHA, and can record keys.
//
// It never reads the arguments of a command. They contain keys and values, and reading them marks a
// command that must be sent only once as sent.
type redisHook struct {
	took     map[string]prometheus.Observer // by command
	failures *prometheus.CounterVec
}

func newRedisHook(r registry) redisHook {
	duration := r.histograms("commerce_redis_command_duration_seconds", "Time of a command or script, with the wait for a connection. commit: writes carts; "+
		"limit: counts for limits; read_batch, change_batch: read or change several carts.",
		[]float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .2, .3, .5, 1}, "command")
	h := redisHook{
		took: map[string]prometheus.Observer{},
		failures: fromZero(r.counters("commerce_redis_errors_total",
			"Commands that failed. docs/runbook.md explains the kinds, at Errors.", "kind"), kindsOf(redisReplies)...),
	}
	commands := []string{
		redisstore.ScriptName, limit.ScriptName, readBatch, changeBatch, "hgetall", "hget", "exists", "pttl",
		"ping", "time", "role", "wait", "cluster slots", "cluster nodes", otherCommand,
	}
	for _, name := range commands {
		h.took[name] = duration.WithLabelValues(name)
	}
	return h
}

// DialHook implements redis.Hook. The time to connect belongs to the command that needs the connection.
func (redisHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h.observe(ctx, cmd.FullName(), func(ctx context.Context) error { return next(ctx, cmd) }, cmd)
	}
}

func (h redisHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h.observe(ctx, pipelineName(cmds), func(ctx context.Context) error { return next(ctx, cmds) }, cmds...)
	}
}

// pipelineName returns the command label of a pipeline. All pipelines read or change carts, except
// those that go-redis sends to follow the redirection of a single command.
func pipelineName(cmds []redis.Cmder) string {
	switch {
	case cmds[0].Name() == "asking" && len(cmds) == 2:
		return cmds[1].FullName()
	case cmds[0].NoRetry():
		return changeBatch
	}
	return readBatch
}

// observe runs a command or a pipeline, which counts once, with its first failure.
func (h redisHook) observe(
	ctx context.Context, label string, run func(context.Context) error, cmds ...redis.Cmder,
) error {
	end := func(error) {}
	if timing.Traced(ctx) {
		ctx, end = redisStep(ctx, cmds)
	}
	began := time.Now()
	err := run(ctx)
	took := time.Since(began)
	end(spanFailure(err))
	if slices.Contains(connecting, cmds[0].Name()) {
		return err
	}
	series, known := h.took[label]
	if !known {
		series = h.took[otherCommand]
	}
	series.Observe(took.Seconds())
	if failure := firstFailure(cmds, err); failure != "" {
		h.failures.WithLabelValues(failure).Inc()
	}
	return err
}

// redisStep begins the span of a command or of a pipeline, whose name lists the commands, each once. The
// operation is OpenTelemetry's name.
func redisStep(ctx context.Context, cmds []redis.Cmder) (_ context.Context, end func(error)) {
	var all []string
	for _, cmd := range cmds {
		if name := cmd.FullName(); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	name := strings.Join(all, " ")
	operation := name
	var about []attribute.KeyValue
	if len(cmds) > 1 {
		about = append(about, attribute.Int("db.operation.batch.size", len(cmds)))
		if operation = "PIPELINE"; len(all) == 1 {
			operation += " " + name
		}
	}
	about = append(about, attribute.String("db.operation.name", operation))
	return timing.Call(ctx, "redis", "redis "+name, trace.WithAttributes(about...))
}

// spanFailure returns why a span has failed: not for a missing value or an unknown script.
func spanFailure(err error) error {
	if err == nil || errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "NOSCRIPT") {
		return nil
	}
	return cause.Root(err)
}

// ObserveRedis adds the metrics of a client's commands and of its pools, summed over all nodes, and
// spans of its commands to the traces of requests. Call it once, before the first use of the client.
//
// A command counts once, together with its retries. On a cluster, each attempt at a node
// counts, so that redirections and failures of single nodes show.
func (m *Metrics) ObserveRedis(client redis.UniversalClient) {
	const connections, now = "commerce_redis_pool_connections", "Connections that are idle or used, of all nodes. Near 32 used per core, Redis is slow."
	m.registry.gauge(connections, now, prometheus.Labels{"state": "idle"}, func() float64 { return float64(client.PoolStats().IdleConns) })
	m.registry.gauge(connections, now, prometheus.Labels{"state": "used"}, func() float64 {
		s := client.PoolStats()
		return max(float64(s.TotalConns)-float64(s.IdleConns), 0) // go-redis does not count them at the same moment
	})
	m.registry.counter("commerce_redis_pool_waits_total", "Commands that waited for a connection.", nil,
		func() float64 { return float64(client.PoolStats().WaitCount) })
	m.registry.counter("commerce_redis_pool_timeouts_total", "Commands that failed because no connection became free.", nil,
		func() float64 { return float64(client.PoolStats().Timeouts) })
	connect.AddHook(client, m.redis)
}
