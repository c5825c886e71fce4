package torture

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

// troubles are faults of two instances that share a Redis. Redis keeps its memory.
type troubles struct {
	redis     *ephemeral.Server
	instances [2]troubled
	shoppers  [2]*shopper // of each instance
	times     map[string]int64
}

type troubled struct {
	service     *service
	front, back *line
}

func startTroubled(t testing.TB, redis *ephemeral.Server) *troubles {
	all := &troubles{redis: redis, times: map[string]int64{}}
	database := catalog(t)
	for i := range all.instances {
		back, url := lineTo(t, redis.URL)
		s := startService(t, "REDIS_URL="+url, "DATABASE_URL="+database)
		front, base := lineTo(t, s.URL())
		all.instances[i] = troubled{s, front, back}
		all.shoppers[i] = shopperAt(t, func() string { return base })
	}
	return all
}

// kindsOfTrouble affect a random instance. Each lasts for a moment.
var kindsOfTrouble = []struct {
	name string
	do   func(redis *ephemeral.Server, x troubled)
}{
	{"cut connections to Redis", func(_ *ephemeral.Server, x troubled) { x.back.hangUp() }},
	{"cut connections to the service", func(_ *ephemeral.Server, x troubled) { x.front.hangUp() }},
	{"Redis refuses connections", func(_ *ephemeral.Server, x troubled) { x.back.down(); moment(); x.back.up() }},
	{"slow replies of Redis", func(_ *ephemeral.Server, x troubled) {
		x.back.slow(20*time.Millisecond + rand.N(200*time.Millisecond))
		moment()
		x.back.slow(0)
	}},
	{"lost replies of Redis", func(_ *ephemeral.Server, x troubled) { x.back.swallow(true); moment(); x.back.swallow(false) }},
	{"lost replies of the service", func(_ *ephemeral.Server, x troubled) {
		x.front.swallow(true)
		moment()
		x.front.hangUp()
		x.front.swallow(false)
	}},
	{"frozen Redis", func(redis *ephemeral.Server, _ troubled) { redis.Freeze(); moment(); redis.Thaw() }},
	{"frozen service", func(_ *ephemeral.Server, x troubled) {
		x.service.signal(syscall.SIGSTOP)
		moment()
		x.service.signal(syscall.SIGCONT)
	}},
	{"death of the service", func(_ *ephemeral.Server, x troubled) {
		x.service.kill()
		x.front.down()
		moment()
		x.service.start()
		x.front.up()
	}},
}

func moment() { time.Sleep(50*time.Millisecond + rand.N(400*time.Millisecond)) }

// start makes one trouble after the other until the returned function is called.
func (t *troubles) start() (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for i := rand.IntN(len(kindsOfTrouble)); ; i++ {
			select {
			case <-done:
				return
			case <-time.After(100*time.Millisecond + rand.N(400*time.Millisecond)):
				kind := kindsOfTrouble[i%len(kindsOfTrouble)]
				kind.do(t.redis, t.instances[rand.IntN(len(t.instances))])
				t.times[kind.name]++
			}
		}
	})
	return func() { close(done); all.Wait() }
}

// count adds how often each trouble happened to the row of a promise.
func (t *troubles) count(p *promise) {
	for _, kind := range kindsOfTrouble {
		p.detail(kind.name, float64(t.times[kind.name]), "")
	}
}
