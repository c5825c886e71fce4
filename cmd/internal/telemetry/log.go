package telemetry

import "github.com/prometheus/client_golang/prometheus"

// ObserveLog exposes how many lines of the log were lost. Call it once.
func (m *Metrics) ObserveLog(lost func() uint64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "commerce_log_lines_lost_total",
		Help: "Lines of the log that were lost, because its reader was too slow or had ended.",
	}, func() float64 { return float64(lost()) }))
}
