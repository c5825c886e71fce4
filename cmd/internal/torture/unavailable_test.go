package torture

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Clients change a few carts while Redis fails in every way that causes 503s. In the history of each cart, a change
// without a key that got a 503 has no effect, and a change with a key counts at most once.
func TestPromise05_A503ChangedNothingOrIsSafeToRepeat(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 5, "a 503 changed nothing, or was safe to repeat", "0 untrue")
	// After a kill of Redis, the operating system still writes what Redis has given to it. So
	// this Redis does not need to wait for the disk.
	server := ephemeral.StartRedis(t, "--appendonly", "yes", "--appendfsync", "no")
	back, url := lineTo(t, server.URL)
	m := newMarket(p, 24, newShopper(t, startService(t, "REDIS_URL="+url, "DATABASE_URL="+catalog(t))))
	ways := unavailabilities(t, server, back)
	var now atomic.Pointer[unavailability]
	now.Store(ways[0])
	m.refused = func(keyed bool) {
		if keyed {
			now.Load().keyed.Add(1)
		} else {
			now.Load().unkeyed.Add(1)
		}
	}
	rounds := sized(1, 25)
	bar := p.progress("outages", rounds*len(ways))
	var over atomic.Bool
	var failing sync.WaitGroup
	failing.Go(func() {
		defer over.Store(true)
		for n := range rounds + 30 {
			for _, way := range ways {
				if n < rounds || !way.enough() { // a busy machine may need more rounds
					now.Store(way)
					way.begin()
					time.Sleep(400 * time.Millisecond)
					way.end()
					time.Sleep(400 * time.Millisecond)
					_ = bar.Add(1)
				}
			}
		}
	})
	m.open(over.Load, failing.Wait)
	var unkeyed, keyed int64
	for _, way := range ways {
		unkeyed += way.unkeyed.Load()
		keyed += way.keyed.Load()
		p.detail(way.name+": 503s without a key", float64(way.unkeyed.Load()), "")
		p.detail(way.name+": 503s with a key", float64(way.keyed.Load()), "")
		assert.That(t, way.enough(), "%s: not enough was tried", way.name)
	}
	p.counted("503s without a key", unkeyed)
	p.counted("503s with a key", keyed)
	p.detail("histories", float64(len(m.checked)), "")
}

// unavailability is a way in which Redis fails, with the number of 503s that it has caused.
type unavailability struct {
	name       string
	begin, end func()

	// hangs means that a change without a key mostly gets a 504, because Redis may run it.
	hangs bool

	keyed, unkeyed atomic.Int64
}

func (u *unavailability) enough() bool {
	return u.keyed.Load() > 0 && (u.hangs || u.unkeyed.Load() > 0)
}

func unavailabilities(t *testing.T, server *ephemeral.Server, back *line) []*unavailability {
	admin := server.Admin()
	do := func(arguments ...any) func() {
		return func() { assert.Succeeds(t, admin.Do(t.Context(), arguments...).Err(), "%v", arguments) }
	}
	return []*unavailability{
		{name: "Redis is down", begin: server.Kill, end: server.Restart},
		{name: "Redis is frozen", begin: server.Freeze, end: server.Thaw, hangs: true},
		{name: "Redis pauses writes", begin: do("client", "pause", 60_000, "write"), end: do("client", "unpause"), hangs: true},
		{name: "Redis is full", begin: do("config", "set", "maxmemory", 1), end: do("config", "set", "maxmemory", 0)},
		{name: "Redis is a replica", begin: do("replicaof", "127.0.0.1", 1), end: do("replicaof", "no", "one")},
		{name: "Redis lacks replicas", begin: do("config", "set", "min-replicas-to-write", 1), end: do("config", "set", "min-replicas-to-write", 0)},
		{name: "Redis refuses connections", begin: back.down, end: back.up},
		{name: "connections break", begin: func() { back.cutReplies(2) }, end: func() { back.cutReplies(0) }},
		{name: "replies are late", begin: func() { back.slow(300 * time.Millisecond) }, end: func() { back.slow(0) }, hangs: true},
		{name: "replies are lost", begin: func() { back.swallow(true) }, end: func() { back.hangUp(); back.swallow(false) }, hangs: true},
	}
}
