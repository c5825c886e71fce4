package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"commerce/auth/lastknown"
)

// CatalogChangeShown counts the load of a changed value. of is the name of the cache, as for
// ObserveCatalog.
func (m *Metrics) CatalogChangeShown(of string, delay time.Duration) {
	m.changeDelay.WithLabelValues(of).Observe(delay.Seconds())
}

// ObserveCatalog adds the metrics of a catalog cache. stats is called at each scrape. of is the
// name of the cache, and its label value.
func (m *Metrics) ObserveCatalog(of string, stats func() lastknown.Stats) {
	m.changeDelay.WithLabelValues(of)
	for result, count := range map[string]func(lastknown.Stats) uint64{
		"fresh":   func(s lastknown.Stats) uint64 { return s.Fresh },
		"waited":  func(s lastknown.Stats) uint64 { return s.Waited },
		"stale":   func(s lastknown.Stats) uint64 { return s.Stale },
		"missing": func(s lastknown.Stats) uint64 { return s.Missing },
		"failed":  func(s lastknown.Stats) uint64 { return s.Failed },
	} {
		m.registry.counter("commerce_catalog_lookups_total", "Values that requests needed, by what was served.",
			prometheus.Labels{"of": of, "result": result}, func() float64 { return float64(count(stats())) })
	}
	m.registry.gauge("commerce_catalog_oldest_served_seconds", "Age of the oldest value that was served in the last minute.",
		prometheus.Labels{"of": of}, func() float64 { return stats().Oldest.Seconds() })
}
