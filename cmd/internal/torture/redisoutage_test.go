package torture

import (
	"fmt"
	"net"
	"net/url"
	"runtime"
	"slices"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// redisOutage is one way in which Redis fails and returns.
type redisOutage struct {
	name       string
	begin, end func(*shopOnRedis)
	direct     bool // the service connects to Redis without the faulty line
	durable    bool // Redis has a replica, and DURABILITY=replica
	served     bool // calls are answered with 200 meanwhile
}

func redisOutages() []redisOutage {
	all := []redisOutage{
		{name: "blackhole", begin: func(s *shopOnRedis) { s.line.blackhole() }, end: (*shopOnRedis).heal},
		{name: "reset", begin: func(s *shopOnRedis) { s.line.reset() }, end: (*shopOnRedis).heal},
		{name: "2 s late", begin: func(s *shopOnRedis) { s.line.delay(2000) }, end: (*shopOnRedis).heal},
		{name: "frozen", direct: true, begin: func(s *shopOnRedis) { s.redis.Freeze() }, end: func(s *shopOnRedis) { s.redis.Thaw() }},
		{name: "stopped", direct: true, begin: func(s *shopOnRedis) { s.redis.Stop() }, end: func(s *shopOnRedis) { s.redis.Restart() }},
		{name: "killed", direct: true, begin: func(s *shopOnRedis) { s.redis.Kill() }, end: func(s *shopOnRedis) { s.redis.Restart() }},
	}
	durable := slices.Clone(all)
	for i := range durable {
		durable[i].name, durable[i].durable = durable[i].name+", awaiting a replica", true
	}
	if !*long { // a kill is like a stop
		all, durable = all[:5], durable[3:4]
	}
	return slices.Concat(all, durable, []redisOutage{{
		name: "frozen replica", direct: true, durable: true, served: true,
		begin: func(s *shopOnRedis) { s.replica.Freeze() }, end: func(s *shopOnRedis) { s.replica.Thaw() },
	}})
}

// limit is how long a call may take during the outage.
func (o redisOutage) limit() time.Duration {
	if o.durable {
		return 800 * time.Millisecond
	}
	return 300 * time.Millisecond
}

// Clients make every call of the cart while Redis is down or slow, and after its return.
func TestPromise06_RedisGoneIsAnAnswer(t *testing.T) {
	t.Parallel()
	p := promised(t, 6, "Redis gone or slow is an answer, not a hang",
		"an answer within 300 ms (800 ms where replicas are awaited); no goroutine left over; normal again within 1 s")
	database, all := catalog(t), redisOutages()
	rounds := sized(1, 2)
	bar := p.progress("outages of Redis", rounds*len(all))
	total := &outageTotal{slowest: map[bool]time.Duration{}}
	for range rounds {
		for _, outage := range all {
			openOnRedis(t, p, database, outage).suffer(total)
			_ = bar.Add(1)
		}
	}
	total.report(p)
}

// shopOnRedis is a service and its clients on a Redis of their own.
type shopOnRedis struct {
	redisOutage
	p       *promise
	redis   *ephemeral.Server
	replica *ephemeral.Server // nil unless durable
	line    *faultyLine       // nil if direct
	service *service
	client  *shopper
	clients []*regular
}

func openOnRedis(t *testing.T, p *promise, database string, o redisOutage) *shopOnRedis {
	t.Helper()
	s := &shopOnRedis{redisOutage: o, p: p, redis: ephemeral.StartRedis(t, "--appendonly", "yes", "--appendfsync", "everysec")}
	settings := []string{"DATABASE_URL=" + database}
	if o.durable {
		host, port, _ := net.SplitHostPort(assert.Must(url.Parse(s.redis.URL))(t).Host)
		s.replica = ephemeral.StartRedis(t, "--replicaof", host+" "+port)
		settings = append(settings, "DURABILITY=replica", "REDIS_MIN_REPLICAS=1")
	}
	via := s.redis.URL
	if !o.direct {
		via, s.line = faultyLineTo(t, via)
	}
	s.service = startService(t, append(settings, "REDIS_URL="+via)...)
	s.client = newShopper(t, s.service)
	for i := range sized(8, 32) {
		s.clients = append(s.clients, newRegular(t, s.client, fmt.Sprint("regular-", i)))
	}
	return s
}

func (s *shopOnRedis) heal() { s.line.heal() }

// suffer runs the outage and reports what the clients see.
func (s *shopOnRedis) suffer(total *outageTotal) {
	s.p.t.Helper()
	awaitEveryCall(s.p.t, s.clients) // opens as many connections as the outage will use
	for _, c := range s.clients {
		c.bring()
	}
	before := s.resources()
	for range 4 { // a scrape itself uses more goroutines or fewer, by chance
		again := s.resources()
		before = [2]float64{max(before[0], again[0]), max(before[1], again[1])}
	}
	s.begin(s)
	seen := newOutageSeen(s.p, s.redisOutage)
	stop := browse(s.clients, seen.note)
	seen.await(seen.answered)
	seen.ends()
	s.end(s)
	seen.returns()
	seen.await(seen.recovered)
	stop()
	seen.report(total)
	s.wantNothingLeft(before)
	s.service.kill()
}

// resources returns the numbers of goroutines and open files of the service without clients.
func (s *shopOnRedis) resources() (used [2]float64) {
	s.client.client.CloseIdleConnections()
	time.Sleep(50 * time.Millisecond) // until the service notices
	return [2]float64{s.service.metric("go_goroutines"), s.service.metric("process_open_fds")}
}

// wantNothingLeft checks that the service uses no more resources than before, except that it may
// have opened all connections of its Redis pool.
func (s *shopOnRedis) wantNothingLeft(before [2]float64) {
	s.p.t.Helper()
	pool := float64(32 * runtime.GOMAXPROCS(0))
	var now [2]float64
	for began := time.Now(); time.Since(began) < startLimit; {
		now = s.resources()
		if now[0] <= before[0] && now[1] <= before[1]+pool {
			return
		}
	}
	_, stacks, _ := s.service.adminGet("/debug/pprof/goroutine?debug=1")
	s.p.broke("%s: goroutines and files: %v before, %v after: %s", s.name, before, now, stacks)
}
