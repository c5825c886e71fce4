package torture

import (
	"strings"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// Shoppers fill guests' carts and log in, on several devices and with shared tokens. Meanwhile
// nodes of a cluster die, hang, lose their replicas and exchange slots, and instances are
// killed. Each change must count exactly once. Only a failover may lose a change, and only an
// unconfirmed one.
func TestPromise03_AMergeNeitherLosesNorDoublesALine(t *testing.T) {
	t.Parallel()
	p := promised(t, 3, "a merge never loses or doubles a line", "0 wrong of 100,000 merges")
	l, f := startFaultyCluster(t, p)
	wanted := sized[int64](300, 100_000)
	began := time.Now()
	f.during(l.shop(sized(32, 128), (*visit).make), "merges", wanted, l.merged.Load)
	took := time.Since(began)
	l.recount(f.failedOver)
	p.counted("merges", l.merged.Load())
	p.counted("wrong", l.wrong.Load())
	p.counted("changes", l.changes.Load())
	p.counted("lost unconfirmed", l.lost.Load())
	p.counted("given to both customers of a token by a failover", l.twice.Load())
	p.detail("rate", float64(l.merged.Load())/took.Seconds(), "merges/s")
	l.tried()
	f.report()
}

// startFaultyCluster starts a cluster, two instances that wait for replicas, and a load. No shopper visits and no
// fault happens yet.
func startFaultyCluster(t *testing.T, p *promise) (*load, *faults) {
	const ahead = 2 * time.Second
	// Each replica's clock differs from its master's, and masters' clocks differ too.
	cluster := ephemeral.StartCluster(t, 0, ahead, 0, ahead, 0, ahead)
	database := catalog(t)
	f := &faults{p: p, t: t, counts: map[string]int64{}}
	for range 2 {
		f.instances = append(f.instances, startService(t, "REDIS_URL="+cluster.URL, "DATABASE_URL="+database, "DURABILITY=replica", "HANDOVER_KEY="+strings.Repeat("k", 32)))
	}
	for _, server := range cluster.Nodes {
		f.nodes = append(f.nodes, nodeOf(server))
	}
	client := assert.Must(connect.Redis(cluster.URL, ephemeral.PatientRedis))(t)
	t.Cleanup(func() { _ = client.Close() })
	l := newLoad(p, alternating(t, f.instances), client)
	l.loses, l.stampPause = true, stampPause+ahead+150*time.Millisecond
	f.someKey = l.someKey
	return l, f
}
