package server

import (
	"sync"
	"time"

	"commerce/auth/bounded"
)

// repeats limits how often the log says the same: one client that a limit refuses, or one lasting
// cause, would decide how much is logged. What it has forgotten is logged once more.
type repeats struct {
	seen *bounded.Cache[string, *repeat]
}

type repeat struct {
	mu    sync.Mutex
	next  time.Time // the earliest time of the next line
	count int       // since the latest line
}

func newRepeats() repeats { return repeats{bounded.New[string, *repeat](maxClients, nil)} }

// count counts an occurrence. If it is to be logged, which happens once per period, count returns the
// number of occurrences since the previous line, otherwise 0.
func (r repeats) count(what string, period time.Duration, now time.Time) int {
	one := r.seen.GetOrPut(what, func() *repeat { return &repeat{} })
	one.mu.Lock()
	defer one.mu.Unlock()
	one.count++
	if now.Before(one.next) {
		return 0
	}
	n := one.count
	one.next, one.count = now.Add(period), 0
	return n
}
