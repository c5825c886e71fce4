package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"commerce/cart"
	"commerce/cart/service"
)

// carts are the metrics of carts.
type carts struct {
	created       *prometheus.CounterVec
	merges        *prometheus.CounterVec
	mergeDuration prometheus.Histogram
	replicated    *prometheus.CounterVec
	validations   *prometheus.CounterVec
	issues        *prometheus.CounterVec
	replays       prometheus.Counter
}

func newCarts() *carts {
	counters := func(name, help, label string, values ...string) *prometheus.CounterVec {
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		for _, value := range values {
			vec.WithLabelValues(value)
		}
		return vec
	}
	return &carts{
		created: counters("commerce_carts_created_total", "Carts that a change created.", "owner", "guest", "customer"),
		merges: counters("commerce_merges_total", "Attempts to merge a guest's cart into a customer's.", "outcome",
			string(service.MergeDone), string(service.MergeCut), string(service.MergeFull),
			string(service.MergePostponed), string(service.MergeNothing)),
		mergeDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "commerce_merge_duration_seconds",
			Help:    "Time of an attempt to merge, with any outcome.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}),
		replicated:  counters("commerce_replicated_changes_total", "Changes that waited for all replicas of Redis, by result.", "result", "confirmed", "unconfirmed"),
		validations: counters("commerce_cart_validations_total", "Validations of carts.", "result", "valid", "invalid"),
		issues:      counters("commerce_cart_validation_issues_total", "Issues and warnings that validations found.", "code"),
		replays: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "commerce_idempotent_replays_total",
			Help: "Changes that an earlier request had made, recognized by Idempotency-Key or X-Timestamp.",
		}),
	}
}

func (c *carts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.created, c.merges, c.mergeDuration, c.replicated, c.validations, c.issues, c.replays}
}

// CartEvents returns functions that count the events of carts.
func (m *Metrics) CartEvents() service.Events {
	if m == nil {
		return service.Events{}
	}
	guests, customers := m.carts.created.WithLabelValues("guest"), m.carts.created.WithLabelValues("customer")
	confirmed, unconfirmed := m.carts.replicated.WithLabelValues("confirmed"), m.carts.replicated.WithLabelValues("unconfirmed")
	return service.Events{
		Created: func(customer bool) {
			if customer {
				customers.Inc()
			} else {
				guests.Inc()
			}
		},
		Merged: func(outcome service.MergeOutcome, took time.Duration) {
			m.carts.merges.WithLabelValues(string(outcome)).Inc()
			m.carts.mergeDuration.Observe(took.Seconds())
		},
		Replicated: func(all bool) {
			if all {
				confirmed.Inc()
			} else {
				unconfirmed.Inc()
			}
		},
		Validated: m.carts.validated,
	}
}

func (c *carts) validated(v *cart.Validation) {
	result := "invalid"
	if v.Valid() {
		result = "valid"
	}
	c.validations.WithLabelValues(result).Inc()
	for _, found := range [][]cart.LineIssue{v.Issues, v.Warnings} {
		for _, issue := range found {
			c.issues.WithLabelValues(string(issue.Code)).Inc()
		}
	}
}

// Replayed counts a repeat of a change that an earlier request made.
func (m *Metrics) Replayed() {
	if m != nil {
		m.carts.replays.Inc()
	}
}
