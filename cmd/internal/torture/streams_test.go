package torture

import (
	"bufio"
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// followed is a cart whose streams are open.
type followed struct {
	*shopper
	version atomic.Int64 // of the latest change
	at      atomic.Int64 // when its response came, in nanoseconds
}

func newFollowed(t testing.TB, c *shopper) *followed {
	f := &followed{shopper: c.as(rand.Text(), "")}
	f.change(t)
	return f
}

// change changes the cart once, however often it must try.
func (f *followed) change(t testing.TB) {
	key, r := rand.Text(), reply{}
	for began := time.Now(); r.Status != http.StatusOK && time.Since(began) < serveLimit; {
		if r = f.send("POST", "/cart/add", `{"product_id":1001}`, "Idempotency-Key", key); r.Status != http.StatusOK {
			time.Sleep(50 * time.Millisecond)
		}
	}
	assert.That(t, r.Status == http.StatusOK, "add: %v", r)
	f.version.Store(r.Cart.Version)
	f.at.Store(time.Now().UnixNano())
}

// streams counts what clients see that open a stream again when it ends.
type streams struct {
	broke                        func(format string, arguments ...any)
	opened, ended, events, again atomic.Int64
}

// shown is what one client has seen of a cart.
type shown struct{ version atomic.Int64 }

// await waits until a client has seen the version of the last change.
func (s *streams) await(f *followed, by *shown) {
	for began := time.Now(); by.version.Load() != f.version.Load(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > serveLimit {
			s.broke("a stream shows version %d, and the cart has %d", by.version.Load(), f.version.Load())
			return
		}
	}
}

// follow opens a stream of the shopper's cart again and again, with the last event's id, until ctx ends.
func (s *streams) follow(ctx context.Context, t testing.TB, as *shopper, to *shown) {
	for last := ""; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		s.opened.Add(1)
		status := as.stream(ctx, t, &last, func(version int64) {
			before := to.version.Swap(version)
			switch {
			case version < before:
				s.broke("a stream shows version %d after %d", version, before)
			case version == before:
				s.again.Add(1)
			}
			s.events.Add(1)
		})
		s.ended.Add(1)
		if status != 0 && status != http.StatusOK && status != http.StatusServiceUnavailable {
			s.broke("a stream is answered with %d", status)
		}
	}
}

// stream opens a stream after the event last, and calls saw for the version of each event until the stream ends.
func (c *shopper) stream(ctx context.Context, t testing.TB, last *string, saw func(version int64)) (status int) {
	request := assert.Must(http.NewRequestWithContext(ctx, "GET", c.base()+"/cart/events", nil))(t)
	request.Header.Set("X-Public-Key", storeOneKey)
	request.Header.Set("X-Cart-Token", c.Token)
	request.Header.Set("Last-Event-ID", *last)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ReadBufferSize: 512, WriteBufferSize: 512}}
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	id := ""
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		line := lines.Text()
		if text, ok := strings.CutPrefix(line, "id: "); ok {
			id = text
		}
		if text, ok := strings.CutPrefix(line, `data: {"version":`); ok {
			saw(assert.Must(strconv.ParseInt(strings.TrimSuffix(text, "}"), 10, 64))(t))
			*last = id
		}
	}
	return response.StatusCode
}

