package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Buyers fill carts while replicas lag or are cut off. Then the master dies, and any recent
// replica takes its place, even an outdated one.
func TestPromise09_AFailoverLosesOnlyWhatWasNotConfirmed(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 9, "a failover loses only what was not confirmed", "0 confirmed lost; unconfirmed counted")
	f := startPromotions(t, p)
	rounds := sized(4, 80)
	bar := p.progress("failovers", rounds)
	for i := range rounds {
		f.round(replicationTroubles[i%len(replicationTroubles)], *long)
		_ = bar.Add(1)
	}
	f.recount()
	p.counted("failovers", int64(rounds))
	p.counted("confirmed", f.confirmed)
	p.counted("lost confirmed", f.lostConfirmed)
	p.counted("unconfirmed", f.unconfirmed)
	p.counted("lost unconfirmed", f.lostUnconfirmed)
	assert.That(t, f.confirmed != 0 && f.lostUnconfirmed != 0,
		"no change was confirmed, or no failover lost anything, so the test shows nothing")
}

type trouble struct {
	name string
	// hides says that the first replica is cut off before one of the instances starts. That
	// instance knows the number of replicas only from REDIS_MIN_REPLICAS.
	hides bool
	begin func(f *promotions, first, second int)
}

// replicationTroubles are in the order in which they are tried.
var replicationTroubles = []trouble{
	{name: "one is cut off", begin: func(f *promotions, first, _ int) { f.redis.lines[first].Stop() }},
	{name: "one is hidden", hides: true, begin: func(*promotions, int, int) {}},
	{name: "one lags", begin: func(f *promotions, first, _ int) { f.redis.lag(first, f.some(400)) }},
	{name: "one receives nothing", begin: func(f *promotions, first, _ int) { f.redis.swallow(first) }},
	{name: "none", begin: func(*promotions, int, int) {}},
	{name: "one receives little", begin: func(f *promotions, first, _ int) { f.redis.narrow(first, 8+f.rnd.IntN(64)) }},
	{name: "one lags, the other is cut off", begin: func(f *promotions, first, second int) {
		f.redis.lag(first, f.some(100))
		f.redis.lines[second].Stop()
	}},
	{name: "one is hidden, the other lags", hides: true, begin: func(f *promotions, _, second int) { f.redis.lag(second, f.some(100)) }},
}

type promotions struct {
	t     *testing.T
	p     *promise
	redis *managedRedis
	rnd   *rand.Rand

	seeing *service // has seen both replicas
	told   *service // has REDIS_MIN_REPLICAS
	shops  []*shopper
	rounds int
	buyers []*keyedBuyer // of all rounds
	held   map[*keyedCart]int64

	confirmed, lostConfirmed     int64
	unconfirmed, lostUnconfirmed int64
}

func startPromotions(t *testing.T, p *promise) *promotions {
	redis := startManagedRedis(t)
	settings := []string{"REDIS_URL=" + redis.URL(), "DATABASE_URL=" + catalog(t), "DURABILITY=replica"}
	f := &promotions{
		t: t, p: p, redis: redis, rnd: rand.New(rand.NewPCG(9, uint64(os.Getpid()))), held: map[*keyedCart]int64{},
		seeing: startService(t, settings...),
		told:   startService(t, append(settings, "REDIS_MIN_REPLICAS=2")...),
	}
	f.shops = []*shopper{newShopper(t, f.seeing), newShopper(t, f.told)}
	f.see()
	return f
}

// see lets the instances see both replicas, or else they would not wait for one that is cut off.
func (f *promotions) see() {
	f.t.Helper()
	for i, shop := range f.shops {
		b := &keyedBuyer{shopper: shop, token: func(cart int) string { return fmt.Sprintf("the-first-cart-and-token-%d-%d", i, cart) }}
		settles(f.t, func() error {
			if r := b.buy(); r.Header.Get("Durability") != "confirmed" {
				return fmt.Errorf("not confirmed: %v", r)
			}
			return nil
		})
	}
}

