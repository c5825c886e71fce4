package telemetry

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"commerce/auth"
	"commerce/auth/bounded"
	"commerce/auth/problem"
	"commerce/cart/wire"

	"github.com/prometheus/client_golang/prometheus"
)

// requests are the metrics of the API's requests.
type requests struct {
	took     *prometheus.HistogramVec
	series   *bounded.Cache[request, prometheus.Observer] // of took; faster than Prometheus's own lookup
	inFlight prometheus.Gauge
}

// request are the label values of one request.
type request struct {
	method, route string
	status        int
}

// maxSeries is more than the program's routes, methods and statuses need.
const maxSeries = 10_000

func newRequests(r registry) requests {
	return requests{
		took: r.histograms("commerce_http_request_duration_seconds", "Time to answer a request, by route pattern.",
			[]float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}, "method", "route", "status"),
		series:   bounded.New[request, prometheus.Observer](maxSeries, nil),
		inFlight: r.NewGauge(prometheus.GaugeOpts{Name: "commerce_http_requests_in_flight", Help: "Requests that are being answered now."}),
	}
}

// RequestBegan counts a request in flight. Call RequestEnded when it ends.
func (m *Metrics) RequestBegan() {
	m.requests.inFlight.Inc()
}

// RequestEnded counts a response. route is the route pattern, never a path.
func (m *Metrics) RequestEnded(method, route string, status int, took time.Duration) {
	m.requests.inFlight.Dec()
	if !wire.StandardMethod(method) {
		method = "other"
	}
	m.requests.series.GetOrPut(request{method, route, status}, func() prometheus.Observer {
		return m.requests.took.WithLabelValues(method, route, strconv.Itoa(status))
	}).Observe(took.Seconds())
}

// refusals are the metrics of error responses.
type refusals struct{ ofCarts, conflicts, credentials, limits *prometheus.CounterVec }

func newRefusals(r registry) refusals {
	return refusals{
		ofCarts: r.NewCounterVec(prometheus.CounterOpts{
			Name: "commerce_cart_refusals_total",
			Help: "Changes of carts that were refused with a 4xx, by route pattern and error code.",
		}, []string{"route", "code"}),
		conflicts: r.counters("commerce_conflicts_total", "Changes whose Idempotency-Key or If-Match did not fit, by error code.",
			"code", string(problem.IdempotencyConflict), string(problem.VersionMismatch)),
		credentials: r.counters("commerce_bad_credentials_total",
			"Requests whose access token or API token was refused, by what is wrong with it.", "kind", auth.CredentialKinds()...),
		limits: r.counters("commerce_limiter_refusals_total", "Requests that a limit refused with 429 or 503, by limit.",
			"limit", "reads", "changes", "create", "credentials", "api_tokens", "coupons", "in_flight"),
	}
}

// Failed counts an error response. route is the route pattern, or "" if no route matched.
func (m *Metrics) Failed(method, route string, status int, p *problem.Error) {
	switch p.Code {
	case problem.Unauthenticated:
		m.refusals.credentials.WithLabelValues(cmp.Or(p.Kind, "other")).Inc()
	case problem.IdempotencyConflict, problem.VersionMismatch:
		m.refusals.conflicts.WithLabelValues(string(p.Code)).Inc()
	case problem.RateLimited:
		m.Refused(p.Budget.Name)
	}
	if route != "" && method != http.MethodGet && status < http.StatusInternalServerError { // only carts can be changed
		m.refusals.ofCarts.WithLabelValues(route, string(p.Code)).Inc()
	}
}

// Refused counts a request that a limit refused. limit is a name that the program chooses, such
// as "reads".
func (m *Metrics) Refused(limit string) {
	m.refusals.limits.WithLabelValues(limit).Inc()
}
