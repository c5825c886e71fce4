package telemetry

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"commerce/auth/problem"
	"commerce/cart/wire"
)

// request are the label values of one request.
type request struct {
	method, route string
	status        int
}

// RequestBegan counts a request in flight. Call RequestEnded when it ends.
func (m *Metrics) RequestBegan() {
	m.inFlight.Inc()
}

// RequestEnded counts a response. route is the route pattern, never a path.
func (m *Metrics) RequestEnded(method, route string, status int, took time.Duration) {
	m.inFlight.Dec()
	if !wire.StandardMethod(method) {
		method = "other"
	}
	m.requestSeries.GetOrPut(request{method, route, status}, func() prometheus.Observer {
		return m.requests.WithLabelValues(method, route, strconv.Itoa(status))
	}).Observe(took.Seconds())
}

// Failed counts an error response. route is the route pattern, or "" if no route matched.
func (m *Metrics) Failed(method, route string, status int, p *problem.Error) {
	switch p.Code {
	case problem.Unauthenticated:
		m.badCredentials.WithLabelValues(cmp.Or(p.Kind, "other")).Inc()
	case problem.IdempotencyConflict, problem.VersionMismatch:
		m.conflicts.WithLabelValues(string(p.Code)).Inc()
	case problem.RateLimited:
		m.Refused(p.Budget.Name)
	}
	if route != "" && method != http.MethodGet && status < http.StatusInternalServerError { // only carts can be changed
		m.cartRefusals.WithLabelValues(route, string(p.Code)).Inc()
	}
}

// Refused counts a request that a limit refused. limit is a name that the program chooses, such
// as "reads".
func (m *Metrics) Refused(limit string) {
	m.limited.WithLabelValues(limit).Inc()
}