// some returns a random duration of up to a number of milliseconds, and at least a quarter of
// it.
func (f *promotions) some(ms int) time.Duration {
	return time.Duration(ms/4+f.rnd.IntN(ms*3/4)) * time.Millisecond
}

// round kills the master during the trouble, promotes a replica, and compares the carts. With
// any, it may also promote the second replica.
func (f *promotions) round(what trouble, any bool) {
	f.t.Helper()
	f.rounds++
	replicas := f.redis.replicas()
	f.rnd.Shuffle(2, func(i, j int) { replicas[i], replicas[j] = replicas[j], replicas[i] })
	first, second := replicas[0], replicas[1]
	if what.hides {
		f.redis.hide(first)
		f.told.kill()
		f.told.start()
	}
	buyers := f.newBuyers()
	f.buy(buyers, func() {
		time.Sleep(f.some(200))
		what.begin(f, first, second)
		time.Sleep(f.some(sized(600, 1500)))
		if any && f.rnd.IntN(4) == 0 {
			f.redis.heal(first)
			time.Sleep(f.some(400))
		}
		f.redis.nodes[f.redis.master].Kill()
	})
	old, promoted := f.redis.master, first
	if any && f.rnd.IntN(2) == 0 {
		promoted = second
	}
	f.redis.promote(promoted)
	for _, b := range buyers {
		for _, c := range b.carts {
			f.compare(b, c, what.name)
		}
	}
	f.redis.nodes[old].Restart()
	f.redis.settle()
}

func (f *promotions) newBuyers() []*keyedBuyer {
	var all []*keyedBuyer
	for i := range 16 {
		all = append(all, &keyedBuyer{shopper: f.shops[i%2], token: func(cart int) string {
			return fmt.Sprintf("a-buyers-cart-and-token-%d-%d-%d", f.rounds, i, cart)
		}})
	}
	f.buyers = append(f.buyers, all...)
	return all
}

func (f *promotions) buy(buyers []*keyedBuyer, kill func()) {
	var dead atomic.Bool
	var all sync.WaitGroup
	for _, b := range buyers {
		all.Go(func() {
			for !dead.Load() {
				if r := b.buy(); r.outcome() != applied && r.outcome() != unchanged {
					f.p.broke("a change with a key: %v", r)
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	kill()
	dead.Store(true)
	all.Wait()
}

// compare counts lost changes: only the last ones, since a replica gets them in order.
func (f *promotions) compare(b *keyedBuyer, c *keyedCart, what string) {
	f.t.Helper()
	r, ok := served(func() reply { return b.look(c) })
	if !ok {
		f.p.broke("%s: a cart cannot be read: %v", what, r)
		return
	}
	made := int64(len(c.acks))
	if r.Cart.Count > made+1 || r.Cart.Count > made && !c.open {
		f.p.broke("%s: after %d changes, a cart holds %d", what, made, r.Cart.Count)
	}
	f.held[c] = r.Cart.Count
	before := f.lostConfirmed
	for i, ack := range c.acks {
		lost := int64(i) >= r.Cart.Count
		count(ack.confirmed, &f.confirmed)
		count(!ack.confirmed, &f.unconfirmed)
		count(ack.confirmed && lost, &f.lostConfirmed)
		count(!ack.confirmed && lost, &f.lostUnconfirmed)
	}
	if n := f.lostConfirmed - before; n > 0 {
		f.p.broke("%s: a cart lost %d confirmed changes", what, n)
	}
}

func count(it bool, n *int64) {
	if it {
		*n++
	}
}

// recount compares all carts again, which later failovers must not have changed.
func (f *promotions) recount() {
	f.t.Helper()
	for _, b := range f.buyers {
		for _, c := range b.carts {
			if r, ok := served(func() reply { return b.look(c) }); !ok || r.Cart.Count != f.held[c] {
				f.p.broke("at the end, a cart that held %d shows %v", f.held[c], r)
			}
		}
	}
}
