package torture

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

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
	m := startMerges(t, p)
	stop := m.shop((*visit).make)
	defer stop()
	f := startFaults(m)
	defer f.end()
	bar := p.progress("merges", int(m.wanted))
	limit := ephemeral.Patience(sized(2*time.Minute, 10*time.Minute))
	began := time.Now()
	for (m.merged.Load() < m.wanted || !f.complete()) && time.Since(began) < limit {
		f.next()
		_ = bar.Set(int(min(m.wanted, m.merged.Load())))
	}
	took := time.Since(began)
	f.end()
	stop()
	m.recount(f)
	m.report(took)
	f.report()
}

type merges struct {
	p         *promise
	t         *testing.T
	cluster   *ephemeral.RedisCluster
	redis     redis.UniversalClient // sees claimed carts, which no response shows
	instances []*service
	calls     atomic.Int64 // which alternate between the instances
	client    *shopper
	wanted    int64

	merged, changes, unknown, repeats, lost, twice, wrong atomic.Int64
	reported                                              sync.Map // the IDs of the merges in merged

	over    atomic.Bool // no further visits begin
	current []atomic.Pointer[visit]
	mu      sync.Mutex
	visits  []*visit // that have ended
}

func startMerges(t *testing.T, p *promise) *merges {
	const ahead = 2 * time.Second
	m := &merges{
		p: p, t: t, wanted: sized[int64](300, 100_000),
		// Each replica's clock differs from its master's, and masters' clocks differ too.
		cluster: ephemeral.StartCluster(t, 0, ahead, 0, ahead, 0, ahead),
		current: make([]atomic.Pointer[visit], sized(32, 128)),
	}
	database := catalog(t)
	for range 2 {
		m.instances = append(m.instances, startService(t, "REDIS_URL="+m.cluster.URL, "DATABASE_URL="+database, "DURABILITY=replica", "HANDOVER_KEY="+strings.Repeat("k", 32)))
	}
	client := assert.Must(connect.Redis(m.cluster.URL, ephemeral.PatientRedis))(t)
	t.Cleanup(func() { _ = client.Close() })
	m.redis = client
	m.client = shopperAt(t, func() string { return m.instances[m.calls.Add(1)%2].URL() })
	return m
}

// shop lets shoppers visit until the returned function, which waits for the last visits.
func (m *merges) shop(visit func(*visit)) (stop func()) {
	var all sync.WaitGroup
	for i := range m.current {
		all.Go(func() {
			for n := 0; !m.over.Load(); n++ {
				v := m.newVisit(fmt.Sprintf("%d-%d", i, n))
				m.current[i].Store(v)
				visit(v)
			}
		})
	}
	return func() {
		m.over.Store(true)
		all.Wait()
	}
}

func (m *merges) keep(v *visit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.visits = append(m.visits, v)
}

// recount compares all carts again after all faults. A guest's cart may go to a second customer
// with the same token only if a failover lost the first claim before replicas had it.
func (m *merges) recount(f *faults) {
	var all errgroup.Group
	all.SetLimit(16)
	for _, v := range m.visits {
		all.Go(func() error {
			v.compare("after all faults")
			m.lost.Add(v.lost)
			m.twice.Add(v.twice)
			if v.twice > 0 && !f.failedOver(v.began, v.ended) {
				v.isWrong(fmt.Sprintf("without a failover: two customers got %d changes of one token", v.twice))
			}
			return nil
		})
	}
	_ = all.Wait()
}

func (m *merges) report(took time.Duration) {
	p := m.p
	p.counted("merges", m.merged.Load())
	p.counted("wrong", m.wrong.Load())
	p.counted("changes", m.changes.Load())
	p.counted("lost unconfirmed", m.lost.Load())
	p.counted("given to both customers of a token by a failover", m.twice.Load())
	p.detail("outcomes unknown at first", float64(m.unknown.Load()), "")
	p.detail("repeats recognized", float64(m.repeats.Load()), "")
	p.detail("rate", float64(m.merged.Load()*10/max(1, int64(took.Seconds())))/10, "merges/s")
	n := m.merged.Load()
	assert.That(p.t, n >= m.wanted, "only %d merges in %v, want %d", n, took, m.wanted)
	assert.That(p.t, m.unknown.Load() != 0 && m.repeats.Load() != 0,
		"no outcome was unknown, or no repeat was recognized, so the test shows nothing")
}

func (m *merges) someKey() string {
	for range 1000 {
		if v := m.current[rand.IntN(len(m.current))].Load(); v != nil {
			keys := v.keys()
			return keys[rand.IntN(len(keys))]
		}
		time.Sleep(10 * time.Millisecond)
	}
	m.t.Fatal("no visit has begun")
	return ""
}
