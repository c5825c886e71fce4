package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

// Shoppers add to their carts while the test kills the service and Redis with SIGKILL. Then it
// compares the carts with the acknowledged changes.
func TestPromise01_AnAcknowledgedChangeSurvivesKills(t *testing.T) {
	t.Parallel()
	p := promised(t, 1, "an acknowledged change survives the death of the service and of Redis", "always: 0 lost; everysec: none older than 2 s")
	var all sync.WaitGroup // the short form runs them at the same time
	for _, f := range []fsync{
		{policy: "always", changes: sized(2_000, 1_000_000), kills: 20},
		{policy: "everysec", changes: sized(1_000, 200_000), kills: sized(5, 20), maxAge: 2 * time.Second},
	} {
		k := startKills(t, p, f)
		all.Go(k.run)
		if *long {
			all.Wait()
		}
	}
	all.Wait()
}

// fsync is a setting of appendfsync, and how much it is tested.
type fsync struct {
	policy  string
	changes int           // minimum of acknowledged changes
	kills   int           // minimum of kills of Redis
	maxAge  time.Duration // a lost change may be as old as this when Redis is killed; 0: none may be lost
}

func (k *kills) run() {
	bar := k.p.progress("appendfsync "+k.policy, k.changes)
	for k.acknowledged < int64(k.changes) || k.killed < k.fsync.kills {
		k.round()
		_ = bar.Set(min(k.changes, int(k.acknowledged)))
	}
	k.recount()
	k.p.counted("acknowledged, "+k.policy, k.acknowledged)
	k.p.counted("kills of Redis, "+k.policy, int64(k.killed))
	k.p.counted("lost, "+k.policy, k.lost)
	if k.maxAge > 0 {
		k.p.lasted("age of the oldest loss, "+k.policy, k.oldest)
	}
	if k.lost > 0 && (k.maxAge == 0 || k.oldest > k.maxAge) {
		k.p.broke("%s: %d acknowledged changes were lost, the oldest %v before the kill", k.policy, k.lost, k.oldest)
	}
}

type kills struct {
	fsync
	p       *promise
	redis   *ephemeral.Server
	service *service
	rnd     *rand.Rand

	buyers []*keyedBuyer
	killed int // Redis

	acknowledged, lost int64
	oldest             time.Duration // from the acknowledgment of a lost change to the kill
}

func startKills(t *testing.T, p *promise, f fsync) *kills {
	redis := ephemeral.StartRedis(t, "--appendonly", "yes", "--appendfsync", f.policy)
	k := &kills{
		fsync: f, p: p, redis: redis, service: startService(t, "REDIS_URL="+redis.URL, "DATABASE_URL="+catalog(t)),
		rnd: rand.New(rand.NewPCG(1, uint64(os.Getpid()))),
	}
	client := newShopper(t, k.service)
	for i := range 48 {
		k.buyers = append(k.buyers, &keyedBuyer{shopper: client, token: func(cart int) string {
			return fmt.Sprintf("a-loyal-shoppers-cart-%s-%d-%d", f.policy, i, cart)
		}})
	}
	return k
}

// round kills the service, Redis or both while all buy, and compares the carts.
func (k *kills) round() {
	var killed atomic.Bool
	var all sync.WaitGroup
	for _, b := range k.buyers {
		all.Go(func() {
			for {
				r := b.buy()
				switch ok := r.outcome() == applied; {
				case !ok && killed.Load():
					return
				case r.outcome() == refused:
					k.p.broke("an add was refused: %v", r)
					return
				case !ok:
					time.Sleep(5 * time.Millisecond) // the same change again
				case killed.Load():
					return
				}
			}
		})
	}
	time.Sleep(sized(50*time.Millisecond, 2*time.Second) + time.Duration(k.rnd.IntN(300))*time.Millisecond)
	at := time.Now()
	killed.Store(true)
	victims := k.rnd.IntN(3) // 0: the service, 1: Redis, 2: both
	if victims != 1 {
		k.service.kill()
	}
	if victims != 0 {
		k.redis.Kill()
		k.killed++
	}
	all.Wait()
	if victims != 0 {
		k.redis.Restart()
	}
	if victims != 1 {
		k.service.start()
	}
	k.compare(at)
}

// compare repeats the open change of each shopper, and counts what a kill has lost.
func (k *kills) compare(killed time.Time) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, b := range k.buyers {
		all.Go(func() {
			c := b.current()
			wasOpen := c.open
			for began := time.Now(); c.open || len(c.acks) == 0; time.Sleep(10 * time.Millisecond) {
				if r := b.buy(); r.outcome() != applied && time.Since(began) > startLimit {
					k.p.broke("not served again %v after a restart: %v", startLimit, r)
					return
				}
			}
			for _, recent := range b.carts[max(0, len(b.carts)-2):] { // the current one may be new
				lost := int64(len(recent.acks)) - k.quantity(b, recent)
				mu.Lock()
				k.note(lost, recent, wasOpen && recent == c, killed)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	k.total()
}

// note records the changes that a cart has lost. These are the last acknowledged changes before
// the one that was repeated after the kill.
func (k *kills) note(lost int64, c *keyedCart, repeated bool, killed time.Time) {
	switch {
	case lost < 0:
		k.p.broke("cart %s holds %d more than were acknowledged", c.token, -lost)
	case lost > 0:
		last := len(c.acks)
		if repeated {
			last--
		}
		first := max(0, last-int(lost))
		k.oldest = max(k.oldest, killed.Sub(c.acks[first].at))
		k.lost += lost
		c.acks = c.acks[:len(c.acks)-int(lost)]
	}
}

func (k *kills) total() {
	k.acknowledged = k.lost
	for _, b := range k.buyers {
		for _, c := range b.carts {
			k.acknowledged += int64(len(c.acks))
		}
	}
}

func (k *kills) quantity(b *keyedBuyer, c *keyedCart) int64 {
	r, ok := served(func() reply { return b.look(c) })
	if !ok {
		k.p.broke("a cart cannot be read %v after a restart: %v", startLimit, r)
	}
	return r.Cart.Count
}

func (k *kills) recount() {
	var all sync.WaitGroup
	for _, b := range k.buyers {
		all.Go(func() {
			for _, c := range b.carts {
				if got := k.quantity(b, c); got != int64(len(c.acks)) {
					k.p.broke("at the end, cart %s holds %d, and %d changes were acknowledged", c.token, got, len(c.acks))
				}
			}
		})
	}
	all.Wait()
}
