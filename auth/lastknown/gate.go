package lastknown

import (
	"sync/atomic"
	"time"
)

// gate decides whether the source may be asked now: a few at the same time while
// it answers, one after each pause while it fails. Calls of enter and leave must
// not overlap.
type gate struct {
	slots chan struct{} // holds one for each load at the source; those who queue send
	pause time.Duration
	brisk time.Duration // an answer that takes longer is slow

	// slow is whether the source took longer than brisk when it was last asked, or
	// is taking longer now. Who holds an old value does not wait for it then.
	slow    atomic.Bool
	failing atomic.Bool
	retryAt time.Time // while failing
}

// enter reports whether to ask now. Who may must leave.
func (g *gate) enter(now time.Time) bool {
	if g.failing.Load() && (len(g.slots) > 0 || now.Before(g.retryAt)) {
		return false
	}
	select {
	case g.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// queue is enter for who can wait: first come, first served, until patience ends or
// the source fails.
func (g *gate) queue(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
	case <-timer.C:
		return false
	}
	if g.failing.Load() {
		<-g.slots // for the next in the queue, who gives up as well
		return false
	}
	return true
}

// leave notes how it went. turned says that the source began or ceased to fail.
func (g *gate) leave(answered bool, took time.Duration, now time.Time) (turned bool) {
	g.slow.Store(!answered || took > g.brisk)
	if !answered {
		g.retryAt = now.Add(g.pause)
	}
	turned = g.failing.Swap(!answered) == answered
	<-g.slots // last: who takes it sees whether the source fails
	return turned
}
