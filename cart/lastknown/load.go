package lastknown

import (
	"context"
	"slices"
	"time"
)

// begin sees to it that the overdue keys and the ageing ones are being loaded,
// those that are not yet by one query, and returns the loads of the overdue ones.
// A key for which none may be begun now has none.
func (c *Cache[K, V]) begin(ctx context.Context, overdue, ageing []K) map[K]*load[K, V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := slices.Concat(overdue, ageing)
	wanted = slices.DeleteFunc(wanted, func(key K) bool { return c.loading[key] != nil })
	if len(wanted) > 0 && c.gate.enter(c.c.Now()) {
		l := &load[K, V]{keys: wanted, done: make(chan struct{})}
		for _, key := range wanted {
			c.loading[key] = l
		}
		go c.run(context.WithoutCancel(ctx), l)
	}
	loads := make(map[K]*load[K, V], len(overdue))
	for _, key := range overdue {
		if l := c.loading[key]; l != nil {
			loads[key] = l
		}
	}
	return loads
}

// run asks the source. Nobody's request is at stake any more: a load that comes
// too late for the one who asked is there for the next.
func (c *Cache[K, V]) run(ctx context.Context, l *load[K, V]) {
	ctx, cancel := context.WithTimeout(ctx, c.c.LoadTimeout)
	defer cancel()
	start, began := c.c.Now(), c.moment()
	values, err := c.c.Source(ctx, l.keys)
	if err == nil {
		l.answers = c.keep(l.keys, values, began)
	}
	c.mu.Lock()
	for _, key := range l.keys {
		delete(c.loading, key)
	}
	c.mu.Unlock()
	now := c.c.Now()
	switch turned := c.gate.leave(err == nil, now.Sub(start), now); {
	case turned && err != nil:
		c.c.Log.WarnContext(ctx, "source out of reach: serving what is last known", "of", c.c.Name, "err", err)
	case turned:
		c.c.Log.InfoContext(ctx, "source answers again", "of", c.c.Name)
	}
	close(l.done)
}

// keep stores what the source said.
func (c *Cache[K, V]) keep(keys []K, values map[K]V, began moment) map[K]*entry[V] {
	answers := make(map[K]*entry[V], len(keys))
	for _, key := range keys {
		value, exists := values[key]
		e := &entry[V]{value: value, exists: exists, known: exists, at: began}
		if old, held := c.entries.GetEntryQuietly(key); held {
			e.known = exists || old.Value.known
			e.expired.Store(old.Value.expired.Load()) // it may have changed while it was loaded
		}
		c.entries.Set(key, e)
		answers[key] = e
	}
	return answers
}

// await waits for loads, but not longer than a caller who holds old values, or who
// does not, has patience.
func (c *Cache[K, V]) await(ctx context.Context, loads map[K]*load[K, V], held bool) error {
	patience := c.c.MissPatience
	if held {
		patience = c.c.Patience
		if c.gate.slow.Load() {
			return nil
		}
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, l := range loads {
		select {
		case <-l.done:
		case <-timer.C:
			c.gate.slow.Store(true)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// answer is what the load said of key; nil when it is none, not done, or failed.
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
