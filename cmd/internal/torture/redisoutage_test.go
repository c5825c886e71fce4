package torture

import (
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

type redisOutage struct {
	name       string
	begin, end func(*shopOnRedis)
	direct     bool // the service connects to Redis without the line
	durable    bool // Redis has a replica, and DURABILITY=replica
	served     bool // calls are answered with 200 meanwhile
}

func redisOutages() []redisOutage {
	heal := func(s *shopOnRedis) { s.line.heal() }
	restart := func(s *shopOnRedis) { s.redis.Restart() }
	all := []redisOutage{
		{name: "blackhole", begin: func(s *shopOnRedis) { s.line.blackhole() }, end: heal},
		{name: "reset", begin: func(s *shopOnRedis) { s.line.reset() }, end: heal},
		{name: "2 s late", begin: func(s *shopOnRedis) { s.line.lag(2*time.Second, 0) }, end: heal},
		{name: "frozen", direct: true, begin: func(s *shopOnRedis) { s.redis.Freeze() }, end: func(s *shopOnRedis) { s.redis.Thaw() }},
		{name: "stopped", direct: true, begin: func(s *shopOnRedis) { s.redis.Stop() }, end: restart},
		{name: "killed", direct: true, begin: func(s *shopOnRedis) { s.redis.Kill() }, end: restart},
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
	slowest := map[bool]time.Duration{} // the key says whether the service waits for replicas
	var answers int64
	var first, normal time.Duration
	for range rounds {
		for _, outage := range all {
			if t.Failed() {
				return // each further one would take long, too
			}
			seen := openOnRedis(t, p, database, outage).suffer()
			answers += seen.answers
			slowest[outage.durable] = max(slowest[outage.durable], seen.slowest)
			first, normal = max(first, seen.firstServed), max(normal, seen.lastFailed)
			_ = bar.Add(1)
		}
	}
	p.counted("outages", int64(rounds*len(all)))
	p.counted("answers during outages", answers)
	p.lasted("slowest answer", slowest[false])
	p.lasted("slowest answer, awaiting replicas", slowest[true])
	p.lasted("latest first success after the return", first)
	p.lasted("latest failure after the return", normal)
}

type shopOnRedis struct {
	redisOutage
	p       *promise
	redis   *ephemeral.Server
	replica *ephemeral.Server // nil unless durable
	line    *line             // nil if direct
	service *service
	client  *shopper
	clients []*regular
}

func openOnRedis(t *testing.T, p *promise, database string, o redisOutage) *shopOnRedis {
	t.Helper()
	s := &shopOnRedis{redisOutage: o, p: p, redis: ephemeral.StartRedis(t, "--appendonly", "yes", "--appendfsync", "everysec")}
	settings := []string{"DATABASE_URL=" + database}
	if o.durable {
		host, port := nodeOf(s.redis).addr()
		s.replica = ephemeral.StartRedis(t, "--replicaof", host+" "+port)
		settings = append(settings, "DURABILITY=replica", "REDIS_MIN_REPLICAS=1")
	}
	via := s.redis.URL
	if !o.direct {
		s.line, via = lineTo(t, via)
	}
	s.service = startService(t, append(settings, "REDIS_URL="+via)...)
	s.client = newShopper(t, s.service)
	s.clients = newRegulars(t, s.client, sized(8, 32), "regular")
	return s
}

func (s *shopOnRedis) suffer() *outageSeen {
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
	seen := &outageSeen{redisOutage: s.redisOutage, p: s.p, began: time.Now(), fastest: map[shopCall]time.Duration{}, servedAgain: map[shopCall]bool{}}
	stop := browse(s.clients, seen.note)
	seen.await(seen.answered)
	seen.locked(func() { seen.ending = true })
	s.end(s)
	seen.locked(func() { seen.returned = time.Now() })
	seen.await(seen.recovered)
	stop()
	seen.check()
	s.wantNothingLeft(before)
	s.service.kill()
	return seen
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

type outageSeen struct {
	redisOutage
	p     *promise
	began time.Time

	mu       sync.Mutex
	ending   bool                       // Redis may answer already
	returned time.Time                  // when Redis answered again; zero during the outage
	fastest  map[shopCall]time.Duration // answer of the outage
	answers  int64
	slowest  time.Duration

	// Of calls that began after the return: when the first success and the last failure ended, from the return on.
	servedAgain             map[shopCall]bool
	firstServed, lastFailed time.Duration
	lastFailure             reply
}

func (s *outageSeen) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *outageSeen) note(call shopCall, began time.Time, a reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	during := s.returned.IsZero() || began.Before(s.returned)
	if !s.right(call, a, during) {
		s.p.broke("%s: during the outage: %t: %v: %v", s.name, during, call, a)
	}
	switch {
	case during:
		if fastest, seen := s.fastest[call]; !seen || a.Took < fastest {
			s.fastest[call] = a.Took
		}
		s.slowest = max(s.slowest, a.Took)
		s.answers++
		if limit := sized(hangs, s.limit()); a.Took > limit {
			s.p.broke("%s: %v: answered after %v", s.name, call, a.Took)
		}
	case a.Status != http.StatusOK:
		s.lastFailed, s.lastFailure = time.Since(s.returned), a
	default:
		if len(s.servedAgain) == 0 {
			s.firstServed = time.Since(s.returned)
		}
		s.servedAgain[call] = true
	}
}

// right reports whether a call may be answered like this.
func (s *outageSeen) right(call shopCall, a reply, during bool) bool {
	down := a.Status == http.StatusServiceUnavailable && a.Code == "unavailable"
	unknown := a.Status == http.StatusGatewayTimeout && a.Code == "outcome_unknown" && call.method != "GET" && !call.keyed
	switch {
	case a.Status == http.StatusOK:
		return s.served || s.ending || !during
	case s.served:
		return false
	}
	return (down || unknown) && a.Header.Get("Retry-After") != ""
}

func (s *outageSeen) await(done func() bool) {
	is := false
	for began := time.Now(); !is && time.Since(began) < startLimit; time.Sleep(5 * time.Millisecond) {
		s.locked(func() { is = done() })
	}
}

// answered reports whether the outage was long enough and every call was answered in time. Only
// the fastest answer of each call counts here, because the machine may be busy.
func (s *outageSeen) answered() bool {
	return time.Since(s.began) > sized(300*time.Millisecond, 5*time.Second) && len(s.late()) == 0
}

// late returns the calls that got no answer in time.
func (s *outageSeen) late() []shopCall {
	return slices.DeleteFunc(everyCall(), func(call shopCall) bool {
		fastest, seen := s.fastest[call]
		return seen && fastest <= s.limit()
	})
}

// recovered reports whether all calls are served again, in the long form for a while. On a busy
// machine, some calls may fail even without a fault.
func (s *outageSeen) recovered() bool {
	if len(s.servedAgain) < len(everyCall()) {
		return false
	}
	const quiet = 2 * time.Second
	since := time.Since(s.returned)
	return !*long || since-s.lastFailed > quiet && since > quiet
}

func (s *outageSeen) check() {
	s.p.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if late := s.late(); len(late) > 0 {
		s.p.broke("%s: none of several answers came within %v to: %v", s.name, s.limit(), late)
	}
	if !s.recovered() {
		s.p.broke("%s: not served again within %v: %v", s.name, startLimit, s.lastFailure)
	}
	if limit := sized(startLimit, time.Second); s.firstServed > limit || s.lastFailed > limit {
		s.p.broke("%s: first served %v after the return, last failure %v after it: %v", s.name, s.firstServed, s.lastFailed, s.lastFailure)
	}
	s.p.t.Logf("%s: %d answers, the slowest after %v; first served %v after the return, last failure %v after it",
		s.name, s.answers, s.slowest, s.firstServed, s.lastFailed)
}
