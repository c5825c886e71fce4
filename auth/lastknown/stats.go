package lastknown

import (
	"sync"
	"time"
)

// Stats count the keys that Get has looked up, by result, since the cache was made.
type Stats struct {
	Fresh   uint64 // a cached value was young enough
	Waited  uint64 // the source was asked first
	Stale   uint64 // the last known value, because the source did not answer in time
	Missing uint64 // the key does not exist
	Failed  uint64 // ErrUnknown, or the context ended

	// Oldest is the maximum age of the values that the last minute served; 0 for none.
	Oldest time.Duration
}

func (c *Cache[K, V]) Stats() Stats { return c.counts.sum(c.moment()) }

// serve counts a key, by its result if it exists, and then passes its value on.
func serve[K comparable, V any](counted *Stats, result *uint64, key K, e *entry[V], now moment, put func(K, V)) {
	counted.Oldest = max(counted.Oldest, time.Duration(now-e.at))
	if !e.exists {
		counted.Missing++
		return
	}
	*result++
	put(key, e.value)
}

// counts add up the Stats of all calls of Get. They remember the oldest value of each part of the
// last minute.
type counts struct {
	mu    sync.Mutex
	total Stats // without Oldest
	parts [6]struct {
		number int64
		oldest time.Duration
	}
}

const partLength = int64(10 * time.Second)

// add adds the keys of one Get that began at a moment.
func (c *counts) add(counted *Stats, now moment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.Fresh += counted.Fresh
	c.total.Waited += counted.Waited
	c.total.Stale += counted.Stale
	c.total.Missing += counted.Missing
	c.total.Failed += counted.Failed
	number := now / partLength
	part := &c.parts[number%int64(len(c.parts))]
	if part.number != number {
		part.number, part.oldest = number, 0
	}
	part.oldest = max(part.oldest, counted.Oldest)
}

func (c *counts) sum(now moment) Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.total
	for _, part := range c.parts {
		if now/partLength-part.number < int64(len(c.parts)) {
			sum.Oldest = max(sum.Oldest, part.oldest)
		}
	}
	return sum
}
