package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"commerce/auth/lastknown"
)

func newChangeDelay() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "commerce_catalog_change_delay_seconds",
		Help: "Time from the first request that needs a value after a notification of a change, " +
			"until this instance has loaded it.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"of"})
}

// CatalogChangeShown counts the load of a changed value. of is the name of the cache, as for
// ObserveCatalog.
func (m *Metrics) CatalogChangeShown(of string, delay time.Duration) {
	if m != nil {
		m.changeDelay.WithLabelValues(of).Observe(delay.Seconds())
	}
}

// ObserveCatalog adds the metrics of a catalog cache. stats is called at each scrape. of is the
// name of the cache, and its label value.
func (m *Metrics) ObserveCatalog(of string, stats func() lastknown.Stats) {
	if m == nil {
		return
	}
	m.changeDelay.WithLabelValues(of)
	m.registry.MustRegister(catalogCache(of, stats)...)
}

func catalogCache(of string, stats func() lastknown.Stats) []prometheus.Collector {
	lookups := func(result string, count func(lastknown.Stats) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "commerce_catalog_lookups_total",
			Help:        "Values that requests needed, by what was served.",
			ConstLabels: prometheus.Labels{"of": of, "result": result},
		}, func() float64 { return float64(count(stats())) })
	}
	return []prometheus.Collector{
		lookups("fresh", func(s lastknown.Stats) uint64 { return s.Fresh }),
		lookups("waited", func(s lastknown.Stats) uint64 { return s.Waited }),
		lookups("stale", func(s lastknown.Stats) uint64 { return s.Stale }),
		lookups("missing", func(s lastknown.Stats) uint64 { return s.Missing }),
		lookups("failed", func(s lastknown.Stats) uint64 { return s.Failed }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "commerce_catalog_oldest_served_seconds",
			Help:        "Age of the oldest value that was served in the last minute.",
			ConstLabels: prometheus.Labels{"of": of},
		}, func() float64 { return stats().Oldest.Seconds() }),
	}
}
