package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
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
	master func(*ephemeral.Server)
	beside func(*ephemeral.Server) // does the same to a server on the same machine
}

// A lost machine does not close its connections. A sentinel sends a ping every second, so it
// notices the loss up to a second later than a closed connection. The two remaining sentinels
// may each vote for itself. Then they try again after twice their failover-timeout, 4 s, and up
// to a random second.
func machineLost() loss {
	return loss{"machine", ephemeral.Patience(sized(15*time.Second, 12*time.Second)), (*ephemeral.Server).Freeze, (*ephemeral.Server).Freeze}
}

func processKilled() loss {
	return loss{"kill", ephemeral.Patience(sized(15*time.Second, 5*time.Second)), (*ephemeral.Server).Kill, func(*ephemeral.Server) {}}
}

// Patrons use two instances to change and read carts on all shards while masters are lost. One
// of the instances waits for replicas after each change.
func TestPromise07_ALostMasterHeals(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 7, "a lost cluster master or Sentinel primary heals", "outage at most 5 s in each of 20 kills")
	for name, start := range map[string]func(testing.TB) *replicatedRedis{
		"cluster": startReplicatedCluster, "sentinels": startReplicatedSentinels,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFailovers(t, p, start(t))
			for _, l := range []struct {
				loss
				rounds int
			}{{processKilled(), sized(1, 10)}, {machineLost(), sized(0, 4)}} {
				bar := p.progress(name+", "+l.name, l.rounds)
				var outages []time.Duration
				for range l.rounds {
					outages = append(outages, f.round(l.loss))
					_ = bar.Add(1)
				}
				f.report(name+", "+l.name, outages)
			}
			p.counted("failures on other shards, "+name, f.elsewhere)
			p.counted("changes, "+name, f.changes)
			p.counted("lost confirmed, "+name, f.lostConfirmed)
			p.counted("lost unconfirmed, "+name, f.lostUnconfirmed)
			p.detail("slowest response, "+name, milliseconds(f.slowest), "ms")
		})
	}
}

func (f *failovers) report(name string, outages []time.Duration) {
	if len(outages) == 0 {
		return
	}
	slices.Sort(outages)
	f.p.counted("rounds, "+name, int64(len(outages)))
	f.p.lasted("longest outage, "+name, outages[len(outages)-1])
	f.p.detail("median outage, "+name, milliseconds(outages[len(outages)/2]), "ms")
}

type failovers struct {
	t       *testing.T
	p       *promise
	redis   *replicatedRedis
	clients []*shopper // of each instance
	rnd     *rand.Rand
	rounds  int
	lost    *redisShard // whose old master must rejoin; nil if none
	lostAt  time.Time   // when the latest master was lost

	elsewhere, elsewhereCalls      int64
	changes                        int64
	lostConfirmed, lostUnconfirmed int64
	slowest                        time.Duration
}

func startFailovers(t *testing.T, p *promise, redis *replicatedRedis) *failovers {
	f := &failovers{t: t, p: p, redis: redis, rnd: rand.New(rand.NewPCG(7, uint64(os.Getpid())))}
	database := catalog(t)
	for _, durability := range []string{"memory", "replica"} {
		s := startService(t, "REDIS_URL="+redis.URL, "DATABASE_URL="+database, "DURABILITY="+durability)
		f.clients = append(f.clients, newShopper(t, s))
	}
	return f
}

// round makes the master of a shard fail while patrons visit, and checks which changes were
// lost. It returns how long a patron of the shard was not served.
func (f *failovers) round(l loss) (outage time.Duration) {
	f.t.Helper()
	if f.lost != nil {
		f.rejoin(f.lost)
		time.Sleep(time.Until(f.lostAt.Add(f.redis.between)))
	}
	at := f.rnd.IntN(len(f.redis.shards))
	shard := f.redis.shards[at]
	patrons := f.patrons()
	f.lost, f.lostAt = shard, time.Now()
	f.visit(patrons, func() {
		shard.find(f.t)
		l.master(shard.master.Server)
		if n := len(f.redis.beside); n > 0 {
			l.beside(f.redis.beside[f.rnd.IntN(n)].Server)
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
	f.compare(patrons)
	return outage
}

// rejoin restarts a lost master as a replica, and waits until all nodes know.
func (f *failovers) rejoin(shard *redisShard) {
	f.t.Helper()
	for _, node := range append(f.redis.beside, shard.master) {
		node.Kill() // it may hang
		node.Restart()
	}
	shard.master, shard.replica = shard.replica, shard.master
	settles(f.t, func() error { return f.redis.follow(shard.replica, shard.master) }) // old connections fail
	settles(f.t, f.redis.settled)
}

func (f *failovers) patrons() []*patron {
	f.rounds++
	var all []*patron
	for instance, client := range f.clients {
		for shard := range f.redis.shards {
			for i := range 3 {
				token := f.tokens(shard, fmt.Sprintf("a-patrons-cart-and-token-%d-%d-%d", f.rounds, instance, i))
				all = append(all, &patron{keyedBuyer: keyedBuyer{shopper: client, token: token}, p: f.p, shard: shard})
			}
		}
	}
	return all
}

func (f *failovers) tokens(shard int, prefix string) func(int) string {
	var ready []string // found while all nodes respond
	for i := 0; len(ready) < 20; i++ {
		if token := fmt.Sprintf("%s-%d-%d", prefix, shard, i); f.redis.shardOf(token) == shard {
			ready = append(ready, token)
		}
	}
	return func(cart int) string { return ready[cart] }
}

// visit makes a master fail while all patrons visit, until each was served again.
func (f *failovers) visit(patrons []*patron, lose func()) {
	var lost, healed atomic.Bool
	var all, begun, again sync.WaitGroup
	for _, v := range patrons {
		begun.Add(1)
		again.Add(1)
		all.Go(func() {
			begin, heal := sync.OnceFunc(begun.Done), sync.OnceFunc(again.Done)
			defer begin()
			defer heal()
			v.last = time.Now()
			for visits := 0; !healed.Load(); visits++ {
				after := lost.Load()
				if !v.insist(v.buy) || !v.insist(func() reply { return v.look(v.current()) }) {
					return
				}
				if visits == 10 {
					begin()
				}
				if after {
					heal()
				}
			}
		})
	}
	begun.Wait()
	lose()
	lost.Store(true)
	again.Wait()
	time.Sleep(200 * time.Millisecond) // until the failover is surely over
	healed.Store(true)
	all.Wait()
}

// compare repeats every change. The changes that were lost with the master are made now, and
// the others are replayed. So each must count exactly once.
func (f *failovers) compare(patrons []*patron) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, v := range patrons {
		all.Go(func() {
			for _, c := range v.carts {
				lost, confirmed := v.repeat(c)
				mu.Lock()
				f.changes += int64(len(c.acks))
				f.lostConfirmed += confirmed
				f.lostUnconfirmed += lost - confirmed
				mu.Unlock()
			}
		})
	}
	all.Wait()
}
