package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
)

func newLimiterRefusals() *prometheus.CounterVec {
	refusals := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "commerce_limiter_refusals_total",
		Help: "Requests that a limit refused with 429 or 503, by limit.",
	}, []string{"limit"})
	for _, limit := range []string{"reads", "changes", "create", "credentials", "api_tokens", "coupons", "in_flight"} {
		refusals.WithLabelValues(limit)
	}
	return refusals
}

// Refused counts a request that a limit refused. limit is a name that the program chooses, such
// as "reads".
func (m *Metrics) Refused(limit string) {
	if m != nil {
		m.refusals.WithLabelValues(limit).Inc()
	}
}
