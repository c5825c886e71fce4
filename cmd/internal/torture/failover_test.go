package torture

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

type loss struct {
	name   string
	limit  time.Duration // of the outage; longer in the short form, which runs at the same time as other tests
	rounds int
	master func(*ephemeral.Server)
	beside func(*ephemeral.Server) // does the same to a server on the same machine
}

// A lost machine does not close its connections. A sentinel sends a ping every second, so it
// notices the loss up to a second later than a closed connection. The two remaining sentinels
// may each vote for itself. Then they try again after twice their failover-timeout, 4 s, and up
// to a random second.
func losses() []loss {
	return []loss{
		{"kill", ephemeral.Patience(sized(15*time.Second, 5*time.Second)), sized(1, 10), (*ephemeral.Server).Kill, func(*ephemeral.Server) {}},
		{"machine", ephemeral.Patience(sized(15*time.Second, 12*time.Second)), sized(0, 4), (*ephemeral.Server).Freeze, (*ephemeral.Server).Freeze},
	}
}

// Patrons use two instances to change and read carts on all shards while a master is lost, which happens to a new Redis
// in each round. One of the instances waits for replicas after each change.
func TestPromise07_ALostMasterHeals(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 7, "a lost cluster master or Sentinel primary heals", "outage at most 5 s in each of 20 kills")
	for name, start := range map[string]func(testing.TB) *replicatedRedis{
		"cluster": startReplicatedCluster, "sentinels": startReplicatedSentinels,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &failovers{p: p}
			for _, l := range losses() {
				bar := p.progress(name+", "+l.name, l.rounds)
				var outages []time.Duration
				for range l.rounds {
					t.Run(l.name, func(t *testing.T) { outages = append(outages, f.round(t, start(t), l)) })
					_ = bar.Add(1)
				}
				if slices.Sort(outages); len(outages) > 0 {
					p.counted("rounds, "+name+", "+l.name, int64(len(outages)))
					p.lasted("longest outage, "+name+", "+l.name, outages[len(outages)-1])
					p.detail("median outage, "+name+", "+l.name, milliseconds(outages[len(outages)/2]), "ms")
				}
			}
			if name == "cluster" { // sentinels have one shard
				p.counted("failures on other shards, "+name, f.elsewhere)
			}
			p.detail("changes, "+name, float64(f.changes), "")
			p.counted("lost confirmed, "+name, f.lostConfirmed)
			p.counted("lost unconfirmed, "+name, f.lostUnconfirmed)
			p.detail("slowest response, "+name, milliseconds(f.slowest), "ms")
		})
	}
}

// failovers is what the patrons of all rounds saw.
type failovers struct {
	p *promise

	elsewhere, elsewhereCalls      int64
	mu                             sync.Mutex
	changes                        int64
	lostConfirmed, lostUnconfirmed int64
	slowest                        time.Duration
}

// round makes the master of a shard fail while patrons visit, and checks which changes were
// lost. It returns how long a patron of the shard was not served.
func (f *failovers) round(t *testing.T, redis *replicatedRedis, l loss) (outage time.Duration) {
	t.Helper()
	at, patrons := rand.IntN(len(redis.shards)), f.patrons(t, redis)
	whileVisiting(t, patrons, func() {
		l.master(redis.shards[at].now().Server)
		if n := len(redis.beside); n > 0 {
			l.beside(redis.beside[rand.IntN(n)].Server)
		}
	})
	failed := 0
	for _, v := range patrons {
		f.slowest = max(f.slowest, v.slowest)
		if v.shard != at {
			f.elsewhere += int64(v.failed)
			f.elsewhereCalls += int64(v.calls)
			continue
		}
		failed += v.failed
		outage = max(outage, v.gap)
	}
	if failed == 0 {
		f.p.broke("a master was lost, but no call on its shard failed")
	}
	if outage > l.limit {
		f.p.broke("%s: a patron of the lost master was not served for %v, want at most %v", l.name, outage, l.limit)
	}
	// On a busy machine, a response may be late without any fault.
	if allowed := sized(f.elsewhereCalls/50, 0); f.elsewhere > allowed {
		f.p.broke("%d of %d calls on other shards failed", f.elsewhere, f.elsewhereCalls)
	}
	var all sync.WaitGroup
	for _, v := range patrons {
		all.Go(func() {
			for _, cart := range v.visits {
				f.compare(cart)
			}
		})
	}
	all.Wait()
	return outage
}

