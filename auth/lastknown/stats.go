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

// result is how Get has looked up a key.
type result int

// The results; see Stats.
const (
	fresh result = iota
	waited
	stale
	missing
	failed
	results
)

// Stats returns the numbers of the cache.
func (c *Cache[K, V]) Stats() Stats {
	n := func(r result) uint64 { return c.counts.results[r].Load() }
	return Stats{n(fresh), n(waited), n(stale), n(missing), n(failed), c.counts.ages.oldest(c.moment())}
}

// counts are the numbers behind Stats.
type counts struct {
	results [results]atomic.Uint64
	ages    ages
}

// tally are the keys of one Get.
type tally struct {
	results [results]uint64
	oldest  int64 // age of the oldest value
}

// serve counts a key and passes its value on, if it exists.
func serve[K comparable, V any](t *tally, key K, e *entry[V], from result, now moment, put func(K, V)) {
	t.oldest = max(t.oldest, now-e.at)
	if !e.exists {
		t.results[missing]++
		return
	}
	t.results[from]++
	put(key, e.value)
}

// add counts the keys of one Get that began at a moment.
func (c *counts) add(t *tally, now moment) {
	for i, n := range t.results {
		if n > 0 {
			c.results[i].Add(n)
		}
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
