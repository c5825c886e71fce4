package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// replicas measures reads from Postgres replicas.
type replicas struct {
	up, lag *prometheus.GaugeVec
	reads   *prometheus.CounterVec
	served  map[string]prometheus.Counter // by the kind of server; series of reads
}

func newReplicas() *replicas {
	r := &replicas{
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "commerce_postgres_replica_up",
			Help: "Whether a Postgres replica serves reads by its latest check: 1 or 0.",
		}, []string{"replica"}),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "commerce_postgres_replica_lag_seconds",
			Help: "Age of the rows that a Postgres replica shows, by its latest check that succeeded.",
		}, []string{"replica"}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "commerce_subscription_reads_total",
			Help: "Reads of subscriptions that a Postgres server answered, by server: primary or replica.",
		}, []string{"server"}),
		served: map[string]prometheus.Counter{},
	}
	for _, server := range []string{"primary", "replica"} {
		r.served[server] = r.reads.WithLabelValues(server)
	}
	return r
}

// ReplicaChecked records the result of a check of a replica. name is its address in the settings.
func (m *Metrics) ReplicaChecked(name string, up bool, lag time.Duration) {
	if m == nil {
		return
	}
	m.replicas.up.WithLabelValues(name).Set(oneIf(up))
	m.replicas.lag.WithLabelValues(name).Set(lag.Seconds())
}

// SubscriptionsRead counts a read by the kind of its server: "primary" or "replica".
func (m *Metrics) SubscriptionsRead(server string) {
	if m != nil {
		m.replicas.served[server].Inc()
	}
}
