package torture

import (
	"fmt"
	"maps"
	"math/rand/v2"
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
		f.round(replicationTroubles[i%len(replicationTroubles)])
		_ = bar.Add(1)
	}
	for _, v := range f.visits { // later failovers must not have changed what settled
		if held := v.look(); !maps.Equal(held, v.held) {
			v.isWrong(fmt.Sprintf("at the end, a cart that held %v shows %v", v.held, held))
		}
	}
	p.counted("failovers", int64(rounds))
	p.counted("confirmed", f.confirmed)
	p.counted("lost confirmed", f.lostConfirmed)
	p.counted("unconfirmed", f.unconfirmed)
	p.counted("lost unconfirmed", f.lostUnconfirmed)
	assert.That(t, f.confirmed != 0 && f.lostUnconfirmed != 0,
		"no change was confirmed, or no failover lost anything, so the test shows nothing")
}

// trouble happens to two replicas, of which the first is mostly promoted.
type trouble struct {
	name string
	// hides says that the first replica is cut off before one of the instances starts. That
	// instance knows the number of replicas only from REDIS_MIN_REPLICAS.
	hides bool
	begin func(first, second *line)
}

// replicationTroubles are in the order in which they are tried.
var replicationTroubles = []trouble{
	{name: "one is cut off", begin: func(first, _ *line) { first.down() }},
	{name: "one is hidden", hides: true, begin: func(_, _ *line) {}},
	{name: "one lags", begin: func(first, _ *line) { first.lag(some(400), 100*time.Millisecond) }},
	{name: "one receives nothing", begin: func(first, _ *line) { first.blackhole() }},
	{name: "none", begin: func(_, _ *line) {}},
	{name: "one receives little", begin: func(first, _ *line) { first.narrow(8 + rand.IntN(64)) }},
	{name: "one lags, the other is cut off", begin: func(first, second *line) {
		first.lag(some(100), 25*time.Millisecond)
		second.down()
	}},
	{name: "one is hidden, the other lags", hides: true, begin: func(_, second *line) { second.lag(some(100), 25*time.Millisecond) }},
}

// some returns a random duration of up to a number of milliseconds, and at least a quarter of it.
func some(ms int) time.Duration {
	return time.Duration(ms/4+rand.IntN(ms*3/4)) * time.Millisecond
}

type promotions struct {
	*load
	test   *testing.T
	server *managedRedis
	told   *service   // has REDIS_MIN_REPLICAS; another instance has seen both replicas
	shops  []*shopper // of each instance
	rounds int

	confirmed, lostConfirmed, unconfirmed, lostUnconfirmed int64
}

func startPromotions(t *testing.T, p *promise) *promotions {
	server := startManagedRedis(t)
	settings := []string{"REDIS_URL=" + server.URL(), "DATABASE_URL=" + catalog(t), "DURABILITY=replica"}
	seeing := startService(t, settings...)
	f := &promotions{test: t, server: server, told: startService(t, append(settings, "REDIS_MIN_REPLICAS=2")...)}
	f.shops = []*shopper{newShopper(t, seeing), newShopper(t, f.told)}
	f.load = newLoad(p, f.shops[0], nil)
	f.loses = true
	for i, shop := range f.shops { // each sees both replicas, or else it would not wait for one that is cut off
		b := &buyer{load: f.load, client: shop, name: func(cart int) string { return fmt.Sprintf("first-%d-%d", i, cart) }}
		ephemeral.Eventually(t, "a confirmed change", func() bool { return b.buy().Header.Get("Durability") == "confirmed" })
	}
	return f
}

// round kills the master during the trouble, promotes a replica, and compares the carts. The long form may also promote
// the second replica, or heal the first.
func (f *promotions) round(what trouble) {
	f.test.Helper()
	f.rounds++
	replicas := f.server.replicas()
	rand.Shuffle(2, func(i, j int) { replicas[i], replicas[j] = replicas[j], replicas[i] })
	first, second := replicas[0], replicas[1]
	if what.hides {
		f.server.hide(first)
		f.told.kill()
		f.told.start()
	}
	var buyers []*buyer
	for i := range 16 {
		round := f.rounds
		buyers = append(buyers, &buyer{load: f.load, client: f.shops[i%2], name: func(cart int) string { return fmt.Sprintf("%d-%d-%d", round, i, cart) }})
	}
	unanswered := func(o outcome) bool { return o != applied && o != unchanged }
	whileBuying(buyers, time.Millisecond, unanswered, func() {
		time.Sleep(some(200))
		what.begin(f.server.lines[first], f.server.lines[second])
		time.Sleep(some(sized(600, 1500)))
		if *long && rand.IntN(4) == 0 {
			f.server.heal(first)
			time.Sleep(some(400))
		}
		f.server.nodes[f.server.master].Kill()
	})
	old, promoted := f.server.master, first
	if *long && rand.IntN(2) == 0 {
		promoted = second
	}
	f.server.promote(promoted)
	for _, b := range buyers {
		for _, v := range b.visits {
			f.compare(v, what.name)
		}
	}
	f.server.nodes[old].Restart()
	f.server.settle()
}

// compare counts the changes that a cart has lost.
func (f *promotions) compare(v *visit, what string) {
	v.held = v.look()
	found := tallyOf(v.bought, maps.Clone(v.held))
	if wrong := v.judge(found); wrong != "" {
		v.isWrong(what + ": " + wrong)
	}
	count := func(all []*purchase, confirmed, unconfirmed *int64) {
		for _, p := range all {
			if p.confirmed {
				*confirmed++
			} else if p.made {
				*unconfirmed++
			}
		}
	}
	count(v.bought, &f.confirmed, &f.unconfirmed)
	count(found.lost, &f.lostConfirmed, &f.lostUnconfirmed)
	v.bought = nil
	f.keep(v)
}
