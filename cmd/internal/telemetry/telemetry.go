// Package telemetry has the service's Prometheus metrics: the registry, and the functions and
// hooks that the other packages report to. docs/metrics.md lists all metrics.
//
// No label value comes from a caller. Each label has a fixed set of values, or the names of the
// program's routes, scripts and statements.
package telemetry

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics holds all metrics of a process. It is safe for concurrent use. A nil *Metrics counts
// nothing.
type Metrics struct {
	registry     *prometheus.Registry
	requests     *requests
	refusals     *prometheus.CounterVec
	dependencies *prometheus.GaugeVec
	redis        *redisHook
	postgres     *postgresTracer
	replicas     *replicas
	changeDelay  *prometheus.HistogramVec
	carts        *carts
	problems     *problems
}

// New returns the metrics of a program, including those of the Go runtime and the process.
// version is the version of the program.
func New(version string) *Metrics {
	m := &Metrics{
		registry:     prometheus.NewRegistry(),
		requests:     newRequests(),
		refusals:     newLimiterRefusals(),
		dependencies: newDependencies(),
		redis:        newRedisHook(),
		postgres:     newPostgresTracer(),
		replicas:     newReplicas(),
		changeDelay:  newChangeDelay(),
		carts:        newCarts(),
		problems:     newProblems(),
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo(version),
		m.requests.took, m.requests.inFlight, m.refusals, m.dependencies,
		m.redis.duration, m.redis.failures, m.postgres.duration, m.postgres.failures,
		m.replicas.up, m.replicas.lag, m.replicas.reads,
		m.changeDelay, m.problems.refusals, m.problems.conflicts, m.problems.credentials,
	)
	m.registry.MustRegister(m.carts.collectors()...)
	return m
}

// buildInfo returns a metric that is always 1 and has the versions as labels.
func buildInfo(version string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "commerce_build_info",
		Help:        "Always 1. The labels are the versions of the service and of Go.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	info.Set(1)
	return info
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
