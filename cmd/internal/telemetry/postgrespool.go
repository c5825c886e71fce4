package telemetry

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// ObservePool adds the metrics of a pool, which are read at each scrape. name is the name of
// the pool, and its label value.
func (m *Metrics) ObservePool(name string, pool *pgxpool.Pool) {
	if m != nil {
		m.registry.MustRegister(postgresPool(name, pool.Stat)...)
	}
}

func postgresPool(name string, stat func() *pgxpool.Stat) []prometheus.Collector {
	connections := func(state string, count func(*pgxpool.Stat) int32) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "commerce_postgres_pool_connections",
			Help:        "Connections to Postgres now, by pool.",
			ConstLabels: prometheus.Labels{"pool": name, "state": state},
		}, func() float64 { return float64(count(stat())) })
	}
	of := prometheus.Labels{"pool": name}
	return []prometheus.Collector{
		connections("idle", (*pgxpool.Stat).IdleConns),
		connections("used", (*pgxpool.Stat).AcquiredConns),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "commerce_postgres_pool_max_connections", Help: "Maximum size of a Postgres pool.", ConstLabels: of,
		}, func() float64 { return float64(stat().MaxConns()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "commerce_postgres_pool_waits_total", ConstLabels: of,
			Help: "Waits for a connection to become free or to be opened, by pool.",
		}, func() float64 { return float64(stat().EmptyAcquireCount()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "commerce_postgres_pool_wait_seconds_total", ConstLabels: of,
			Help: "Time of these waits, by pool.",
		}, func() float64 { return stat().EmptyAcquireWaitTime().Seconds() }),
	}
}
