package tracing

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"commerce/auth/cause"
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

// ProcessHook implements redis.Hook.
func (h redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !trace.SpanFromContext(ctx).IsRecording() {
			return next(ctx, cmd)
		}
		ctx, span := h.start(ctx, cmd.FullName())
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
		ctx, span := h.start(ctx, names(cmds))
		span.SetAttributes(attribute.Int("db.operation.batch.size", len(cmds)))
		err := next(ctx, cmds)
		endRedis(span, err)
		return err
	}
}

// start begins the span of a command or a script with the given name.
func (h redisHook) start(ctx context.Context, name string) (context.Context, trace.Span) {
	return h.tracer.Start(ctx, "redis "+name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("db.system.name", "redis"), attribute.String("db.operation.name", name)))
}

// names returns the names of a pipeline's commands, each once.
func names(cmds []redis.Cmder) string {
	var all []string
	for _, cmd := range cmds {
		if name := cmd.FullName(); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

// endRedis ends a span. A missing value and a script that Redis does not have yet are not
// errors.
func endRedis(span trace.Span, err error) {
	if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		fail(span, redisKind(err))
	}
	span.End()
}

// redisKind returns the kind of a failure: the first word of Redis's error reply, such as
// "READONLY", or the kind of any other error.
func redisKind(err error) string {
	err = cause.Root(err)
	if _, reply := errors.AsType[redis.Error](err); !reply {
		return kind(err)
	}
	word, _, _ := strings.Cut(err.Error(), " ")
	if strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "ERR"
	}
	return word
}

// fail marks a span as failed, with the kind of the failure.
func fail(span trace.Span, kind string) {
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(codes.Error, kind)
}
