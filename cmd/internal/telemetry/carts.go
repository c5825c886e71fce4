package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"commerce/cart"
	"commerce/cart/service"
)

// carts are the metrics of carts.
type carts struct {
	created, merges, replicated, validations, issues *prometheus.CounterVec

	mergeDuration prometheus.Histogram
	replays       prometheus.Counter
}

func newCarts(r registry) carts {
	return carts{
		created: r.counters("commerce_carts_created_total", "Carts that a change created.", "owner", "guest", "customer"),
		merges: r.counters("commerce_merges_total", "Attempts to merge a guest's cart into a customer's.", "outcome",
			string(service.MergeDone), string(service.MergeCut), string(service.MergeFull),
			string(service.MergePostponed), string(service.MergeNothing)),
		replicated:  r.counters("commerce_replicated_changes_total", "Changes that waited for all replicas of Redis, by result.", "result", "confirmed", "unconfirmed"),
		validations: r.counters("commerce_cart_validations_total", "Validations of carts.", "result", "valid", "invalid"),
		issues:      r.counters("commerce_cart_validation_issues_total", "Issues and warnings that validations found.", "code"),
		mergeDuration: r.NewHistogram(prometheus.HistogramOpts{
			Name:    "commerce_merge_duration_seconds",
			Help:    "Time of an attempt to merge, with any outcome.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}),
		replays: r.NewCounter(prometheus.CounterOpts{
			Name: "commerce_idempotent_replays_total",
			Help: "Changes that an earlier request had made, recognized by Idempotency-Key or X-Timestamp.",
		}),
	}
}

// CartEvents returns functions that count the events of carts.
func (m *Metrics) CartEvents() service.Events {
	return service.Events{
		Created: countsAs(m.carts.created, "customer", "guest"),
		Merged: func(outcome service.MergeOutcome, took time.Duration) {
			m.carts.merges.WithLabelValues(string(outcome)).Inc()
			m.carts.mergeDuration.Observe(took.Seconds())
		},
		Replicated: countsAs(m.carts.replicated, "confirmed", "unconfirmed"),
		Validated:  m.carts.validated,
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

func (c *carts) validated(v *cart.Validation) {
	countsAs(c.validations, "valid", "invalid")(v.Valid())
	for _, found := range [][]cart.LineIssue{v.Issues, v.Warnings} {
		for _, issue := range found {
			c.issues.WithLabelValues(string(issue.Code)).Inc()
		}
	}
}

// Replayed counts a repeat of a change that an earlier request made.
func (m *Metrics) Replayed() {
	m.carts.replays.Inc()
}
