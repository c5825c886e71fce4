// Package telemetry has the service's Prometheus metrics: the registry, and the functions and
// hooks that the other packages report to. docs/operations.md lists all metrics. The hooks of Redis and
// Postgres also add the spans of traces.
//
// No label value comes from a caller. Each label has a fixed set of values, or the names of the
// program's routes, scripts and statements.
package telemetry

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"commerce/auth"
	"commerce/auth/bounded"
	"commerce/auth/problem"
	"commerce/cart/redisstore"
	"commerce/cart/service"
)

// Metrics holds all metrics of a process. It is safe for concurrent use.
type Metrics struct {
	registry registry
	redis    redisHook
	postgres postgresTracer

	inFlight      prometheus.Gauge
	requests      *prometheus.HistogramVec
	requestSeries *bounded.Cache[request, prometheus.Observer] // faster than Prometheus's own lookup

	badCredentials, limited, conflicts, cartRefusals *prometheus.CounterVec // error responses

	dependencies, replicaUp, replicaLag, findings, redisReplicas *prometheus.GaugeVec
	subscriptionReads                                            *prometheus.CounterVec
	changeDelay                                                  *prometheus.HistogramVec

	cartMetrics
}

type cartMetrics struct {
	created, merges, replicated, issues, lostReplies *prometheus.CounterVec
	mergeDuration                                    prometheus.Observer
	replays, publishFailures                         prometheus.Counter
	streams                                          prometheus.Gauge
}

// maxSeries is more than the program's routes, methods, statuses and statements need.
const maxSeries = 10_000

