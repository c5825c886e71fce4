package lastknown

import (
	"sync/atomic"
	"time"
)

// gate limits concurrent loads: a few while the source answers, one after each pause while
// it fails. Calls of enter and leave must not overlap.
type gate struct {
	slots     chan struct{} // has one element for each current load; queued loads wait to send
	pause     time.Duration
	slowAfter time.Duration // an answer that takes longer is slow

	// slow is whether the last or the current load takes longer than slowAfter. Readers
	// with an old value do not wait then.
	slow    atomic.Bool
	failing atomic.Bool
	retryAt time.Time // while failing
}

// enter reports whether a load may begin now. If so, the caller must call leave.
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

// queue is enter for loads that can wait. It waits in order until patience ends or the
// source fails.
func (g *gate) queue(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
	case <-timer.C:
		return false
	}
	if g.failing.Load() {
		<-g.slots // for the next in the queue, which gives up too
		return false
	}
	return true
}

// leave records the result of a load. turned reports whether the source began or stopped
// failing.
func (g *gate) leave(answered bool, took time.Duration, now time.Time) (turned bool) {
	g.slow.Store(!answered || took > g.slowAfter)
	if !answered {
		g.retryAt = now.Add(g.pause)
	}
	turned = g.failing.Swap(!answered) == answered
	<-g.slots // last, so that the next load sees whether the source fails
	return turned
}
