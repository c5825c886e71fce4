package timing

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the name of the instrumentation in traces.
const Scope = "commerce"

// Traced reports whether the request that ctx belongs to is traced.
func Traced(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// Step begins a step of a request. If the request is traced, the step has its own span. The
// caller must call end. The span does not have the text of the error, which may contain a
// caller's data.
func Step(ctx context.Context, name string, options ...trace.SpanStartOption) (_ context.Context, end func(error)) {
	if !Traced(ctx) {
		return ctx, func(error) {}
	}
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer(Scope)
	ctx, span := tracer.Start(ctx, name, options...)
	return ctx, func(err error) {
		if err != nil {
			kind, replied := kindOf(err)
			if replied {
				span.SetAttributes(attribute.String("db.response.status_code", kind))
			}
			Fail(span, kind)
		}
		span.End()
	}
}

// Call is Step for a call of a database. system is OpenTelemetry's name of it.
func Call(
	ctx context.Context, system, name string, options ...trace.SpanStartOption,
) (_ context.Context, end func(error)) {
	if Traced(ctx) { // otherwise the options must not be allocated
		options = append(options, trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(attribute.String("db.system.name", system)))
	}
	return Step(ctx, name, options...)
}

// waits are the span names of waits. Commands and statements have their own spans.
var waits = [places]string{Catalog: "wait for the catalog", Waiting: "wait"}

// MinWait is the shortest wait that has a span.
const MinWait = 100 * time.Microsecond

// Fail marks a span as failed, with the kind of the failure. The text of an error may quote a
// caller or an address.
func Fail(span trace.Span, kind string) {
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(codes.Error, kind)
}

// kindOf returns what failed, in a word: the SQLSTATE of Postgres's reply, the first word of Redis's
// reply, such as "READONLY", or what failed on the way. replied is whether it is of a reply.
func kindOf(err error) (kind string, replied bool) {
	if reply, ok := errors.AsType[postgresError](err); ok {
		return reply.SQLState(), true
	}
	if reply, ok := errors.AsType[redisError](err); ok {
		return firstWord(reply.Error()), true
	}
	failed, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled", false
	case errors.Is(err, context.DeadlineExceeded), isNet && failed.Timeout():
		return "timeout", false
	case isNet:
		return "connection", false
	}
	return "failed", false
}

// postgresError and redisError are what pgx and go-redis have for a reply that is an error.
type (
	postgresError interface {
		error
		SQLState() string
	}
	redisError interface {
		error
		RedisError()
	}
)

func firstWord(reply string) string {
	word, _, _ := strings.Cut(reply, " ")
	if strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "ERR"
	}
	return word
}
