package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// redisPool returns the metrics of a client's pools, summed over all nodes. They are read at
// each scrape.
func redisPool(client redis.UniversalClient) []prometheus.Collector {
	connections := func(state string, count func(*redis.PoolStats) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "commerce_redis_pool_connections",
			Help:        "Connections to Redis now, of all nodes together.",
			ConstLabels: prometheus.Labels{"state": state},
		}, func() float64 { return count(client.PoolStats()) })
	}
	return []prometheus.Collector{
		connections("idle", func(s *redis.PoolStats) float64 { return float64(s.IdleConns) }),
		connections("used", func(s *redis.PoolStats) float64 {
			return max(float64(s.TotalConns)-float64(s.IdleConns), 0) // go-redis does not count them at the same moment
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "commerce_redis_pool_waits_total",
			Help: "Redis commands that waited for a connection to become free.",
		}, func() float64 { return float64(client.PoolStats().WaitCount) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "commerce_redis_pool_timeouts_total",
			Help: "Redis commands for which no connection became free in time.",
		}, func() float64 { return float64(client.PoolStats().Timeouts) }),
	}
}
