package lastknown

import (
	"sync"
	"sync/atomic"
	"time"
)

// gate decides whether the source may be asked now: a few at the same time while
// it answers, one after each pause while it fails.
type gate struct {
	max   int
	pause time.Duration
	brisk time.Duration // an answer that takes longer is slow

	// slow is whether the source took longer than brisk when it was last asked, or
	// is taking longer now. Who holds an old value does not wait for it then.
	slow    atomic.Bool
	failing atomic.Bool

	mu      sync.Mutex
	running int
	retryAt time.Time // while failing
}

// enter reports whether to ask now. Who may must leave.
func (g *gate) enter(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	allowed := g.running < g.max
	if g.failing.Load() {
		allowed = g.running == 0 && !now.Before(g.retryAt)
	}
	if allowed {
		g.running++
	}
	return allowed
}

// leave notes how it went. turned says that the source began or ceased to fail.
func (g *gate) leave(answered bool, took time.Duration, now time.Time) (turned bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.slow.Store(!answered || took > g.brisk)
	if !answered {
		g.retryAt = now.Add(g.pause)
	}
	return g.failing.Swap(!answered) == answered
}
