package limit

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"commerce/auth/bounded"
	"commerce/auth/problem"
)

// Window limits the different uses of each client, and of each site, in a period that begins with the
// first use. Counting a use, and asking whether the limit is reached, is one step, so that concurrent uses
// cannot pass the limit together. It is safe for concurrent use. A nil *Window has no limit.
type Window struct {
	shared
	Rate
	sites   *Window // nil in that of the sites
	clients *bounded.Cache[string, *period]
	seed    maphash.Seed
}

// NewWindow is for the only rate of c.
func NewWindow(c Config) *Window {
	w := newWindow(c)
	c.Rates = ofSite(c.Rates)
	w.sites = newWindow(c)
	return w
}

func newWindow(c Config) *Window {
	w := &Window{Rate: c.Rates[0], clients: bounded.New[string, *period](maxClients, nil), seed: maphash.MakeSeed()}
	w.configure(c)
	return w
}

// Take counts a use of a client, unless one of the same name has counted in this period; "" counts none, and only
// asks. If the limit was reached before, it returns a copy of refusal with the time that the client must wait. It
// waits for Redis even if ctx has ended, so that a client cannot avoid the count by disconnecting.
func (w *Window) Take(ctx context.Context, client, use string, refusal *problem.Error) *problem.Error {
	if w == nil {
		return nil
	}
	if wait := w.take(context.WithoutCancel(ctx), client, use); wait > 0 {
		return w.refused(refusal, wait, 0)
	}
	if site := siteOf(client); site != "" {
		return w.sites.Take(ctx, site, use, refusal)
	}
	return nil
}

// Refuse is Take without a use and without I/O: it refuses what this instance knows to be beyond the limit.
func (w *Window) Refuse(client string, refusal *problem.Error) *problem.Error {
	if w == nil {
		return nil
	}
	if p, ok := w.clients.Get(client); ok {
		if wait := p.take(w.Rate, 0, w.cfg.Now()); wait > 0 {
			return w.refused(refusal, wait, 0)
		}
	}
	if site := siteOf(client); site != "" {
		return w.sites.Refuse(site, refusal)
	}
	return nil
}

func (w *Window) take(ctx context.Context, client, use string) time.Duration {
	var name uint64
	if use != "" {
		name = maphash.String(w.seed, use) | 1
	}
	uses, left, ok := w.run(ctx, window, client, []any{w.Uses, w.Per.Milliseconds(), use})
	if ok && uses == 0 {
		return 0
	}
	p, now := w.clients.GetOrPut(client, func() *period { return &period{} }), w.cfg.Now()
	if !ok {
		return p.take(w.Rate, name, now)
	}
	left *= int64(time.Millisecond)
	p.learn(w.Rate, name, uses, now.Add(time.Duration(left)))
	if uses > w.Uses {
		return time.Duration(left)
	}
	return 0
}

// period is what an instance knows about a client's current period. It goes on from there without Redis.
type period struct {
	mu    sync.Mutex
	uses  int64
	names []uint64 // of those that this instance has counted; 0 is no name
	ends  time.Time
}

// take counts a use, unless it has counted. At the limit it returns how long the period still lasts.
func (p *period) take(r Rate, name uint64, now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	current := now.Before(p.ends)
	switch {
	case current && p.uses >= r.Uses:
		return p.ends.Sub(now)
	case name == 0 || current && slices.Contains(p.names, name):
		return 0
	case !current:
		p.uses, p.names, p.ends = 0, nil, now.Add(r.Per)
	}
	p.uses++
	p.names = append(p.names, name)
	return 0
}

// learn takes over what Redis has counted in the period until ends.
func (p *period) learn(r Rate, name uint64, uses int64, ends time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ends.Sub(p.ends) > r.Per/2 { // the clocks differ by less, so it is another period
		p.uses, p.names = 0, nil
	}
	p.ends, p.uses = ends, max(p.uses, min(uses, r.Uses))
	if name != 0 && uses <= r.Uses && !slices.Contains(p.names, name) {
		p.names = append(p.names, name)
	}
}
