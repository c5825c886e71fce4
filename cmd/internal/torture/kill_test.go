package torture

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
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
	for _, k := range []*kills{
		{policy: "always", changes: sized[int64](2_000, 1_000_000), kills: 20},
		{policy: "everysec", changes: sized[int64](1_000, 200_000), kills: sized[int64](5, 20), maxAge: 2 * time.Second},
	} {
		k.p = p
		k.start(t)
		all.Go(k.run)
		if *long {
			all.Wait()
		}
	}
	all.Wait()
}

// kills is a test of one setting of appendfsync.
type kills struct {
	policy  string
	changes int64         // minimum of acknowledged changes
	kills   int64         // minimum of kills of Redis
	maxAge  time.Duration // a lost change may be as old as this when Redis is killed; 0: none may be lost

	p       *promise
	redis   *ephemeral.Server
	service *service
	buyers  []*buyer

	mu                         sync.Mutex
	acknowledged, killed, lost int64
	oldest                     time.Duration // from the acknowledgment of a lost change to the kill
}

func (k *kills) start(t *testing.T) {
	k.redis = ephemeral.StartRedis(t, "--appendonly", "yes", "--appendfsync", k.policy)
	k.service = startService(t, "REDIS_URL="+k.redis.URL, "DATABASE_URL="+catalog(t))
	client := newShopper(t, k.service)
	load := newLoad(k.p, client, nil)
	for i := range 48 {
		k.buyers = append(k.buyers, &buyer{load: load, client: client, name: func(cart int) string {
			return fmt.Sprintf("%s-%d-%d", k.policy, i, cart)
		}})
	}
}

func (k *kills) run() {
	bar := k.p.progress("appendfsync "+k.policy, int(k.changes))
	for (k.acknowledged < k.changes || k.killed < k.kills) && !k.p.t.Failed() {
		at := k.kill()
		var all sync.WaitGroup
		for _, b := range k.buyers {
			all.Go(func() {
				for _, v := range b.visits {
					if v.held == nil {
						k.compare(v, at)
					}
				}
			})
		}
		all.Wait()
		_ = bar.Set64(min(k.changes, k.acknowledged))
	}
	for _, b := range k.buyers {
		for _, v := range b.visits {
			if held := v.look(); !maps.Equal(held, v.held) {
				v.isWrong(fmt.Sprintf("at the end, the cart holds %v, and it held %v after a kill", held, v.held))
			}
		}
	}
	k.p.counted("acknowledged, "+k.policy, k.acknowledged)
	k.p.counted("kills of Redis, "+k.policy, k.killed)
	k.p.counted("lost, "+k.policy, k.lost)
	if k.maxAge > 0 {
		k.p.lasted("age of the oldest loss, "+k.policy, k.oldest)
	}
	if k.lost > 0 && (k.maxAge == 0 || k.oldest > k.maxAge) {
		k.p.broke("%s: %d acknowledged changes were lost, the oldest %v before the kill", k.policy, k.lost, k.oldest)
	}
}

// kill kills the service, Redis or both while all buy, and starts them again. It returns when it killed them.
func (k *kills) kill() (at time.Time) {
	victims := rand.IntN(3) // 0: the service, 1: Redis, 2: both
	for _, b := range k.buyers {
		b.fresh()
	}
	refuses := func(o outcome) bool { return o == refused }
	whileBuying(k.buyers, 0, refuses, func() {
		time.Sleep(sized(50*time.Millisecond, 2*time.Second) + rand.N(300*time.Millisecond))
		at = time.Now()
		if victims != 1 {
			k.service.kill()
		}
		if victims != 0 {
			k.redis.Kill()
			k.killed++
		}
	})
	if victims != 0 {
		k.redis.Restart()
	}
	if victims != 1 {
		k.service.start()
	}
	return at
}

// compare repeats the open change of a cart, and counts what a kill has lost.
func (k *kills) compare(v *visit, killed time.Time) {
	if p := v.latest(); p != nil && !p.made {
		v.insist(p, v.guest)
	}
	v.held = v.look()
	k.mu.Lock()
	defer k.mu.Unlock()
	found := tallyOf(v.bought, maps.Clone(v.held))
	if found.wrong != "" {
		v.isWrong(found.wrong)
	}
	for _, p := range found.lost {
		k.oldest = max(k.oldest, killed.Sub(p.at))
	}
	k.lost += int64(len(found.lost))
	k.acknowledged += int64(len(v.bought))
	v.bought = nil
}
