package lastknown

import (
	"context"
	"reflect"
	"slices"
	"time"

	"commerce/auth/timing"
)

// begin starts one load for the overdue and aging keys that have none, and returns the
// loads of the overdue ones. If a key is overdue and the source is Reachable, the load may
// queue. The load of a key is nil if none may begin.
func (c *Cache[K, V]) begin(ctx context.Context, overdue, aging []K) []*load[K, V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := slices.Concat(overdue, aging)
	wanted = slices.DeleteFunc(wanted, func(key K) bool { return c.loading[key] != nil })
	if len(wanted) > 0 {
		entered := c.enter()
		if entered || len(overdue) > 0 && c.Reachable() {
			l := &load[K, V]{keys: wanted, done: make(chan struct{})}
			for _, key := range wanted {
				c.loading[key] = l
			}
			go c.run(timing.Detach(ctx), l, entered)
		}
	}
	loads := make([]*load[K, V], len(overdue))
	for i, key := range overdue {
		loads[i] = c.loading[key]
	}
	return loads
}

type outage struct {
	began   moment
	err     error  // of the last load
	retryAt moment // when the next one may begin
}

const pause = 100 * time.Millisecond

// enter reports whether a load may begin now: a few while the source answers, one after each pause
// while it fails. If so, run takes its slot back. The caller holds mu.
func (c *Cache[K, V]) enter() bool {
	if o := c.outage.Load(); o != nil && (len(c.slots) > 0 || c.moment() < o.retryAt) {
		return false
	}
	select {
	case c.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// queue is enter for loads that wait, in order, until MissPatience ends or the source fails.
func (c *Cache[K, V]) queue() bool {
	select {
	case c.slots <- struct{}{}:
	case <-time.After(c.c.MissPatience):
		return false
	}
	if c.outage.Load() != nil {
		<-c.slots // for the next in the queue, which gives up too
		return false
	}
	return true
}

// run calls the source, after the queue unless it has entered. The load outlives its request; a
// late result serves the next one.
func (c *Cache[K, V]) run(ctx context.Context, l *load[K, V], entered bool) {
	if !entered && !c.queue() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(l)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, max(time.Second, c.c.Patience))
	defer cancel()
	began := c.moment()
	values, err := c.c.Source(ctx, l.keys)

	c.mu.Lock()
	var wanted []moment
	if err == nil {
		wanted = c.keep(l, values, began)
	}
	before := c.report(began, err)
	c.end(l)
	now := c.moment()
	c.mu.Unlock()
	for _, since := range wanted {
		c.c.Shown(time.Duration(now - since))
	}
	switch {
	case before == nil && err != nil:
		c.c.Log.WarnContext(ctx, "cannot load values; known ones stay in use", "of", c.c.Name, "server", c.c.Server, "err", err)
	case before != nil && err == nil:
		lasted := time.Duration(now - before.began).Round(time.Millisecond)
		c.c.Log.InfoContext(ctx, "values can be loaded again", "of", c.c.Name, "server", c.c.Server, "after", lasted.String())
	}
}

// report records the result of a load, and returns the outage before it. The caller holds mu.
func (c *Cache[K, V]) report(began moment, err error) (before *outage) {
	now := c.moment()
	before = c.outage.Load()
	c.slow.Store(err != nil || now-began > int64(c.c.Patience))
	switch {
	case err == nil:
		c.outage.Store(nil)
	case before == nil:
		c.outage.Store(&outage{began, err, now + int64(pause)})
	default:
		c.outage.Store(&outage{before.began, err, now + int64(pause)})
	}
	<-c.slots // last, so that the next load sees whether the source fails
	return before
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

// keep stores the values of a load, except where a newer one is cached. An unchanged value keeps its
// address, which can be part of another cache's key. keep returns since when readers have wanted the keys
// that were expired before the load began. The caller holds mu, so that no Expire is lost between a load
// and its entry.
func (c *Cache[K, V]) keep(l *load[K, V], values map[K]V, began moment) (wanted []moment) {
	l.answers = make(map[K]*entry[V], len(l.keys))
	for _, key := range l.keys {
		value, exists := values[key]
		old, held := c.entries.Peek(key)
		if held && reflect.DeepEqual(value, old.value) {
			value = old.value
		}
		e := &entry[V]{value: value, exists: exists, known: exists, at: began}
		l.answers[key] = e
		current := c.loading[key] == l
		if !current { // expired while it was loaded
			e.expired.Store(began)
		}
		if held {
			e.known = exists || old.known
		}
		if held && old.at > began {
			continue
		}
		if held && current && old.wanted.Load() != 0 {
			wanted = append(wanted, old.wanted.Load())
		}
		c.entries.Put(key, e)
	}
	return wanted
}

// await waits at most Patience for a reader with old values (held), else MissPatience.
func (c *Cache[K, V]) await(ctx context.Context, loads []*load[K, V], held bool) error {
	patience := c.c.MissPatience
	if held {
		patience = c.c.Patience
		if c.slow.Load() {
			return nil
		}
	}
	start := time.Now()
	defer func() { timing.Add(ctx, timing.Catalog, time.Since(start)) }()
	over := time.After(patience)
	for _, l := range loads {
		if l == nil {
			continue
		}
		select {
		case <-l.done:
		case <-over:
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
	if !l.ended() {
		c.slow.Store(true)
	}
}

// answer returns the entry of key; nil if there is no load, or it is not done or failed.
func (l *load[K, V]) answer(key K) *entry[V] {
	if l == nil || !l.ended() {
		return nil
	}
	return l.answers[key]
}

func (l *load[K, V]) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}
