package telemetry

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"commerce/cart"
	"commerce/cart/service"
)

// CartEvents returns functions that count the events of carts.
func (m *Metrics) CartEvents() service.Events {
	counted := countsAs(m.validations, "valid", "invalid")
	return service.Events{
		Created: countsAs(m.created, "customer", "guest"),
		Merged: func(outcome service.MergeOutcome, took time.Duration) {
			m.merges.WithLabelValues(string(outcome)).Inc()
			m.mergeDuration.Observe(took.Seconds())
		},
		Replicated: countsAs(m.replicated, "confirmed", "unconfirmed"),
		Validated: func(v *cart.Validation) {
			counted(v.Valid())
			for _, issue := range slices.Concat(v.Issues, v.Warnings) {
				m.issues.WithLabelValues(string(issue.Code)).Inc()
			}
		},
	}
}

// countsAs returns a function that counts true and false as values of a label.
func countsAs(counter *prometheus.CounterVec, ifTrue, ifFalse string) func(bool) {
	yes, no := counter.WithLabelValues(ifTrue), counter.WithLabelValues(ifFalse)
	return func(is bool) {
		if is {
			yes.Inc()
		} else {
			no.Inc()
		}
	}
}

// Replayed counts a repeat of a change that an earlier request made.
func (m *Metrics) Replayed() {
	m.replays.Inc()
}
