package telemetry

import (
	"context"
	"errors"
	"strings"
	"time"

	"commerce/auth/bounded"
	"commerce/deploy/connect"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// postgresTracer measures the statements of all pools.
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
			"Time of a Postgres statement until its last row was read, without the wait for a connection.",
			[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, "statement"),
		series: bounded.New[string, prometheus.Observer](maxSeries, nil),
		failures: r.counters("commerce_postgres_errors_total",
			"Postgres statements, connections and waits for a connection that failed, by kind.", "kind", postgresKinds...),
	}
}

// PostgresTracer returns a tracer that measures the statements of a pool, or nil if m is nil.
func (m *Metrics) PostgresTracer() pgx.QueryTracer {
	if m == nil {
		return nil
	}
	return m.postgres
}

// statement is a statement in progress.
type statement struct {
	took  prometheus.Observer
	began time.Time
}

type statementKey struct{}

func (t postgresTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	name := statementName(data.SQL)
	took := t.series.GetOrPut(name, func() prometheus.Observer { return t.duration.WithLabelValues(name) })
	return context.WithValue(ctx, statementKey{}, statement{took, time.Now()})
}

func (t postgresTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if s, ok := ctx.Value(statementKey{}).(statement); ok {
		s.took.Observe(time.Since(s.began).Seconds())
	}
	t.count(postgresKind(data.Err))
}

func (postgresTracer) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

func (t postgresTracer) TraceConnectEnd(_ context.Context, data pgx.TraceConnectEndData) {
	t.count(postgresKind(data.Err))
}

func (postgresTracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	return ctx
}

// TraceAcquireEnd implements pgxpool.AcquireTracer. It counts only waits that timed out,
// because TraceConnectEnd counts the other failures.
func (t postgresTracer) TraceAcquireEnd(_ context.Context, _ *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	if errors.Is(data.Err, context.DeadlineExceeded) {
		t.count("pool_timeout")
	}
}

func (t postgresTracer) count(kind string) {
	if kind != "" {
		t.failures.WithLabelValues(kind).Inc()
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

// ObservePool adds the metrics of a pool, which are read at each scrape. name is the name of
// the pool, and its label value.
func (m *Metrics) ObservePool(name string, pool *pgxpool.Pool) {
	if m == nil {
		return
	}
	of, stat := prometheus.Labels{"pool": name}, pool.Stat
	const connections, now = "commerce_postgres_pool_connections", "Connections to Postgres now, by pool."
	m.registry.gauge(connections, now, prometheus.Labels{"pool": name, "state": "idle"}, func() float64 { return float64(stat().IdleConns()) })
	m.registry.gauge(connections, now, prometheus.Labels{"pool": name, "state": "used"}, func() float64 { return float64(stat().AcquiredConns()) })
	m.registry.gauge("commerce_postgres_pool_max_connections", "Maximum size of a Postgres pool.", of,
		func() float64 { return float64(stat().MaxConns()) })
	m.registry.counter("commerce_postgres_pool_waits_total", "Waits for a connection to become free or to be opened, by pool.", of,
		func() float64 { return float64(stat().EmptyAcquireCount()) })
	m.registry.counter("commerce_postgres_pool_wait_seconds_total", "Time of these waits, by pool.", of,
		func() float64 { return stat().EmptyAcquireWaitTime().Seconds() })
}

// replicas measures reads from Postgres replicas.
type replicas struct {
	up, lag *prometheus.GaugeVec
	reads   *prometheus.CounterVec
}

func newReplicas(r registry) replicas {
	return replicas{
		up: r.gauges("commerce_postgres_replica_up", "Whether a Postgres replica serves reads by its latest check: 1 or 0.", "replica"),
		lag: r.gauges("commerce_postgres_replica_lag_seconds",
			"Age of the rows that a Postgres replica shows, by its latest check that succeeded.", "replica"),
		reads: r.counters("commerce_subscription_reads_total",
			"Reads of subscriptions that a Postgres server answered, by server: primary or replica.", "server", "primary", "replica"),
	}
}

// ReplicaChecked records the result of a check of a replica. name is its address in the settings.
func (m *Metrics) ReplicaChecked(name string, up bool, lag time.Duration) {
	if m == nil {
		return
	}
	m.replicas.up.WithLabelValues(name).Set(oneIf(up))
	m.replicas.lag.WithLabelValues(name).Set(lag.Seconds())
}

// SubscriptionsRead counts a read by the kind of its server: "primary" or "replica".
func (m *Metrics) SubscriptionsRead(server string) {
	if m != nil {
		m.replicas.reads.WithLabelValues(server).Inc()
	}
}
