package telemetry

import (
	"strconv"
	"time"

	"commerce/cart/wire"

	"github.com/prometheus/client_golang/prometheus"
)

// requests are the metrics of the API's requests.
type requests struct {
	took     *prometheus.HistogramVec
	series   memo[request, prometheus.Observer] // series of took
	inFlight prometheus.Gauge
}

// request are the label values of one request.
type request struct {
	method, route string
	status        int
}

func newRequests() *requests {
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "commerce_http_request_duration_seconds",
		Help:    "Time to answer a request, by route pattern.",
		Buckets: []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"method", "route", "status"})
	return &requests{
		took: took,
		series: memo[request, prometheus.Observer]{make: func(r request) prometheus.Observer {
			return took.WithLabelValues(r.method, r.route, strconv.Itoa(r.status))
		}},
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "commerce_http_requests_in_flight",
			Help: "Requests that are being answered now.",
		}),
	}
}

// RequestBegan counts a request in flight. Call RequestEnded when it ends.
func (m *Metrics) RequestBegan() {
	if m != nil {
		m.requests.inFlight.Inc()
	}
}

// RequestEnded counts a response. route is the route pattern, never a path.
func (m *Metrics) RequestEnded(method, route string, status int, took time.Duration) {
	if m == nil {
		return
	}
	m.requests.inFlight.Dec()
	if !wire.StandardMethod(method) {
		method = "other"
	}
	m.requests.series.of(request{method, route, status}).Observe(took.Seconds())
}
