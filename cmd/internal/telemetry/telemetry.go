// Package telemetry has the service's Prometheus metrics: the registry, and the functions and
// hooks that the other packages report to. docs/metrics.md lists all metrics. The hooks of Redis and
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
)

// Metrics holds all metrics of a process. It is safe for concurrent use.
type Metrics struct {
	registry     registry
	requests     requests
	refusals     refusals
	dependencies *prometheus.GaugeVec
	redis        redisHook
	postgres     postgresTracer
	replicas     replicas
	changeDelay  *prometheus.HistogramVec
	carts        carts
}

// New returns the metrics of a program, including those of the Go runtime and the process.
// version is the version of the program.
func New(version string) *Metrics {
	all := prometheus.NewRegistry()
	r := registry{all, promauto.With(all)}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.gauge("commerce_build_info", "Always 1. The labels are the versions of the service and of Go.",
		prometheus.Labels{"version": version, "goversion": runtime.Version()}, func() float64 { return 1 })
	return &Metrics{
		registry: r,
		requests: newRequests(r),
		refusals: newRefusals(r),
		dependencies: r.gauges("commerce_dependency_up",
			"Whether the latest check of a server that the service needs, or of what it needs there, succeeded: 1 or 0.", "dependency"),
		redis:       newRedisHook(r),
		postgres:    newPostgresTracer(r),
		replicas:    newReplicas(r),
		changeDelay: newChangeDelay(r),
		carts:       newCarts(r),
	}
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// DependencyUp records the result of a check of a dependency, such as "redis".
func (m *Metrics) DependencyUp(name string, up bool) {
	m.dependencies.WithLabelValues(name).Set(oneIf(up))
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// ObserveLog exposes how many lines of the log were lost. Call it once.
func (m *Metrics) ObserveLog(lost func() uint64) {
	m.registry.counter("commerce_log_lines_lost_total", "Lines of the log that were lost, because its reader was too slow or had ended.",
		nil, func() float64 { return float64(lost()) })
}

// registry makes and registers metrics.
type registry struct {
	*prometheus.Registry
	promauto.Factory
}

// counters returns a counter with one label. The given values of the label count from 0.
func (r registry) counters(name, help, label string, values ...string) *prometheus.CounterVec {
	vec := r.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, value := range values {
		vec.WithLabelValues(value)
	}
	return vec
}

func (r registry) gauges(name, help, label string) *prometheus.GaugeVec {
	return r.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label})
}

func (r registry) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return r.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// gauge adds a gauge whose value is read at each scrape.
func (r registry) gauge(name, help string, labels prometheus.Labels, value func() float64) {
	r.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value)
}

// counter adds a counter whose value is read at each scrape.
func (r registry) counter(name, help string, labels prometheus.Labels, value func() float64) {
	r.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, value)
}