// compare counts what the master had lost, and repeats every change. The lost changes are made now, and
// the others are replayed. So each must count exactly once.
func (f *failovers) compare(v *visit) {
	found := tallyOf(v.bought, v.look())
	wrong := v.judge(found)
	f.mu.Lock()
	f.changes += int64(len(v.bought))
	for _, p := range found.lost {
		if p.confirmed {
			f.lostConfirmed++
		} else {
			f.lostUnconfirmed++
		}
	}
	f.mu.Unlock()
	for _, p := range v.bought {
		v.insist(p, v.guest)
	}
	after := tallyOf(v.bought, v.look())
	if wrong += v.judge(after); wrong != "" || v.lost > 0 {
		v.isWrong(fmt.Sprintf("%s\nafter all were repeated, %d are missing", wrong, v.lost))
	}
}

// patron visits one shard through one instance, and repeats refused calls with care.
type patron struct {
	buyer
	shard int

	made          atomic.Int64 // visits
	calls, failed int
	last          time.Time     // when it was served
	gap           time.Duration // the longest time without being served
	slowest       time.Duration // response
}

// patrons returns three patrons of each shard and instance. The names of their visits are such that their carts are on the shard.
func (f *failovers) patrons(t *testing.T, redis *replicatedRedis) (all []*patron) {
	database, load := catalog(t), newLoad(f.p, nil, nil)
	load.loses = true
	for instance, durability := range []string{"memory", "replica"} {
		client := newShopper(t, startService(t, "REDIS_URL="+redis.URL, "DATABASE_URL="+database, "DURABILITY="+durability))
		load.client = client
		for shard := range redis.shards {
			for i := range 3 {
				var names []string
				for n := 0; len(names) < 20; n++ {
					name := fmt.Sprintf("%d-%d-%d-%d", instance, shard, i, n)
					if redis.shardOf(guestKey(tokenOf(name))) == shard {
						names = append(names, name)
					}
				}
				all = append(all, &patron{buyer: buyer{load: load, client: client, name: func(cart int) string { return names[cart] }}, shard: shard})
			}
		}
	}
	return all
}

// hangs is how long no request may take: the service limits them to 5 s.
const hangs = 4500 * time.Millisecond

// visitPause is how long a patron waits between two calls.
const visitPause = 20 * time.Millisecond

// insist repeats a call until it is served, after refusals that allow it.
func (v *patron) insist(call func() reply) bool {
	for began := time.Now(); time.Since(began) < 3*startLimit; time.Sleep(visitPause) {
		r := call()
		v.calls++
		v.slowest = max(v.slowest, r.Took)
		if r.Took > hangs {
			v.load.p.broke("a response took %v", r.Took)
		}
		switch {
		case r.Status == http.StatusOK:
			v.gap, v.last = max(v.gap, time.Since(v.last)), time.Now()
			time.Sleep(visitPause)
			return true
		case r.Status == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != "":
			v.failed++
		default:
			v.load.p.broke("neither served nor refused: %v", r)
			return false
		}
	}
	v.load.p.broke("a patron was not served for %v", 3*startLimit)
	return false
}

// whileVisiting lets all patrons visit while lose makes a master fail, until each was served again.
func whileVisiting(t testing.TB, patrons []*patron, lose func()) {
	var healed atomic.Bool
	var all sync.WaitGroup
	for _, v := range patrons {
		all.Go(func() {
			for v.last = time.Now(); !healed.Load(); v.made.Add(1) {
				if !v.insist(v.buy) || !v.insist(func() reply { return v.current().guest.send("GET", "/cart/count", "") }) {
					return
				}
			}
		})
	}
	each := func(more int64) {
		from := make([]int64, len(patrons))
		for i, v := range patrons {
			from[i] = v.made.Load()
		}
		for i, v := range patrons {
			for v.made.Load() < from[i]+more && !t.Failed() {
				time.Sleep(time.Millisecond)
			}
		}
	}
	each(10)
	lose()
	each(2)                            // a visit that began after the loss
	time.Sleep(200 * time.Millisecond) // until the failover is surely over
	healed.Store(true)
	all.Wait()
}
