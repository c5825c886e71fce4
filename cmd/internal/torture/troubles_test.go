package torture

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

// troubles are faults of a few instances that share a Redis. Redis keeps its memory.
type troubles struct {
	t         testing.TB
	redis     *ephemeral.Server
	instances []troubled
	times     map[string]int64 // by name
}

type troubled struct {
	service     *service
	front, back *line
}

// startTroubled starts two instances on a Redis, with a shopper of each.
func startTroubled(t testing.TB, redis *ephemeral.Server) (*troubles, []*shopper) {
	all := &troubles{t: t, redis: redis}
	database := catalog(t)
	var shoppers []*shopper
	for range 2 {
		back, url := lineTo(t, redis.URL)
		s := startService(t, "REDIS_URL="+url, "DATABASE_URL="+database)
		front, base := lineToService(t, s)
		all.instances = append(all.instances, troubled{s, front, back})
		shoppers = append(shoppers, shopperAt(t, base))
	}
	return all, shoppers
}

func (t *troubles) start() (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		r := rand.New(rand.NewPCG(uint64(os.Getpid()), 4))
		if t.times == nil {
			t.times = map[string]int64{}
		}
		names := slices.Sorted(maps.Keys(t.all(r)))
		for i := r.IntN(len(names)); ; i++ {
			select {
			case <-done:
				return
			case <-time.After(time.Duration(100+r.IntN(400)) * time.Millisecond):
				name := names[i%len(names)]
				t.all(r)[name]()
				t.times[name]++
			}
		}
	})
	return func() { close(done); all.Wait() }
}

// all returns the faults by name. Each fault lasts for a moment and affects a random instance.
func (t *troubles) all(r *rand.Rand) map[string]func() {
	x := t.instances[r.IntN(len(t.instances))]
	hold := func() { time.Sleep(time.Duration(50+r.IntN(400)) * time.Millisecond) }
	return map[string]func(){
		"cut connections to Redis":       func() { x.back.hangUp() },
		"cut connections to the service": func() { x.front.hangUp() },
		"Redis refuses connections":      func() { x.back.down(); hold(); x.back.up() },
		"slow replies of Redis": func() {
			x.back.slow(time.Duration(20+r.IntN(200)) * time.Millisecond)
			hold()
			x.back.slow(0)
		},
		"lost replies of Redis":       func() { x.back.swallow(true); hold(); x.back.swallow(false) },
		"lost replies of the service": func() { x.front.swallow(true); hold(); x.front.hangUp(); x.front.swallow(false) },
		"frozen Redis":                func() { t.redis.Freeze(); hold(); t.redis.Thaw() },
		"frozen service":              func() { x.service.signal(syscall.SIGSTOP); hold(); x.service.signal(syscall.SIGCONT) },
		"death of the service":        func() { x.service.kill(); x.front.down(); hold(); x.service.start(); x.front.up() },
	}
}

// count adds how often each fault happened to the row of a promise.
func (t *troubles) count(p *promise) {
	for _, name := range slices.Sorted(maps.Keys(t.times)) {
		p.detail(name, float64(t.times[name]), "")
	}
}