// 10,000 idle streams, and then changes.
func TestStreams_TenThousandTakeLittleMemory(t *testing.T) {
	ephemeral.Slow(t)
	const carts, each, changes, maxMB = 2500, 4, 2000, 200
	s := startService(t, "REDIS_URL="+ephemeral.StartRedis(t).URL, "DATABASE_URL="+catalog(t))
	all, c := make([]*followed, carts), newShopper(t, s)
	var seen, late atomic.Int64
	inGroups(16, carts, func(i int) { all[i] = newFollowed(t, c) })
	ctx, end := context.WithCancel(t.Context())
	var open sync.WaitGroup
	defer open.Wait()
	defer end()
	inGroups(16, carts*each, func(i int) {
		f, begun := all[i%carts], make(chan struct{})
		begin := sync.OnceFunc(func() { close(begun) })
		open.Go(func() {
			latest := int64(0)
			for last := ""; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) { // a busy machine refuses some
				f.stream(ctx, t, &last, func(version int64) {
					if latest != 0 && version != latest { // it is the same after a lost subscription
						seen.Add(1)
						assert.That(t, version > latest, "version %d after %d", version, latest)
						if version == f.version.Load() && time.Since(time.Unix(0, f.at.Load())) > 200*time.Millisecond {
							late.Add(1)
						}
					}
					latest = version
					begin()
				})
			}
		})
		select {
		case <-begun:
		case <-time.After(startLimit):
			t.Errorf("stream %d did not begin", i)
		}
	})
	opened := s.metric("commerce_cart_streams")
	assert.Require(t, !t.Failed() && opened == carts*each, "%v streams", opened)
	for range 4 {
		time.Sleep(5 * time.Second) // each stream sends a comment
		rss := s.metric("process_resident_memory_bytes") / 1e6
		t.Logf("%d idle streams: the process takes %.0f MB", carts*each, rss)
		assert.That(t, rss < maxMB, "the process takes %.0f MB, want less than %d", rss, maxMB)
	}
	inGroups(4, changes, func(i int) { // one of a cart, so that no lost subscription hides one
		all[i].change(t)
		time.Sleep(10 * time.Millisecond)
	})
	ephemeral.Eventually(t, "all events of all changes", func() bool { return seen.Load() >= changes*each })
	assert.That(t, late.Load() < seen.Load()/5, "%d of %d events came more than 200 ms after the response", late.Load(), seen.Load())
}

// Streams through haproxy stay open while nothing changes, and calls wait for changes for 30 seconds, although its
// timeouts are short. When an instance stops, both end at once, and the clients miss nothing.
func TestHAProxy_KeepsStreamsAndCallsThatWait(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	database := catalog(t)
	settings := []string{"REDIS_URL=" + ephemeral.StartRedis(t).URL, "DATABASE_URL=" + database, "TRUSTED_PROXIES=127.0.0.1"}
	instances := []*service{startService(t, settings...), startService(t, settings...)}
	url, w := startHAProxy(t, instances[0], instances[1]), startWaitingStores(t, database, 1)
	c := shopperAt(t, func() string { return url })
	carts, seen := make([]*followed, 20), make([]shown, 20)
	ctx, end := context.WithCancel(t.Context())
	all := streams{broke: t.Errorf}
	var open sync.WaitGroup
	defer open.Wait()
	defer end()
	for i := range carts {
		carts[i] = newFollowed(t, c)
		open.Go(func() { all.follow(ctx, t, carts[i].shopper, &seen[i]) })
	}
	change := func() {
		t.Helper()
		for i, f := range carts {
			f.change(t)
			all.await(f, &seen[i])
		}
	}
	change()
	began, before := time.Now(), all.ended.Load()
	w.wantAll(w.wait(c, 20)(), 0)
	assert.That(t, time.Since(began) > 29*time.Second, "the calls ended after %v", time.Since(began))
	assert.Equal(t, all.ended.Load(), before, "idle streams that ended")
	change()
	for _, instance := range instances {
		pages := w.wait(c, 20)
		instance.wantEnd(5 * time.Second)
		w.change()
		for _, p := range pages() {
			assert.Equal(t, p.status, http.StatusOK, "a call while an instance stops")
		}
		change()
		instance.start()
		ephemeral.Eventually(t, "haproxy sends calls to a new instance", func() bool { carts[0].change(t); return instance.metric(requestsServed) > 0 })
	}
	assert.That(t, all.ended.Load() >= before+int64(len(carts)), "only %d streams ended", all.ended.Load()-before)
}
