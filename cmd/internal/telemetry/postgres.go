package telemetry

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"commerce/auth/bounded"
	"commerce/auth/timing"
	"commerce/deploy/connect"
)

// postgresTracer measures the statements of all pools, and adds a span for each, and for each wait for
// a connection, to the trace of its request. otelpgx would name spans by the text of the statement.
type postgresTracer struct {
	duration *prometheus.HistogramVec
	series   *bounded.Cache[string, prometheus.Observer] // of duration, by statement
	failures *prometheus.CounterVec
}

var (
	_ pgx.QueryTracer       = postgresTracer{}
	_ pgx.ConnectTracer     = postgresTracer{}
	_ pgxpool.AcquireTracer = postgresTracer{}
)

func newPostgresTracer(r registry) postgresTracer {
	return postgresTracer{
		duration: r.histograms("commerce_postgres_statement_duration_seconds",
			"Time of a statement until its last row is read, without the wait for a connection. pg_stat_activity shows the same name.",
			[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, "statement"),
		series: bounded.New[string, prometheus.Observer](maxSeries, nil),
		failures: fromZero(r.counters("commerce_postgres_errors_total",
			"Statements, connections and waits for a connection that failed. docs/runbook.md explains the kinds, at Errors.", "kind"),
			kindsOf(sqlstateKinds)...),
	}
}

// PostgresTracer measures the statements of a pool, and adds their spans to traces.
func (m *Metrics) PostgresTracer() pgx.QueryTracer { return m.postgres }

type statementKey struct{}

func (t postgresTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	name, label := statementName(data.SQL)
	end := func(error) {}
	if timing.Traced(ctx) {
		summary := trace.WithAttributes(attribute.String("db.query.summary", name))
		ctx, end = timing.Call(ctx, "postgresql", "postgres "+name, summary)
	}
	endSpan := end // a variable with one value, which the function below can have without an allocation
	series := t.series.GetOrPut(label, func() prometheus.Observer { return t.duration.WithLabelValues(label) })
	began := time.Now()
	return context.WithValue(ctx, statementKey{}, func(err error) {
		series.Observe(time.Since(began).Seconds())
		endSpan(err)
	})
}

// TraceQueryEnd implements pgx.QueryTracer. pgx calls it after the rows are read.
func (t postgresTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if end, ok := ctx.Value(statementKey{}).(func(error)); ok {
		end(data.Err)
	}
	t.count(postgresKind(data.Err))
}

func (postgresTracer) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

func (t postgresTracer) TraceConnectEnd(_ context.Context, data pgx.TraceConnectEndData) {
	t.count(postgresKind(data.Err))
}

type acquireKey struct{}

func (postgresTracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	if !timing.Traced(ctx) {
		return ctx
	}
	return context.WithValue(ctx, acquireKey{}, time.Now())
}

// TraceAcquireEnd implements pgxpool.AcquireTracer. It counts only waits that timed out,
// because TraceConnectEnd counts the other failures.
func (t postgresTracer) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	if errors.Is(data.Err, context.DeadlineExceeded) {
		t.count("pool_timeout")
	}
	began, traced := ctx.Value(acquireKey{}).(time.Time)
	if traced && (data.Err != nil || time.Since(began) >= timing.MinWait) {
		_, end := timing.Call(ctx, "postgresql", "postgres connection", trace.WithTimestamp(began))
		end(data.Err)
	}
}

func (t postgresTracer) count(kind string) {
	if kind != "" {
		t.failures.WithLabelValues(kind).Inc()
	}
}

// statementName returns the name of a statement, or its first word if it has no name, such as some of
// pgx's own. label is what metrics call it: words that they do not expect are "other".
func statementName(sql string) (name, label string) {
	sql = strings.TrimSpace(sql)
	if name, ok := connect.StatementName(sql); ok {
		return name, name
	}
	if words := strings.Fields(sql[:min(len(sql), 32)]); len(words) > 0 {
		name = strings.ToLower(words[0])
	}
	switch name {
	case "begin", "commit", "rollback":
		return name, name
	}
	return cmp.Or(name, "statement"), "other"
}

// ObservePool adds the metrics of a pool, which its label names. They are read at each scrape.
func (m *Metrics) ObservePool(name string, pool *pgxpool.Pool) {
	of, stat := prometheus.Labels{"pool": name}, pool.Stat
	const connections, now = "commerce_postgres_pool_connections", "Connections that are idle or used. Pools of a replica have its host and port after an @."
	m.registry.gauge(connections, now, prometheus.Labels{"pool": name, "state": "idle"}, func() float64 { return float64(stat().IdleConns()) })
	m.registry.gauge(connections, now, prometheus.Labels{"pool": name, "state": "used"}, func() float64 { return float64(stat().AcquiredConns()) })
	m.registry.gauge("commerce_postgres_pool_max_connections", "Maximum size of the pool.", of,
		func() float64 { return float64(stat().MaxConns()) })
	m.registry.counter("commerce_postgres_pool_waits_total", "Waits for a free or a new connection.", of,
		func() float64 { return float64(stat().EmptyAcquireCount()) })
	m.registry.counter("commerce_postgres_pool_wait_seconds_total", "Total time of waits for a connection.", of,
		func() float64 { return stat().EmptyAcquireWaitTime().Seconds() })
}
