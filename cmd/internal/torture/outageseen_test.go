package torture

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

func newOutageSeen(p *promise, o redisOutage) *outageSeen {
	return &outageSeen{
		redisOutage: o, p: p, calls: everyCall(), began: time.Now(),
		fastest: map[shopCall]time.Duration{}, servedAgain: map[shopCall]bool{},
	}
}

// outageSeen is what clients see of an outage of Redis.
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

// right reports whether a reply is one that the outage may cause.
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

// await waits until done.
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

// report checks the outage as a whole, and adds it to the total.
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

// outageTotal is what clients have seen of all outages.
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