// New returns the metrics of a version of the program, with those of Go and the process.
func New(version string) *Metrics {
	all := prometheus.NewRegistry()
	r := registry{all, promauto.With(all)}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.gauge("commerce_build_info", "Always 1. The labels are the versions of the service and of Go.",
		prometheus.Labels{"version": version, "goversion": runtime.Version()}, func() float64 { return 1 })
	return &Metrics{
		registry: r,
		redis:    newRedisHook(r),
		postgres: newPostgresTracer(r),

		inFlight: r.gauges("commerce_http_requests_in_flight",
			"Requests in progress, without streams of events.").WithLabelValues(),
		requests: r.histograms("commerce_http_request_duration_seconds", "Time to answer a request, without wait. Status 499: the client disconnected "+
			"or sent its body too slowly. Route unmatched: unknown paths; refused: beyond the limits of overload or of streams.",
			[]float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
			"method", "route", "status"),
		requestSeries: bounded.New[request, prometheus.Observer](maxSeries, nil),

		badCredentials: fromZero(r.counters("commerce_bad_credentials_total",
			"Refused access and API tokens. docs/runbook.md explains the kinds, at CommerceTokensRefused.", "kind"),
			auth.CredentialKinds()...),
		limited: fromZero(r.counters("commerce_limiter_refusals_total",
			"Refused requests: by the budget of a client (429), by in_flight, the limit of requests in progress, or by the limit of streams of events (503).", "limit"),
			"reads", "changes", "create", "text", "credentials", "api_tokens", "coupons", "shares", "in_flight", "streams"),
		conflicts: fromZero(r.counters("commerce_conflicts_total",
			"Changes with an idempotency_conflict or a version_mismatch.", "code"),
			string(problem.IdempotencyConflict), string(problem.VersionMismatch)),
		cartRefusals: r.counters("commerce_cart_refusals_total",
			"Changes of carts refused with a 4xx, except operations that a list with each leaves out.", "route", "code"),

		dependencies: r.gauges("commerce_dependency_up",
			"1 if the latest check succeeded, otherwise 0: of redis, postgres, the role's rights in Postgres, its schema, or the fetch of keys from the issuer.",
			"dependency"),
		replicaUp: r.gauges("commerce_postgres_replica_up",
			"1 if the Postgres replica (host and port) serves reads, otherwise 0.", "replica"),
		replicaLag: r.gauges("commerce_postgres_replica_lag_seconds",
			"Age of the rows that the Postgres replica shows. It does not grow while the primary is down.", "replica"),
		findings: r.gauges("commerce_check_findings",
			"Findings of the latest check of the servers: see commerce check.", "code", "level"),
		redisReplicas: r.gauges("commerce_redis_connected_replicas",
			"Connected replicas of the Redis master that has the fewest."),
		subscriptionReads: fromZero(r.counters("commerce_subscription_reads_total",
			"Reads of lists, changes, summaries and monthly figures of subscriptions that the primary or a replica answered.", "server"),
			"primary", "replica"),
		changeDelay: r.histograms("commerce_catalog_change_delay_seconds",
			"Time to load a changed value of a cache, from the first request for it after the notification.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}, "of"),

		cartMetrics: newCartMetrics(r),
	}
}

func newCartMetrics(r registry) cartMetrics {
	return cartMetrics{
		created: r.counters("commerce_carts_created_total", "Carts that a change, not a merge, created for a guest or a customer.", "owner"),
		merges: fromZero(r.counters("commerce_merges_total",
			"Attempts to merge a guest's cart into a customer's. merged: complete. cut: complete, with quantities reduced to what can be bought. "+
				"full: the customer's cart has no room. postponed: a later request tries again, such as when replicas do not confirm. "+
				"nothing: merged already, or empty.", "outcome"),
			string(service.MergeDone), string(service.MergeCut), string(service.MergeFull),
			string(service.MergePostponed), string(service.MergeNothing)),
		replicated: r.counters("commerce_replicated_changes_total",
			"Changes with DURABILITY=replica. confirmed: all replicas have the change. unconfirmed: a failover can lose it.", "result"),
		issues: r.counters("commerce_cart_validation_issues_total",
			"Issues and warnings that validations found.", "code"),
		mergeDuration: r.histograms("commerce_merge_duration_seconds", "Time of an attempt to merge, with any outcome.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}).WithLabelValues(),
		streams: r.gauges("commerce_cart_streams", "Open streams of events. In other metrics, their requests end when the stream begins.").WithLabelValues(),
		replays: r.counters("commerce_idempotent_replays_total",
			"Recognized repeats of a change. If they rise, responses are late or lost.").
			WithLabelValues(),
		publishFailures: r.counters("commerce_cart_publish_failures_total",
			"Changes that Redis refused to announce to streams, which show them up to 20 seconds late.").WithLabelValues(),
		lostReplies: fromZero(r.counters("commerce_redis_lost_replies_total",
			"Commits whose reply from Redis was lost or slow. A read showed that they were made or not_made, or it is unknown: "+
				"a 504, or with an Idempotency-Key a 503.", "settled"),
			string(redisstore.SettledMade), string(redisstore.SettledNotMade), string(redisstore.SettledUnknown)),
	}
}

func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}) // has exemplars
}

// ObserveConnections exposes how many connections of clients are open, and how many can be. Call it once.
func (m *Metrics) ObserveConnections(open func() int, maximum int) {
	m.registry.gauge("commerce_http_connections", "Open connections of clients, also of streams of events.", nil,
		func() float64 { return float64(open()) })
	m.registry.gauge("commerce_http_max_connections", "Maximum of open connections, by file descriptors. Further clients wait.", nil,
		func() float64 { return float64(maximum) })
}

// ObserveLog exposes how many lines of the log were lost. Call it once.
func (m *Metrics) ObserveLog(lost func() uint64) {
	m.registry.counter("commerce_log_lines_lost_total", "Lines of the log that were lost, because its reader was too slow or had ended.",
		nil, func() float64 { return float64(lost()) })
}

type registry struct {
	*prometheus.Registry
	promauto.Factory
}

func (r registry) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return r.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// fromZero makes values of the label of a counter count from 0, instead of being absent until they occur.
func fromZero(counter *prometheus.CounterVec, values ...string) *prometheus.CounterVec {
	for _, value := range values {
		counter.WithLabelValues(value)
	}
	return counter
}

func (r registry) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return r.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func (r registry) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return r.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

func (r registry) gauge(name, help string, labels prometheus.Labels, value func() float64) {
	r.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value)
}

func (r registry) counter(name, help string, labels prometheus.Labels, value func() float64) {
	r.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, value)
}
