package torture

import (
	"context"
	"sync"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Streams of two instances follow carts that change, while the instances, Redis and the connections between them fail.
// A stream that ends is opened again, as clients do. Once a cart rests, each of its streams must show the
// version of the last change, and none ever shows an older version after a newer one.
func TestPromise18_AStreamMissesNoVersion(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 18, "a stream of events misses no version of a cart", "0 of 10,000 streams end at another version")
	redis := ephemeral.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	f := &following{t: t, troubles: startTroubled(t, redis), streams: streams{broke: p.broke}}
	wanted := sized[int64](80, 10_000)
	bar := p.progress("streams", int(wanted))
	var restarts int64
	for round := 0; f.checked < wanted && !t.Failed(); round++ {
		if round%2 == 1 {
			f.round(func() { breakSubscriptions(t, redis) })
			restarts++
		} else {
			stop := f.troubles.start()
			f.round(func() {})
			stop()
		}
		_ = bar.Set64(min(f.checked, wanted))
	}
	p.counted("streams", f.checked)
	p.counted("changes", f.changes)
	p.counted("events", f.streams.events.Load())
	p.detail("streams opened again", float64(f.streams.opened.Load()-f.checked), "")
	p.detail("versions shown again", float64(f.streams.again.Load()), "")
	p.tried("restarts of Redis", restarts)
	f.troubles.count(p)
	assert.That(t, f.streams.opened.Load() > f.checked, "no stream ended, so the test shows nothing")
}

// breakSubscriptions kills and restarts Redis, and then closes its connections with subscriptions, again and again.
func breakSubscriptions(t *testing.T, redis *ephemeral.Server) {
	redis.Kill()
	redis.Restart()
	for range 10 { // until the last change
		time.Sleep(150 * time.Millisecond)
		assert.Succeeds(t, redis.Admin().Do(t.Context(), "client", "kill", "type", "pubsub").Err(), "kill subscriptions")
	}
}

type following struct {
	t                *testing.T
	troubles         *troubles
	streams          streams
	checked, changes int64 // streams, and changes of their carts
}

// round changes new carts, and then checks what their streams show. meanwhile is called while they change.
func (f *following) round(meanwhile func()) {
	const carts, changes = 10, 12
	ctx, end := context.WithCancel(f.t.Context())
	var following, changing sync.WaitGroup
	for i := range carts {
		cart := newFollowed(f.t, f.troubles.shoppers[i%2])
		var all [2]shown
		for i, shopper := range f.troubles.shoppers {
			following.Go(func() { f.streams.follow(ctx, f.t, shopper.as(cart.Token, ""), &all[i]) })
		}
		changing.Go(func() {
			for range changes {
				cart.change(f.t)
				time.Sleep(100 * time.Millisecond)
			}
			for i := range all {
				f.streams.await(cart, &all[i])
			}
		})
	}
	meanwhile()
	changing.Wait()
	end()
	following.Wait()
	f.checked += 2 * carts
	f.changes += carts * (changes + 1)
}
