package tracing

import (
	"context"
	"errors"
	"strings"

	"commerce/deploy/connect"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// PostgresTracer returns a tracer that adds a span for each statement to the trace of its
// request. It returns nil if t is nil.
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

// TraceQueryStart implements pgx.QueryTracer.
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
		fail(span, postgresKind(q.Err))
	}
	span.End()
}

// postgresKind returns the SQLSTATE of an error reply, or the kind of any other error.
func postgresKind(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Code
	}
	return kind(err)
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
