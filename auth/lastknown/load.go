package lastknown

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"commerce/auth/timing"
)

// begin starts one load for the overdue and aging keys that have none, and returns the
// loads of the overdue ones. If a key is overdue and the source is Reachable, the load may
// queue. A key has no load if none may begin.
func (c *Cache[K, V]) begin(ctx context.Context, overdue, aging []K) map[K]*load[K, V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := slices.Concat(overdue, aging)
	wanted = slices.DeleteFunc(wanted, func(key K) bool { return c.loading[key] != nil })
	if len(wanted) > 0 {
		entered := c.gate.enter(c.c.Now())
		if entered || len(overdue) > 0 && c.Reachable() {
			l := &load[K, V]{keys: wanted, done: make(chan struct{})}
			for _, key := range wanted {
				c.loading[key] = l
			}
			go c.run(timing.Detach(ctx), l, entered)
		}
	}
	loads := make(map[K]*load[K, V], len(overdue))
	for _, key := range overdue {
		if l := c.loading[key]; l != nil {
			loads[key] = l
		}
	}
	return loads
}

// run calls the source, after the queue unless it has entered the gate. The load outlives
// its request; a late result serves the next one.
func (c *Cache[K, V]) run(ctx context.Context, l *load[K, V], entered bool) {
	if !entered && !c.gate.queue(c.c.MissPatience) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(l)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.c.LoadTimeout)
	defer cancel()
	start, began := c.c.Now(), c.moment()
	values, err := c.c.Source(ctx, l.keys)

	c.mu.Lock()
	var wanted []moment
	if err == nil {
		wanted = c.wanted(l, began)
		l.answers = c.keep(l, values, began)
	}
	c.failure = err
	now := c.c.Now()
	turned := c.gate.leave(err == nil, now.Sub(start), now)
	if turned && err != nil {
		c.lost = start
	}
	lost := c.lost
	c.end(l)
	shown := c.moment()
	c.mu.Unlock()
	for _, since := range wanted {
		c.c.Shown(time.Duration(shown - since))
	}
	switch {
	case turned && err != nil:
		c.c.Log.WarnContext(ctx, "cannot load values; known ones stay in use", "of", c.c.Name, "server", c.c.Server, "err", err)
	case turned:
		c.c.Log.InfoContext(ctx, "values can be loaded again", "of", c.c.Name, "server", c.c.Server, "after", now.Sub(lost).Round(time.Millisecond).String())
	}
}

// end removes a load and wakes its readers. The caller holds mu.
func (c *Cache[K, V]) end(l *load[K, V]) {
	for _, key := range l.keys {
		if c.loading[key] == l {
			delete(c.loading, key)
		}
	}
	close(l.done)
}

// keep stores the values of a load, except where a newer one is cached. The caller holds
// mu, so that no Expire is lost between a load and its entry.
func (c *Cache[K, V]) keep(l *load[K, V], values map[K]V, began moment) map[K]*entry[V] {
	answers := make(map[K]*entry[V], len(l.keys))
	for _, key := range l.keys {
		value, exists := values[key]
		e := &entry[V]{value: value, exists: exists, known: exists, at: began}
		if c.loading[key] != l { // expired while it was loaded
			e.expired.Store(began)
		}
		old, held := c.entries.Peek(key)
		if held {
			e.known = exists || old.known
		}
		if !held || old.at <= began {
			c.entries.Put(key, e)
		}
		answers[key] = e
	}
	return answers
}

// wanted returns since when readers have wanted the keys that were expired before the load
// began. The caller holds mu.
func (c *Cache[K, V]) wanted(l *load[K, V], began moment) []moment {
	if c.c.Shown == nil {
		return nil
	}
	var since []moment
	for _, key := range l.keys {
		old, held := c.entries.Peek(key)
		if !held || c.loading[key] != l || old.at > began {
			continue
		}
		if at := old.wanted.Load(); at != 0 {
			since = append(since, at)
		}
	}
	return since
}

// await waits for loads, at most Patience for a reader with old values (held), else
// MissPatience.
func (c *Cache[K, V]) await(ctx context.Context, loads map[K]*load[K, V], held bool) error {
	patience := c.c.MissPatience
	if held {
		patience = c.c.Patience
		if c.gate.slow.Load() {
			return nil
		}
	}
	start := time.Now()
	defer func() { timing.Add(ctx, timing.Catalog, time.Since(start)) }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, l := range loads {
		select {
		case <-l.done:
		case <-timer.C:
			c.late(l)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// late records that a reader stopped waiting for a load. If the load has just ended, its
// own time is more accurate.
func (c *Cache[K, V]) late(l *load[K, V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-l.done:
	default:
		c.gate.slow.Store(true)
	}
}

// answer returns the entry of key; nil if there is no load, or it is not done or failed.
func (l *load[K, V]) answer(key K) *entry[V] {
	if l == nil {
		return nil
	}
	select {
	case <-l.done:
		return l.answers[key]
	default:
		return nil
	}
}

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
