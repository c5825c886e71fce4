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

type followed struct {
	*shopper
	ctx     context.Context // of streams
	version atomic.Int64    // of the latest change
	at      atomic.Int64    // when its response came, in nanoseconds
}

func newFollowed(t testing.TB, c *shopper) *followed {
	f := &followed{shopper: c.as(rand.Text(), ""), ctx: t.Context()}
	f.change(t)
	return f
}

func (f *followed) change(t testing.TB) {
	key, r := rand.Text(), reply{}
	for try := 0; r.Status != http.StatusOK && try < 20; try++ { // a busy machine is late
		r = f.send("POST", "/cart/add", `{"product_id":1001}`, "Idempotency-Key", key)
	}
	assert.That(t, r.Status == http.StatusOK, "add: %v", r)
	f.version.Store(r.Cart.Version)
	f.at.Store(time.Now().UnixNano())
}

// follow opens a stream, and calls saw for the version of each event until the stream ends.
func (f *followed) follow(t testing.TB, last string, saw func(version int64, id string)) (status int) {
	request := assert.Must(http.NewRequestWithContext(f.ctx, "GET", f.base()+"/cart/events", nil))(t)
	request.Header.Set("X-Public-Key", "pk_demo")
	request.Header.Set("X-Cart-Token", f.Token)
	request.Header.Set("Last-Event-ID", last)
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
			version := assert.Must(strconv.ParseInt(strings.TrimSuffix(text, "}"), 10, 64))(t)
			saw(version, id)
		}
	}
	return response.StatusCode
}

// 10,000 idle streams, and then changes.
func TestStreams_TenThousandTakeLittleMemory(t *testing.T) {
	ephemeral.Slow(t)
	const carts, each, maxMB = 2500, 4, 200
	s := startService(t, "REDIS_URL="+ephemeral.StartRedis(t).URL, "DATABASE_URL="+catalog(t))
	all, c := make([]*followed, carts), newShopper(t, s)
	var opened, seen, late atomic.Int64
	inGroups(16, carts, func(i int) { all[i] = newFollowed(t, c) })
	var streams sync.WaitGroup
	defer streams.Wait()
	defer s.kill()
	inGroups(16, carts*each, func(i int) {
		f, begun := all[i%carts], make(chan struct{})
		begin := sync.OnceFunc(func() { opened.Add(1); close(begun) })
		streams.Go(func() {
			latest := int64(0)
			saw := func(version int64, _ string) {
				if latest != 0 && version != latest { // it is the same after a lost subscription
					seen.Add(1)
					assert.That(t, version > latest, "version %d after %d", version, latest)
					if version == f.version.Load() && time.Since(time.Unix(0, f.at.Load())) > 200*time.Millisecond {
						late.Add(1)
					}
				}
				latest = version
				begin()
			}
			for try := 0; latest == 0 && try < 20; try++ { // a busy machine refuses some
				f.follow(t, "", saw)
			}
			assert.That(t, latest != 0, "stream %d did not begin", i)
			begin()
		})
		<-begun
	})
	assert.Require(t, !t.Failed() && s.metric("commerce_cart_streams") == carts*each, "%d streams", opened.Load())
	for range 4 {
		time.Sleep(5 * time.Second) // each stream sends a comment
		rss := s.metric("process_resident_memory_bytes") / 1e6
		t.Logf("%d idle streams: the process takes %.0f MB", carts*each, rss)
		assert.That(t, rss < maxMB, "the process takes %.0f MB, want less than %d", rss, maxMB)
	}
	const changes = 2000
	inGroups(4, changes, func(i int) { // one of a cart, so that no lost subscription hides one
		all[i].change(t)
		time.Sleep(10 * time.Millisecond)
	})
	for began := time.Now(); seen.Load() < changes*each; time.Sleep(10 * time.Millisecond) {
		assert.Require(t, time.Since(began) < ephemeral.Patience(30*time.Second), "%d events of %d changes", seen.Load(), changes)
	}
	t.Logf("%d of %d events came more than 200 ms after the response", late.Load(), seen.Load())
	assert.That(t, late.Load() < seen.Load()/5, "%d of %d events came more than 200 ms after the response", late.Load(), seen.Load())
}

func inGroups(goroutines, n int, do func(int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}

// Streams through haproxy stay open while nothing changes, although its timeouts are short. When an instance stops,
// they end at once, and their clients miss nothing.
func TestStreams_ThroughHAProxy(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	settings := []string{"REDIS_URL=" + ephemeral.StartRedis(t).URL, "DATABASE_URL=" + catalog(t), "TRUSTED_PROXIES=127.0.0.1"}
	instances := []*service{startService(t, settings...), startService(t, settings...)}
	url := startHAProxy(t, instances[0], instances[1])
	c := shopperAt(t, func() string { return url })
	all := make([]*followed, 20)
	for i := range all {
		all[i] = newFollowed(t, c)
	}
	var opened, ended atomic.Int64
	var stopped atomic.Bool
	var streams sync.WaitGroup
	latest := make([]atomic.Int64, len(all))
	for i, f := range all {
		streams.Go(func() {
			for last := ""; !stopped.Load(); time.Sleep(50 * time.Millisecond) {
				opened.Add(1)
				f.follow(t, last, func(version int64, id string) {
					assert.That(t, version >= latest[i].Load(), "version %d after %d", version, latest[i].Load())
					latest[i].Store(version)
					last = id
				})
				ended.Add(1)
			}
		})
	}
	current := func(when string) {
		t.Helper()
		for i, f := range all {
			for began := time.Now(); latest[i].Load() != f.version.Load(); time.Sleep(5 * time.Millisecond) {
				assert.Require(t, time.Since(began) < ephemeral.Patience(10*time.Second), "%s: version %d, want %d", when, latest[i].Load(), f.version.Load())
			}
		}
	}
	current("after the start")
	time.Sleep(25 * time.Second) // haproxy waits 20 s for a server
	assert.Equal(t, ended.Load(), 0, "idle streams that ended")
	for _, f := range all {
		f.change(t)
	}
	current("after a change")
	for _, instance := range instances {
		took, err := instance.terminate()
		assert.That(t, err == nil && took < ephemeral.Patience(5*time.Second), "with streams, the instance ends after %v: %v", took, err)
		for _, f := range all {
			f.change(t)
		}
		current("after an instance has stopped")
		instance.start()
		for began := time.Now(); instance.served() == 0; {
			assert.Require(t, time.Since(began) < startLimit, "haproxy sends nothing to a new instance")
			all[0].change(t)
		}
	}
	assert.That(t, ended.Load() >= int64(len(all)), "only %d streams ended", ended.Load())
	stopped.Store(true)
	for _, instance := range instances {
		_, _ = instance.terminate()
	}
	streams.Wait()
}
