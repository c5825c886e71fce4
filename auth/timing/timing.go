// Package timing measures where the time of a request goes: to Redis, to Postgres, or to waits.
// The server reads the sums at the end of the request.
package timing

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Place is where a request spends time.
type Place int

const (
	Redis    Place = iota
	Postgres       // statements that the request itself waits for
	Catalog        // loads of a cache of the catalog
	Waiting        // everything else: a limiter, a connection of a pool, an issuer's keys
	places
)

// Times holds the time of one request at each place. It is safe for concurrent use. A nil
// *Times measures nothing.
//
// Times is also the context of the request, so that measuring takes only one allocation.
type Times struct {
	context.Context
	spent [places]atomic.Int64 // nanoseconds
}

type timesKey struct{}

func (t *Times) Value(key any) any {
	if key == (timesKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// Of returns the Times of the request that ctx belongs to; nil if that is not measured.
func Of(ctx context.Context) *Times {
	t, _ := ctx.Value(timesKey{}).(*Times)
	return t
}

// Add adds time that the request has just spent at a place. If ctx has no Times, it adds
// nothing. If the request is traced, a wait at Catalog or Waiting also gets a span.
func Add(ctx context.Context, at Place, d time.Duration) {
	Of(ctx).Add(at, d)
	if waits[at] != "" && d >= MinWait && Traced(ctx) {
		_, end := Step(ctx, waits[at], trace.WithTimestamp(time.Now().Add(-d)))
		end(nil)
	}
}

func (t *Times) Add(at Place, d time.Duration) {
	if t != nil {
		t.spent[at].Add(int64(d))
	}
}

// Spent returns the time spent at a place so far. If waits overlap, each counts in full.
func (t *Times) Spent(at Place) time.Duration {
	if t == nil {
		return 0
	}
	return time.Duration(t.spent[at].Load())
}

// Detach returns a context for work that outlives its request or that several requests
// share. It has the values of ctx, but no deadline, and the work is not measured: each
// request measures how long it waits for the result.
func Detach(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), timesKey{}, (*Times)(nil))
}

// Within returns a context for a call that may take at most limit, and no longer than the
// deadline of ctx allows. It has the values of ctx. The caller must call cancel.
//
// It takes no part in the cancellation of ctx: a client that disconnects does not end a call
// that has begun.
func Within(ctx context.Context, limit time.Duration) (_ context.Context, cancel func()) {
	ends := time.Now().Add(limit)
	if earlier, bounded := ctx.Deadline(); bounded && earlier.Before(ends) {
		ends = earlier
	}
	call, cancel := context.WithDeadline(context.WithoutCancel(ctx), ends)
	if ctx.Err() != nil {
		cancel()
	}
	return call, cancel
}

// Scope is the name of the instrumentation in traces.
const Scope = "commerce"

func Traced(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// Step begins a step of a request. If the request is traced, the step has its own span. The
// caller must call end. The span does not have the text of the error, which may contain a
// caller's data.
func Step(ctx context.Context, name string, options ...trace.SpanStartOption) (_ context.Context, end func(error)) {
	return begin(ctx, name, false, options)
}

func begin(ctx context.Context, name string, database bool, options []trace.SpanStartOption) (_ context.Context, end func(error)) {
	if !Traced(ctx) {
		return ctx, func(error) {}
	}
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer(Scope)
	ctx, span := tracer.Start(ctx, name, options...)
	return ctx, func(err error) {
		if err != nil {
			kind, replied := kindOf(err)
			if replied && database {
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
	return begin(ctx, name, true, options)
}

// waits are the span names of waits. Commands and statements have their own spans.
var waits = [places]string{Catalog: "wait for the catalog", Waiting: "wait"}

// MinWait is the shortest wait that has a span.
const MinWait = 100 * time.Microsecond

// Fail marks a span with the kind of its failure. An error's text may quote a caller.
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
		word, _, _ := strings.Cut(reply.Error(), " ")
		if strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			word = "ERR"
		}
		return word, true
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
