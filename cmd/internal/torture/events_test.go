package torture

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"sync/atomic"
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
	m := startFollowing(t, p)
	wanted := sized[int64](80, 10_000)
	bar := p.progress("streams", int(wanted))
	for round := 0; m.checked < wanted && !t.Failed(); round++ {
		if round%2 == 1 {
			m.round(m.breakRedis)
		} else {
			stop := m.troubles.start()
			m.round(func() {})
			stop()
		}
		_ = bar.Set64(min(m.checked, wanted))
	}
	p.counted("streams", m.checked)
	p.counted("changes", m.changes.Load())
	p.counted("events", m.events.Load())
	p.counted("streams opened again", m.opened.Load()-m.checked)
	p.detail("versions shown again", float64(m.again.Load()), "")
	p.detail("restarts of Redis", float64(m.restarts), "")
	m.troubles.count(p)
	assert.That(t, m.opened.Load() > m.checked && m.restarts > 0, "no stream ended, so the test shows nothing")
}

type following struct {
	t         *testing.T
	p         *promise
	redis     *ephemeral.Server
	troubles  *troubles
	instances []*shopper
	checked   int64 // streams
	restarts  int

	changes, events, opened, again atomic.Int64
}

func startFollowing(t *testing.T, p *promise) *following {
	redis := ephemeral.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	troubles, instances := startTroubled(t, redis)
	return &following{t: t, p: p, redis: redis, troubles: troubles, instances: instances}
}

// breakRedis kills and restarts Redis, and then its connections with subscriptions, again and again.
func (m *following) breakRedis() {
	m.redis.Kill()
	m.redis.Restart()
	m.restarts++
	admin := m.redis.Admin()
	for range 10 { // until the last change
		time.Sleep(150 * time.Millisecond)
		assert.Succeeds(m.t, admin.Do(m.t.Context(), "client", "kill", "type", "pubsub").Err(), "kill subscriptions")
	}
}

// round changes new carts, and then checks what their streams show. meanwhile is called while they change.
func (m *following) round(meanwhile func()) {
	const carts, changes = 10, 12
	ctx, end := context.WithCancel(m.t.Context())
	var streams, changing sync.WaitGroup
	for i := range carts {
		f := &followed{shopper: m.instances[i%len(m.instances)].as(rand.Text(), ""), ctx: ctx}
		m.change(f)
		var latest []*atomic.Int64
		for _, instance := range m.instances {
			shown := new(atomic.Int64)
			latest = append(latest, shown)
			streams.Go(func() { m.follow(&followed{shopper: instance.as(f.Token, ""), ctx: ctx}, shown) })
		}
		changing.Go(func() {
			for range changes {
				m.change(f)
				time.Sleep(100 * time.Millisecond)
			}
			m.check(f, latest)
		})
	}
	meanwhile()
	changing.Wait()
	end()
	streams.Wait()
	m.checked += carts * int64(len(m.instances))
}

// change changes a cart once, however often it must try.
func (m *following) change(f *followed) {
	key, began := rand.Text(), time.Now()
	for {
		r := f.send("POST", "/cart/add", `{"product_id":1001}`, "Idempotency-Key", key)
		if r.Status == http.StatusOK {
			f.version.Store(r.Cart.Version)
			m.changes.Add(1)
			return
		}
		if time.Since(began) > serveLimit {
			m.p.broke("no change for %v: %v", serveLimit, r)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (m *following) follow(f *followed, latest *atomic.Int64) {
	for last := ""; f.ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		m.opened.Add(1)
		status := f.follow(m.t, last, func(version int64, id string) {
			switch before := latest.Swap(version); {
			case version < before:
				m.p.broke("a stream shows version %d after %d", version, before)
			case version == before:
				m.again.Add(1)
			}
			last = id
			m.events.Add(1)
		})
		if status != 0 && status != http.StatusOK && status != http.StatusServiceUnavailable {
			m.p.broke("a stream is answered with %d", status)
		}
	}
}

// check waits until the streams of a cart that rests show its version.
func (m *following) check(f *followed, latest []*atomic.Int64) {
	for _, shown := range latest {
		for began := time.Now(); shown.Load() != f.version.Load(); time.Sleep(5 * time.Millisecond) {
			if time.Since(began) > serveLimit {
				m.p.broke("a stream shows version %d, and the cart has %d", shown.Load(), f.version.Load())
				break
			}
		}
	}
}
