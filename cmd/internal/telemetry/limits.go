package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"commerce/cart/service"
)

func newLimiterRefusals() *prometheus.CounterVec {
	refusals := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "commerce_limiter_refusals_total",
		Help: "Requests that a limit refused with 429 or 503, by limit.",
	}, []string{"limit"})
	refusals.WithLabelValues(service.LimitCouponCodes)
	return refusals
}

// Refused counts a request that a limit refused. limit is a name in the program, such as
// "client".
func (m *Metrics) Refused(limit string) {
	if m != nil {
		m.refusals.WithLabelValues(limit).Inc()
	}
}
