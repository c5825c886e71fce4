package telemetry

import (
	"cmp"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"commerce/auth"
	"commerce/auth/problem"
)

// problems are the metrics of error responses.
type problems struct {
	refusals    *prometheus.CounterVec
	conflicts   *prometheus.CounterVec
	credentials *prometheus.CounterVec
}

func newProblems() *problems {
	p := &problems{
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "commerce_cart_refusals_total",
			Help: "Changes of carts that were refused with a 4xx, by route pattern and error code.",
		}, []string{"route", "code"}),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "commerce_conflicts_total",
			Help: "Changes whose Idempotency-Key or If-Match did not fit, by error code.",
		}, []string{"code"}),
		credentials: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "commerce_bad_credentials_total",
			Help: "Requests whose access token or API token was refused, by what is wrong with it.",
		}, []string{"kind"}),
	}
	for _, code := range []problem.Code{problem.IdempotencyConflict, problem.VersionMismatch} {
		p.conflicts.WithLabelValues(string(code))
	}
	for _, kind := range auth.CredentialKinds() {
		p.credentials.WithLabelValues(kind)
	}
	return p
}

// Failed counts an error response. route is the route pattern, or "" if no route matched.
func (m *Metrics) Failed(method, route string, status int, p *problem.Error) {
	if m == nil {
		return
	}
	switch p.Code {
	case problem.Unauthenticated:
		m.problems.credentials.WithLabelValues(cmp.Or(p.Kind, "other")).Inc()
	case problem.IdempotencyConflict, problem.VersionMismatch:
		m.problems.conflicts.WithLabelValues(string(p.Code)).Inc()
	case problem.RateLimited:
		m.Refused(p.Budget.Name)
	}
	if route != "" && method != http.MethodGet && status < http.StatusInternalServerError { // only carts can be changed
		m.problems.refusals.WithLabelValues(route, string(p.Code)).Inc()
	}
}
