// Package lastknown keeps what a source last said, so that nobody waits for a
// source that is slow, frozen or gone: a value that is held is served at once, at
// most MaxAge old while the source answers, and as it was last known while it does
// not. Only what was never heard of has to wait, briefly, and then fails.
package lastknown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// ErrUnknown says that a value is not held and that its source is out of reach.
var ErrUnknown = errors.New("not held, and its source is out of reach")

// Config is what a Cache needs. A change at the source shows after MaxAge and one
// load at the latest, as long as the source answers within Patience.
type Config[K comparable, V any] struct {
	// Source returns the values of keys, in one query; a key without an entry does
	// not exist. It may be called MaxLoads times at once, must heed its context,
	// and outlives the request that asked.
	Source func(ctx context.Context, keys []K) (map[K]V, error)

	// Weigh estimates the bytes of a key and its value, the zero value where the key
	// does not exist. What the cache itself needs is added.
	Weigh func(K, V) uint32
	// MaxWeight bounds all entries together, in bytes; what is used least goes
	// first.
	MaxWeight uint64

	// Name is what the log calls the values, such as "products".
	Name string
	Log  *slog.Logger     // default slog.Default
	Now  func() time.Time // default time.Now

	RefreshAfter time.Duration // from this age on a value that is read is loaded anew, behind the reader's back. Default 350 ms
	MaxAge       time.Duration // from this age on its readers wait for it. Default 700 ms
	Patience     time.Duration // how long they wait before they take the old value. Default 50 ms
	MissPatience time.Duration // how long one waits who has no old value, and a load for its turn. Default 250 ms, or Patience if that is longer
	LoadTimeout  time.Duration // ends a load. Default 1 s, or Patience if that is longer
	Pause        time.Duration // between attempts at a source that fails. Default 100 ms
	MaxLoads     int           // loads at the same time; those past it wait for their turn, or are not begun while the source is not Reachable. Default 8
}

// Cache is safe for concurrent use.
type Cache[K comparable, V any] struct {
	c       Config[K, V]
	entries *otter.Cache[K, *entry[V]]
	born    time.Time
	expired atomic.Int64 // moment of the last ExpireAll
	gate    gate

	mu      sync.Mutex
	loading map[K]*load[K, V] // what a reader may wait for: not what was expired since
}

// moment is a time since the cache was born, so that a clock that is set back
// changes nothing. Moments are positive.
type moment = int64

// entry is one answer of the source. It does not change, but for expiring.
type entry[V any] struct {
	value  V
	exists bool
	// known is whether the key ever existed, as far as this cache knows. Only an
	// absence that follows a presence is relied on when the source is out of reach.
	known   bool
	at      moment       // when the load began: the value is at least as new
	expired atomic.Int64 // moment of the last Expire
}

// overhead is what the cache itself needs for an entry, in bytes.
const overhead = 256

// load is one question to the source, which many may wait for.
type load[K comparable, V any] struct {
	keys    []K
	done    chan struct{}   // closed under the cache's mu
	answers map[K]*entry[V] // once done; nil when the source failed
}

// New returns an empty cache. It needs no closing: it does nothing unless asked.
func New[K comparable, V any](c Config[K, V]) *Cache[K, V] {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.RefreshAfter = cmp.Or(c.RefreshAfter, 350*time.Millisecond)
	c.MaxAge = cmp.Or(c.MaxAge, 700*time.Millisecond)
	c.Patience = cmp.Or(c.Patience, 50*time.Millisecond)
	c.MissPatience = cmp.Or(c.MissPatience, max(250*time.Millisecond, c.Patience))
	c.LoadTimeout = cmp.Or(c.LoadTimeout, max(time.Second, c.Patience))
	c.Pause = cmp.Or(c.Pause, 100*time.Millisecond)
	c.MaxLoads = cmp.Or(c.MaxLoads, 8)
	return &Cache[K, V]{
		c:       c,
		born:    c.Now(),
		gate:    gate{slots: make(chan struct{}, c.MaxLoads), pause: c.Pause, brisk: c.Patience},
		loading: map[K]*load[K, V]{},
		entries: otter.Must(&otter.Options[K, *entry[V]]{
			MaximumWeight: c.MaxWeight,
			Weigher:       func(key K, e *entry[V]) uint32 { return overhead + c.Weigh(key, e.value) },
		}),
	}
}

// Get calls put with each of the keys that exists, and its value. All keys that
// need it are loaded by one query. An error is ErrUnknown, or that of a context
// that ended; put may have been called before.
func (c *Cache[K, V]) Get(ctx context.Context, keys []K, put func(K, V)) error {
	now := c.moment()
	var ageing, overdue []K // to be loaded: in the background, before answering
	held := true            // something is held for each that is overdue
	for _, key := range keys {
		e, _ := c.entries.GetIfPresent(key)
		switch c.state(e, now) {
		case overdueState:
			overdue = append(overdue, key)
			held = held && e.usable()
			continue
		case ageingState:
			ageing = append(ageing, key)
		}
		if e.exists {
			put(key, e.value)
		}
	}
	if len(overdue)+len(ageing) == 0 {
		return nil
	}
	loads := c.begin(ctx, overdue, ageing)
	if len(overdue) == 0 {
		return nil
	}
	if err := c.await(ctx, loads, held); err != nil {
		return err
	}
	return c.settle(overdue, loads, put)
}

// settle answers for the overdue keys: from their loads, or else as last known.
func (c *Cache[K, V]) settle(keys []K, loads map[K]*load[K, V], put func(K, V)) error {
	for _, key := range keys {
		e := loads[key].answer(key)
		if e == nil {
			if e, _ = c.entries.GetIfPresent(key); !e.usable() {
				return fmt.Errorf("%s %v: %w", c.c.Name, key, ErrUnknown)
			}
		}
		if e.exists {
			put(key, e.value)
		}
	}
	return nil
}

// Expire has a key loaded anew before it is served again, because it changed. Its
// value is kept for the case that the source cannot be reached then. A load that is
// under way may have read the old value: it counts for those who wait for it already.
func (c *Cache[K, V]) Expire(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.loading, key)
	if e, held := c.entries.GetEntryQuietly(key); held {
		e.Value.expired.Store(c.moment())
	}
}

// ExpireAll is Expire for every key.
func (c *Cache[K, V]) ExpireAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.loading)
	c.expired.Store(c.moment())
}

// Reachable reports whether the source answered when it was last asked, and in no
// more than Patience.
func (c *Cache[K, V]) Reachable() bool { return !c.gate.failing.Load() && !c.gate.slow.Load() }

func (c *Cache[K, V]) moment() moment { return 1 + int64(c.c.Now().Sub(c.born)) }

type state int

const (
	freshState   state = iota
	ageingState        // to be served, and loaded in the background
	overdueState       // to be loaded before it is served
)

func (c *Cache[K, V]) state(e *entry[V], now moment) state {
	switch {
	case e == nil || e.at <= e.expired.Load() || e.at <= c.expired.Load() || now-e.at >= int64(c.c.MaxAge):
		return overdueState
	case now-e.at >= int64(c.c.RefreshAfter):
		return ageingState
	}
	return freshState
}

// usable reports whether the entry may be served when the source cannot be asked.
func (e *entry[V]) usable() bool { return e != nil && e.known }
