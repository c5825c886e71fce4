package telemetry

import "github.com/prometheus/client_golang/prometheus"

func newDependencies() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "commerce_dependency_up",
		Help: "Whether the latest check of a server that the service needs, or of what it needs there, succeeded: 1 or 0.",
	}, []string{"dependency"})
}

// DependencyUp records the result of a check of a dependency, such as "redis".
func (m *Metrics) DependencyUp(name string, up bool) {
	if m == nil {
		return
	}
	m.dependencies.WithLabelValues(name).Set(oneIf(up))
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
