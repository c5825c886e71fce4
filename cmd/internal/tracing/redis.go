package tracing

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"commerce/auth/cause"
	"commerce/auth/timing"
	"commerce/deploy/connect"
)

// TraceRedis makes a client add a span for each command to the trace of its request. Call it
// before the first use of the client. On a cluster, each attempt at a node has a span.
//
// redisotel would name all scripts EVALSHA, and can record keys.
func (t *Traces) TraceRedis(client redis.UniversalClient) {
	if t == nil {
		return
	}
	connect.AddHook(client, redisHook{t.tracer})
}

// redisHook never reads the arguments of a command. They contain keys and values, and reading
// them marks a command that must be sent only once as sent.
type redisHook struct{ tracer trace.Tracer }

// DialHook implements redis.Hook. It adds no span: the time is in the span of the command that
// needs the connection.
func (redisHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !trace.SpanFromContext(ctx).IsRecording() {
			return next(ctx, cmd)
		}
		ctx, span := h.start(ctx, cmd.FullName(), cmd.FullName())
		err := next(ctx, cmd)
		endRedis(span, err)
		return err
	}
}

// ProcessPipelineHook implements redis.Hook. The name of the span lists the commands.
func (h redisHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !trace.SpanFromContext(ctx).IsRecording() {
			return next(ctx, cmds)
		}
		all := names(cmds)
		ctx, span := h.start(ctx, strings.Join(all, " "), pipelineOperation(all))
		span.SetAttributes(attribute.Int("db.operation.batch.size", len(cmds)))
		err := next(ctx, cmds)
		endRedis(span, err)
		return err
	}
}

// start begins the span of a command or of a script, by its name.
func (h redisHook) start(ctx context.Context, name, operation string) (context.Context, trace.Span) {
	return h.tracer.Start(ctx, "redis "+name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("db.system.name", "redis"), attribute.String("db.operation.name", operation)))
}

// pipelineOperation returns OpenTelemetry's name for the operation of a pipeline.
func pipelineOperation(names []string) string {
	if len(names) == 1 {
		return "PIPELINE " + names[0]
	}
	return "PIPELINE"
}

// names returns the names of a pipeline's commands, each once.
func names(cmds []redis.Cmder) []string {
	var all []string
	for _, cmd := range cmds {
		if name := cmd.FullName(); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// endRedis ends a span. A missing value and a script that Redis does not have yet are not
// errors.
func endRedis(span trace.Span, err error) {
	if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		failRedis(span, err)
	}
	span.End()
}

// failRedis marks a span as failed. Of a reply it has the first word.
func failRedis(span trace.Span, err error) {
	err = cause.Root(err)
	kind := timing.Kind(err)
	if _, reply := errors.AsType[redis.Error](err); reply {
		span.SetAttributes(attribute.String("db.response.status_code", kind))
	}
	timing.Fail(span, kind)
}
