package telemetry

import (
	"context"
	"errors"
	"strings"
	"time"

	"commerce/deploy/connect"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// postgresTracer measures the statements of all pools.
type postgresTracer struct {
	duration   *prometheus.HistogramVec
	failures   *prometheus.CounterVec
	statements memo[string, prometheus.Observer] // by name; series of duration
	failed     map[string]prometheus.Counter     // by kind; series of failures
}

var (
	_ pgx.QueryTracer       = (*postgresTracer)(nil)
	_ pgx.ConnectTracer     = (*postgresTracer)(nil)
	_ pgxpool.AcquireTracer = (*postgresTracer)(nil)
)

func newPostgresTracer() *postgresTracer {
	t := &postgresTracer{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "commerce_postgres_statement_duration_seconds",
			Help:    "Time of a Postgres statement until its last row was read, without the wait for a connection.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"statement"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "commerce_postgres_errors_total",
			Help: "Postgres statements, connections and waits for a connection that failed, by kind.",
		}, []string{"kind"}),
		failed: map[string]prometheus.Counter{},
	}
	t.statements.make = func(name string) prometheus.Observer { return t.duration.WithLabelValues(name) }
	for _, kind := range postgresKinds {
		t.failed[kind] = t.failures.WithLabelValues(kind)
	}
	return t
}

// statement is a statement in progress.
type statement struct {
	took  prometheus.Observer
	began time.Time
}

type statementKey struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (t *postgresTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, statementKey{}, statement{t.statements.of(statementName(data.SQL)), time.Now()})
}

// TraceQueryEnd implements pgx.QueryTracer.
func (t *postgresTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if s, ok := ctx.Value(statementKey{}).(statement); ok {
		s.took.Observe(time.Since(s.began).Seconds())
	}
	t.count(postgresKind(data.Err))
}

// TraceConnectStart implements pgx.ConnectTracer.
func (t *postgresTracer) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

// TraceConnectEnd implements pgx.ConnectTracer.
func (t *postgresTracer) TraceConnectEnd(_ context.Context, data pgx.TraceConnectEndData) {
	t.count(postgresKind(data.Err))
}

// TraceAcquireStart implements pgxpool.AcquireTracer.
func (t *postgresTracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	return ctx
}

// TraceAcquireEnd implements pgxpool.AcquireTracer. It counts only waits that timed out,
// because TraceConnectEnd counts the other failures.
func (t *postgresTracer) TraceAcquireEnd(_ context.Context, _ *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	if errors.Is(data.Err, context.DeadlineExceeded) {
		t.count("pool_timeout")
	}
}

func (t *postgresTracer) count(kind string) {
	if kind != "" {
		t.failed[kind].Inc()
	}
}

// statementName returns the name of a statement, or "other" for a statement without a name,
// such as some of pgx's own.
func statementName(sql string) string {
	if name, ok := connect.StatementName(sql); ok {
		return name
	}
	switch first, _, _ := strings.Cut(sql, " "); first {
	case "begin", "commit", "rollback":
		return first
	}
	return "other"
}

// PostgresTracer returns a tracer that measures the statements of a pool, or nil if m is nil.
func (m *Metrics) PostgresTracer() pgx.QueryTracer {
	if m == nil {
		return nil
	}
	return m.postgres
}
