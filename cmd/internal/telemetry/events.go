package telemetry

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"commerce/auth/lastknown"
	"commerce/auth/problem"
	"commerce/cart/price"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/wire"
	"commerce/deploy/inspect"
)

type request struct {
	method, route string
	status        int
}

// RequestBegan counts a request in flight. Call RequestEnded when it ends.
func (m *Metrics) RequestBegan() { m.inFlight.Inc() }

// RequestEnded counts a response. route is the route pattern, never a path. traceID, unless it is empty,
// becomes an exemplar.
func (m *Metrics) RequestEnded(method, route string, status int, took time.Duration, traceID string) {
	m.inFlight.Dec()
	if !wire.StandardMethod(method) {
		method = "other"
	}
	series := m.requestSeries.GetOrPut(request{method, route, status}, func() prometheus.Observer {
		return m.requests.WithLabelValues(method, route, strconv.Itoa(status))
	})
	if traceID == "" {
		series.Observe(took.Seconds())
	} else {
		series.(prometheus.ExemplarObserver).ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": traceID})
	}
}

// Failed counts an error response. route is the route pattern, or "" if no route matched.
func (m *Metrics) Failed(method, route string, status int, p *problem.Error) {
	switch p.Code {
	case problem.Unauthenticated:
		m.badCredentials.WithLabelValues(cmp.Or(p.Kind, "other")).Inc()
	case problem.IdempotencyConflict, problem.VersionMismatch:
		m.conflicts.WithLabelValues(string(p.Code)).Inc()
	}
	if p.Budget.Name != "" {
		m.Refused(p.Budget.Name)
	}
	if route != "" && method != http.MethodGet && status < http.StatusInternalServerError { // only carts can be changed
		m.cartRefusals.WithLabelValues(route, string(p.Code)).Inc()
	}
}

// Refused counts a request that a limit refused, by a name that the program chose for it.
func (m *Metrics) Refused(limit string) { m.limited.WithLabelValues(limit).Inc() }

// CartEvents returns functions that count the events of carts.
func (m *Metrics) CartEvents() service.Events {
	return service.Events{
		Created: countsAs(m.created, "customer", "guest"),
		Merged: func(outcome service.MergeOutcome, took time.Duration) {
			m.merges.WithLabelValues(string(outcome)).Inc()
			m.mergeDuration.Observe(took.Seconds())
		},
		Replicated: countsAs(m.replicated, "confirmed", "unconfirmed"),
		Validated: func(v *price.Validation) {
			for _, issue := range slices.Concat(v.Issues, v.Warnings) {
				m.issues.WithLabelValues(string(issue.Code)).Inc()
			}
		},
	}
}

// Streams counts a stream of a cart that begins, with 1, or ends, with -1.
func (m *Metrics) Streams(change int) { m.streams.Add(float64(change)) }

func countsAs(counter *prometheus.CounterVec, ifTrue, ifFalse string) func(bool) {
	counters := map[bool]prometheus.Counter{
		true: counter.WithLabelValues(ifTrue), false: counter.WithLabelValues(ifFalse),
	}
	return func(is bool) { counters[is].Inc() }
}

// Replayed counts a repeat of a change that an earlier request made.
func (m *Metrics) Replayed() { m.replays.Inc() }

// PublishFailed counts a change of a cart that Redis refused to announce.
func (m *Metrics) PublishFailed() { m.publishFailures.Inc() }

// ReplyLost counts a commit whose reply was lost or slow, by what was learned of it.
func (m *Metrics) ReplyLost(settled redisstore.Settled) {
	m.lostReplies.WithLabelValues(string(settled)).Inc()
}

// CatalogChangeShown counts the load of a changed value, of a cache as in ObserveCatalog.
func (m *Metrics) CatalogChangeShown(of string, delay time.Duration) {
	m.changeDelay.WithLabelValues(of).Observe(delay.Seconds())
}

// ObserveCatalog adds the metrics of the cache that of names. Each scrape calls stats.
func (m *Metrics) ObserveCatalog(of string, stats func() lastknown.Stats) {
	m.changeDelay.WithLabelValues(of)
	for result, count := range map[string]func(lastknown.Stats) uint64{
		"fresh":   func(s lastknown.Stats) uint64 { return s.Fresh },
		"waited":  func(s lastknown.Stats) uint64 { return s.Waited },
		"stale":   func(s lastknown.Stats) uint64 { return s.Stale },
		"missing": func(s lastknown.Stats) uint64 { return s.Missing },
		"failed":  func(s lastknown.Stats) uint64 { return s.Failed },
	} {
		m.registry.counter("commerce_catalog_lookups_total", "Values that requests looked up in a cache. fresh: from memory. waited: loaded from Postgres. "+
			"stale: the last known value, because Postgres did not answer in time. missing: does not exist. failed: no value is known, a 503.",
			prometheus.Labels{"of": of, "result": result}, func() float64 { return float64(count(stats())) })
	}
	m.registry.gauge("commerce_catalog_oldest_served_seconds", "Age of the oldest value that the cache served in the last minute. Normal: up to 1 second, 60 for coupon_uses.",
		prometheus.Labels{"of": of}, func() float64 { return stats().Oldest.Seconds() })
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

func (m *Metrics) ServersChecked(findings []inspect.Finding) {
	servers, connected := map[[2]string]float64{}, math.MaxInt
	for _, f := range findings {
		servers[[2]string{f.Code, string(f.Level)}]++
		if f.Code == "redis_replicas" && f.Level != inspect.Unknown {
			connected = min(connected, f.Connected)
		}
	}
	for _, code := range inspect.Codes() {
		for _, level := range inspect.Levels() {
			m.findings.WithLabelValues(code, string(level)).Set(servers[[2]string{code, string(level)}])
		}
	}
	if connected != math.MaxInt {
		m.redisReplicas.WithLabelValues().Set(float64(connected))
	}
}

// ReplicaChecked records the result of a check of a replica. name is its address in the settings.
func (m *Metrics) ReplicaChecked(name string, up bool, lag time.Duration) {
	m.replicaUp.WithLabelValues(name).Set(oneIf(up))
	m.replicaLag.WithLabelValues(name).Set(lag.Seconds())
}

// SubscriptionsRead counts a read by the kind of its server: "primary" or "replica".
func (m *Metrics) SubscriptionsRead(server string) { m.subscriptionReads.WithLabelValues(server).Inc() }
