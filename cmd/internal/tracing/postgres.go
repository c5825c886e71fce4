package tracing

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"commerce/auth/timing"
	"commerce/deploy/connect"
)

// PostgresTracer returns a tracer that adds a span for each statement and each wait for a
// connection, as a part of the request; nil if there are no traces.
//
// otelpgx would name spans by the text of the statement.
func (t *Traces) PostgresTracer() pgx.QueryTracer {
	if t == nil {
		return nil
	}
	return postgresTracer{t.tracer}
}

type postgresTracer struct{ tracer trace.Tracer }

type statementKey struct{}

func (p postgresTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	name := statementName(q.SQL)
	ctx, span := p.tracer.Start(ctx, "postgres "+name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("db.system.name", "postgresql"), attribute.String("db.query.summary", name)))
	return context.WithValue(ctx, statementKey{}, span)
}

// TraceQueryEnd implements pgx.QueryTracer. pgx calls it after the rows are read.
func (postgresTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryEndData) {
	span, ok := ctx.Value(statementKey{}).(trace.Span)
	if !ok {
		return
	}
	if q.Err != nil {
		failPostgres(span, q.Err)
	}
	span.End()
}

type acquireKey struct{}

func (p postgresTracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	return context.WithValue(ctx, acquireKey{}, time.Now())
}

// TraceAcquireEnd implements pgxpool.AcquireTracer. It adds a span for a wait for a connection:
// until one became free or was opened.
func (p postgresTracer) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, a pgxpool.TraceAcquireEndData) {
	began, ok := ctx.Value(acquireKey{}).(time.Time)
	if !ok || a.Err == nil && time.Since(began) < timing.MinWait {
		return
	}
	_, span := p.tracer.Start(ctx, "postgres connection", trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("db.system.name", "postgresql")))
	if a.Err != nil {
		failPostgres(span, a.Err)
	}
	span.End()
}

// failPostgres marks a span as failed, with the SQLSTATE or with what failed on the way.
func failPostgres(span trace.Span, err error) {
	kind := timing.Kind(err)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		kind = refused.Code
		span.SetAttributes(attribute.String("db.response.status_code", kind))
	}
	timing.Fail(span, kind)
}

// statementName returns the name of a statement, or its first word if it has no name.
func statementName(sql string) string {
	sql = strings.TrimSpace(sql)
	if name, ok := connect.StatementName(sql); ok {
		return name
	}
	if words := strings.Fields(sql[:min(len(sql), 32)]); len(words) > 0 {
		return strings.ToLower(words[0])
	}
	return "statement"
}
