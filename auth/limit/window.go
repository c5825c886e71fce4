package limit

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"commerce/auth/bounded"
	"commerce/auth/problem"
)

// Window limits the uses of each client in a period that begins with its first use. It counts
// a use before it happens, so that concurrent uses cannot pass the limit together. It is safe
// for concurrent use. A nil *Window has no limit.
type Window struct {
	shared
	Rate
	clients *bounded.Cache[string, *period]
}

// NewWindow is for the only rate of c. With Redis, it counts only what Redis does not.
func NewWindow(c Config) *Window {
	w := &Window{Rate: c.Rates[0], clients: bounded.New[string, *period](maxClients, nil)}
	w.configure(c)
	return w
}

// Take counts a use of a client, until giveBack is called, which changes nothing in a later period. Beyond
// the limit it counts none, and returns a copy of refusal with the time that the client must wait. Take and
// giveBack wait for Redis even if ctx has ended, so that a client cannot avoid the count by disconnecting.
func (w *Window) Take(ctx context.Context, client string, refusal *problem.Error) (giveBack func(), refused *problem.Error) {
	if w == nil {
		return func() {}, nil
	}
	ctx = context.WithoutCancel(ctx)
	use := rand.Text()
	count := func(change int) (wait time.Duration, ok bool) {
		wait, _, ok = w.run(ctx, window, client, []any{w.Uses, w.Per.Milliseconds(), change, use})
		return wait, ok
	}
	wait, ok := count(1)
	giveBack = func() { count(-1) }
	if !ok {
		p := w.clients.GetOrPut(client, func() *period { return &period{} })
		var ends time.Time
		wait, ends = p.take(w.Rate, w.cfg.Now())
		giveBack = func() { p.giveBack(ends) }
	}
	if wait <= 0 {
		return giveBack, nil
	}
	return nil, w.refused(refusal, wait, 0)
}

type period struct {
	mu   sync.Mutex
	uses int64
	ends time.Time
}

// take counts a use in the period until ends. At the limit it counts none, and returns how long that still lasts.
func (p *period) take(r Rate, now time.Time) (wait time.Duration, ends time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !now.Before(p.ends) {
		p.uses, p.ends = 0, now.Add(r.Per)
	}
	if p.uses >= r.Uses {
		return p.ends.Sub(now), p.ends
	}
	p.uses++
	return 0, p.ends
}

func (p *period) giveBack(ends time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ends.Equal(ends) {
		p.uses--
	}
}
