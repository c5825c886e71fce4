package lastknown

import (
	"sync"
	"sync/atomic"
	"time"
)

// Stats count the keys that Get has looked up, by result, since the cache was made.
type Stats struct {
	Fresh   uint64 // a cached value was young enough
	Waited  uint64 // the source was asked first
	Stale   uint64 // the last known value, because the source did not answer in time
	Missing uint64 // the key does not exist
	Failed  uint64 // ErrUnknown, or the context ended

	// Oldest is the maximum age of the values that were served in the last minute; 0 for
	// none.
	Oldest time.Duration
}

// Stats returns the numbers of the cache.
func (c *Cache[K, V]) Stats() Stats {
	return Stats{
		Fresh: c.counts.fresh.Load(), Waited: c.counts.waited.Load(), Stale: c.counts.stale.Load(),
		Missing: c.counts.missing.Load(), Failed: c.counts.failed.Load(),
		Oldest: c.counts.ages.oldest(c.moment()),
	}
}

// counts are the numbers behind Stats.
type counts struct {
	fresh, waited, stale, missing, failed atomic.Uint64
	ages                                  ages
}

// result is where a served value comes from.
type result int

const (
	fromCache  result = iota // young enough
	fromSource               // loaded for this call
	fromBefore               // the last known one
)

// tally are the keys of one Get.
type tally struct {
	results [fromBefore + 1]uint64
	missing uint64
	oldest  int64 // age of the oldest value
}

// serve counts a key and passes its value on, if it exists.
func serve[K comparable, V any](t *tally, key K, e *entry[V], from result, now moment, put func(K, V)) {
	t.oldest = max(t.oldest, now-e.at)
	if !e.exists {
		t.missing++
		return
	}
	t.results[from]++
	put(key, e.value)
}

// add counts the keys of one Get that returns at a moment.
func (c *counts) add(t *tally, now moment) {
	for i, total := range [...]*atomic.Uint64{fromCache: &c.fresh, fromSource: &c.waited, fromBefore: &c.stale} {
		if n := t.results[i]; n > 0 {
			total.Add(n)
		}
	}
	if t.missing > 0 {
		c.missing.Add(t.missing)
	}
	c.ages.note(t.oldest, now)
}

// ages remember the oldest value of each part of the last minute.
type ages struct {
	mu    sync.Mutex
	parts [6]struct {
		number, oldest int64
	}
}

// agePart is the length of a part.
const agePart = int64(10 * time.Second)

func (a *ages) note(age int64, now moment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	number := now / agePart
	part := &a.parts[number%int64(len(a.parts))]
	if part.number != number {
		part.number, part.oldest = number, 0
	}
	part.oldest = max(part.oldest, age)
}

func (a *ages) oldest(now moment) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var oldest int64
	for _, part := range a.parts {
		if now/agePart-part.number < int64(len(a.parts)) {
			oldest = max(oldest, part.oldest)
		}
	}
	return time.Duration(oldest)
}
