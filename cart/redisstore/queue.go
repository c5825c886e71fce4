package redisstore

import (
	"errors"
	"sync"
	"time"
)

// queues have the changes that wait for each cart of this instance. What waits while a group is decided is the next group.
// A caller who finds nobody before it runs its own, without another goroutine.
type queues struct {
	mu     sync.Mutex
	byCart map[string]*queue
}

type queue struct {
	waiting   []*member
	running   int           // groups
	contended time.Duration // see decideAll
	took      time.Duration // the last group
	slow      int           // how many of them have been running for slowGroup: the next one does not wait for them
}

const (
	maxGroup = 512 // changes that are committed together

	// A group that takes longer no longer holds up the next one: its connection may hang. Until then, groups of one
	// instance do not compete for a cart.
	slowGroup = 75 * time.Millisecond
)

func newQueues() *queues { return &queues{byCart: map[string]*queue{}} }

// run decides a change with those that wait for the same cart. It returns when the change has ended, or will end.
func (q *queues) run(s *Store, ref Ref, m *member) {
	q.mu.Lock()
	own := q.byCart[ref.key]
	if own == nil {
		own = &queue{}
		q.byCart[ref.key] = own
	}
	own.waiting = append(own.waiting, m)
	group := own.next()
	q.mu.Unlock()
	if group == nil {
		return
	}
	if next := q.decide(s, ref, own, group); next != nil {
		go q.serve(s, ref, own, next)
	}
}

func (q *queues) serve(s *Store, ref Ref, own *queue, group []*member) {
	for group != nil {
		group = q.decide(s, ref, own, group)
	}
}

// next takes the next group, unless one is running that is not slow.
func (own *queue) next() []*member {
	if own.running > own.slow {
		return nil
	}
	if len(own.waiting) > maxGroup {
		own.waiting = own.leaveOut()
	}
	n := min(len(own.waiting), maxGroup)
	if n == 0 {
		return nil
	}
	group := own.waiting[:n:n]
	own.waiting = own.waiting[n:]
	own.running++
	return group
}

// leaveOut ends those who have less time left than a group takes, and returns the others. When more callers come than Redis
// can serve, each group would otherwise be of those whose time ends first, and be made for nobody.
func (own *queue) leaveOut() []*member {
	var inTime []*member
	for _, m := range own.waiting {
		if at, bounded := m.ctx.Deadline(); bounded && time.Until(at) < own.took {
			m.end(Outcome{}, errNoTime)
			continue
		}
		inTime = append(inTime, m)
	}
	return inTime
}

var errNoTime = errors.New("redisstore: too many others change the cart at the same time")

// decide decides a group, and returns the next one. If it is slow, another goroutine begins the next one meanwhile.
func (q *queues) decide(s *Store, ref Ref, own *queue, group []*member) []*member {
	q.mu.Lock()
	before := own.contended
	q.mu.Unlock()
	began := time.Now()
	ended, isSlow := false, false
	slow := time.AfterFunc(slowGroup, func() {
		q.mu.Lock()
		if ended {
			q.mu.Unlock()
			return
		}
		isSlow = true
		own.slow++
		next := own.next()
		q.mu.Unlock()
		q.serve(s, ref, own, next)
	})
	contended := s.decideAll(ref, group, before)
	slow.Stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	own.contended, own.took = contended, min(time.Since(began), 2*slowGroup)
	ended = true
	own.running--
	if isSlow {
		own.slow--
	}
	next := own.next()
	if next == nil && own.running == 0 && len(own.waiting) == 0 {
		delete(q.byCart, ref.key)
	}
	return next
}
