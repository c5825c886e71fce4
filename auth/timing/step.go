package timing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the name of the instrumentation in traces.
const Scope = "commerce"

// Step begins a step of a request. If the request is traced, the step has its own span. The
// caller must call end. The span does not have the text of the error, which may contain a
// caller's data.
func Step(ctx context.Context, name string) (_ context.Context, end func(error)) {
	return step(ctx, name)
}

// RedisStep is Step for a wait for Redis, if the commands themselves belong to no request.
func RedisStep(ctx context.Context, name string) (_ context.Context, end func(error)) {
	return step(ctx, name, redisCall...)
}

var redisCall = []trace.SpanStartOption{
	trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("db.system.name", "redis")),
}

func step(ctx context.Context, name string, options ...trace.SpanStartOption) (_ context.Context, end func(error)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, untraced
	}
	ctx, span := parent.TracerProvider().Tracer(Scope).Start(ctx, name, options...)
	return ctx, func(err error) {
		if err != nil {
			Fail(span, Kind(err))
		}
		span.End()
	}
}

func untraced(error) {}

// waits are the span names of waits. Commands and statements have their own spans.
var waits = [places]string{Catalog: "wait for the catalog", Waiting: "wait"}

// MinWait is the shortest wait that has a span.
const MinWait = 100 * time.Microsecond

// traceWait adds a span for a wait that has just ended.
func traceWait(ctx context.Context, at Place, d time.Duration) {
	if waits[at] == "" || d < MinWait {
		return
	}
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return
	}
	ended := time.Now()
	_, span := parent.TracerProvider().Tracer(Scope).Start(ctx, waits[at], trace.WithTimestamp(ended.Add(-d)))
	span.End(trace.WithTimestamp(ended))
}
