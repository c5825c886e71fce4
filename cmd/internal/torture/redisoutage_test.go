package torture

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

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

func newOutageSeen(p *promise, o redisOutage) *outageSeen {
	return &outageSeen{
		redisOutage: o, p: p, calls: everyCall(), began: time.Now(),
		fastest: map[shopCall]time.Duration{}, servedAgain: map[shopCall]bool{},
	}
}

type outageSeen struct {
	redisOutage
	p     *promise
	calls []shopCall

	mu                      sync.Mutex
	began                   time.Time
	ending                  bool                       // Redis may answer already
	returned                time.Time                  // zero during the outage
	fastest                 map[shopCall]time.Duration // answer of the outage
	servedAgain             map[shopCall]bool
	firstServed, lastFailed time.Time // of calls that began after the return; when they ended
	lastFailure             reply
	answers                 int64
	slowest                 time.Duration
}

func (s *outageSeen) note(call shopCall, began time.Time, a reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.returned.IsZero() || began.Before(s.returned) {
		s.noteDuring(call, a)
	} else {
		s.noteAfter(call, a)
	}
}

func (s *outageSeen) noteDuring(call shopCall, a reply) {
	if fastest, seen := s.fastest[call]; !seen || a.Took < fastest {
		s.fastest[call] = a.Took
	}
	s.slowest = max(s.slowest, a.Took)
	s.answers++
	if !s.right(call, a) {
		s.p.broke("%s: %v: %v", s.name, call, a)
	}
	if limit := sized(hang, s.limit()); a.Took > limit {
		s.p.broke("%s: %v: answered after %v", s.name, call, a.Took)
	}
}

// hang is less than the deadline at which the service ends a waiting request.
const hang = 4500 * time.Millisecond

func (s *outageSeen) right(call shopCall, a reply) bool {
	down := a.Status == http.StatusServiceUnavailable && a.Code == "unavailable"
	unknown := a.Status == http.StatusGatewayTimeout && a.Code == "outcome_unknown" && call.method != "GET" && !call.keyed
	switch {
	case a.Status == http.StatusOK:
		return s.served || s.ending
	case s.served:
		return false
	}
	return (down || unknown) && a.Header.Get("Retry-After") != ""
}

func (s *outageSeen) noteAfter(call shopCall, a reply) {
	now := time.Now()
	if a.Status != http.StatusOK {
		s.lastFailed, s.lastFailure = now, a
		if !s.right(call, a) {
			s.p.broke("%s: after the return: %v: %v", s.name, call, a)
		}
		return
	}
	if s.firstServed.IsZero() {
		s.firstServed = now
	}
	s.servedAgain[call] = true
}

// ends records that Redis is about to return.
func (s *outageSeen) ends() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
}

// returns records that Redis answers again.
func (s *outageSeen) returns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned = time.Now()
}

func (s *outageSeen) await(done func() bool) {
	for began := time.Now(); time.Since(began) < startLimit; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		is := done()
		s.mu.Unlock()
		if is {
			return
		}
	}
}

// answered reports whether the outage was long enough and every call was answered in time. Only
// the fastest answer of each call counts here, because the machine may be busy.
func (s *outageSeen) answered() bool {
	return time.Since(s.began) > sized(300*time.Millisecond, 5*time.Second) && len(s.late()) == 0
}

// late returns the calls that got no answer in time.
func (s *outageSeen) late() []shopCall {
	return slices.DeleteFunc(slices.Clone(s.calls), func(call shopCall) bool {
		fastest, seen := s.fastest[call]
		return seen && fastest <= s.limit()
	})
}

// recovered reports whether all calls are served again, in the long form for a while. On a busy
// machine, some calls may fail even without a fault.
func (s *outageSeen) recovered() bool {
	if len(s.servedAgain) < len(s.calls) {
		return false
	}
	const quiet = 2 * time.Second
	return !*long || time.Since(s.lastFailed) > quiet && time.Since(s.returned) > quiet
}

func (s *outageSeen) report(total *outageTotal) {
	s.p.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if late := s.late(); len(late) > 0 {
		s.p.broke("%s: none of several answers came within %v to: %v", s.name, s.limit(), late)
	}
	if !s.recovered() {
		s.p.broke("%s: not served again within %v: %v", s.name, startLimit, s.lastFailure)
	}
	first, normal := s.firstServed.Sub(s.returned), max(0, s.lastFailed.Sub(s.returned))
	if limit := sized(startLimit, time.Second); first > limit || normal > limit {
		s.p.broke("%s: first served %v after the return, last failure %v after it: %v", s.name, first, normal, s.lastFailure)
	}
	s.p.t.Logf("%s: %d answers, the slowest after %v; first served %v after the return, last failure %v after it",
		s.name, s.answers, s.slowest, first, normal)
	total.outages++
	total.answers += s.answers
	total.slowest[s.durable] = max(total.slowest[s.durable], s.slowest)
	total.first, total.normal = max(total.first, first), max(total.normal, normal)
}

type outageTotal struct {
	outages, answers int64
	slowest          map[bool]time.Duration // the key says whether the service waits for replicas
	first, normal    time.Duration
}

func (t *outageTotal) report(p *promise) {
	p.counted("outages", t.outages)
	p.counted("answers during outages", t.answers)
	p.lasted("slowest answer", t.slowest[false])
	p.lasted("slowest answer, awaiting replicas", t.slowest[true])
	p.lasted("latest first success after the return", t.first)
	p.lasted("latest failure after the return", t.normal)
}
