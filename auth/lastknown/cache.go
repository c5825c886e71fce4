// Package lastknown caches the values of a source, so that requests do not wait for a
// source that is slow or down. A cached value is served immediately. It is at most MaxAge
// old while the source answers, and the last known one while it does not. A value that was
// never loaded waits briefly, then fails.
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

	"commerce/auth/bounded"
)

// ErrUnknown means that a value is not cached and that its source is unreachable. The text
// of an error that wraps it says why.
var ErrUnknown = errors.New("not cached")

// Config configures a Cache. A change at the source is visible after at most MaxAge plus
// one load, as long as the source answers within Patience.
type Config[K comparable, V any] struct {
	// Source returns the values of one or more keys of one Get. A key without an entry does
	// not exist. Up to MaxLoads calls are concurrent. A call must respect its context and may
	// outlive the request that caused it. See Each.
	Source func(ctx context.Context, keys []K) (map[K]V, error)

	// Weigh estimates the bytes of a key and its value, which is the zero value if the
	// key does not exist. The cache adds its own overhead.
	Weigh func(K, V) uint32
	// MaxWeight bounds the sum of all entries in bytes. Those not used lately are evicted.
	MaxWeight uint64

	// Name is the name of the values in the log, such as "products". Server is the name of
	// the source's server.
	Name, Server string

	Log *slog.Logger     // default slog.Default
	Now func() time.Time // default time.Now

	// Shown is called when a key that was expired has been loaded again, with the time since
	// the first read that needed it: until then nobody can have seen the old value. nil:
	// nothing is called.
	Shown func(delay time.Duration)

	RefreshAfter time.Duration // age at which a read starts a reload in the background. Default 350 ms
	MaxAge       time.Duration // age at which readers wait for a reload. Default 700 ms
	Patience     time.Duration // how long they wait before they use the old value. Default 50 ms
	MissPatience time.Duration // for readers without one, and a load in the queue. Default 250 ms, or Patience if longer
	MaxLoads     int           // concurrent loads; others queue, or do not begin while the source is not Reachable. Default 8
}

// Cache is safe for concurrent use.
type Cache[K comparable, V any] struct {
	c       Config[K, V]
	entries *bounded.Cache[K, *entry[V]]
	born    time.Time
	expired atomic.Int64 // moment of the last ExpireAll
	counts  counts

	slots  chan struct{}          // has one element for each current load; queued loads wait to send
	outage atomic.Pointer[outage] // nil if the last load succeeded; changed under mu
	// slow is whether the last or the current load takes longer than Patience. Readers with an old
	// value do not wait then.
	slow atomic.Bool

	mu      sync.Mutex
	loading map[K]*load[K, V] // loads that readers may wait for; not those that were expired since
}

// moment is a positive duration since the cache was made, whatever happens to the clock.
type moment = int64

// entry is one result of the source. It is immutable except for expired.
type entry[V any] struct {
	value  V
	exists bool
	// known is whether the key ever existed in this cache. While the source is
	// unreachable, an absence is served only for such a key.
	known   bool
	at      moment       // start of the load
	expired atomic.Int64 // moment of the last Expire
	wanted  atomic.Int64 // moment of the first read after it expired; 0 for none
}

// overhead bounds what the cache needs for an entry: 130 to 250 bytes, by the size of the keys.
const overhead = 256

// load is one call of the source. Several readers may wait for it.
type load[K comparable, V any] struct {
	keys    []K
	done    chan struct{}   // closed under the cache's mu
	answers map[K]*entry[V] // set when done; nil if the source failed
}

// New returns an empty cache. It does not need to be closed.
func New[K comparable, V any](c Config[K, V]) *Cache[K, V] {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Shown == nil {
		c.Shown = func(time.Duration) {}
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	c.RefreshAfter = cmp.Or(c.RefreshAfter, 350*time.Millisecond)
	c.MaxAge = cmp.Or(c.MaxAge, 700*time.Millisecond)
	c.Patience = cmp.Or(c.Patience, 50*time.Millisecond)
	c.MissPatience = cmp.Or(c.MissPatience, max(250*time.Millisecond, c.Patience))
	c.MaxLoads = cmp.Or(c.MaxLoads, 8)
	return &Cache[K, V]{
		c:       c,
		born:    c.Now(),
		slots:   make(chan struct{}, c.MaxLoads),
		loading: map[K]*load[K, V]{},
		entries: bounded.New(c.MaxWeight, func(key K, e *entry[V]) uint32 { return overhead + c.Weigh(key, e.value) }),
	}
}

// Get calls put for each key that exists. One call of the source loads all keys that need
// it. The error is ErrUnknown or that of the context. put may have been called before an
// error.
func (c *Cache[K, V]) Get(ctx context.Context, keys []K, put func(K, V)) error {
	now := c.moment()
	var counted Stats
	defer func() { c.counts.add(&counted, now) }()
	var aging, overdue []K // to load in the background, and before the answer
	held := true           // all overdue keys have a usable entry
	for _, key := range keys {
		e, _ := c.entries.Get(key)
		expired := e != nil && (e.at <= e.expired.Load() || e.at <= c.expired.Load())
		if expired {
			e.wanted.CompareAndSwap(0, now)
		}
		if e == nil || expired || now-e.at >= int64(c.c.MaxAge) {
			overdue = append(overdue, key)
			held = held && e.usable()
			continue
		}
		if now-e.at >= int64(c.c.RefreshAfter) {
			aging = append(aging, key)
		}
		serve(&counted, &counted.Fresh, key, e, now, put)
	}
	if len(overdue)+len(aging) == 0 {
		return nil
	}
	loads := c.begin(ctx, overdue, aging)
	if len(overdue) == 0 {
		return nil
	}
	if err := c.await(ctx, loads, held); err != nil {
		counted.Failed += uint64(len(overdue))
		return err
	}
	return c.settle(overdue, loads, &counted, put)
}

// settle returns the overdue keys from their loads, or else the last known values.
func (c *Cache[K, V]) settle(keys []K, loads []*load[K, V], counted *Stats, put func(K, V)) error {
	now := c.moment()
	for i, key := range keys {
		e, result := loads[i].answer(key), &counted.Waited
		if e == nil {
			if e, _ = c.entries.Get(key); !e.usable() {
				counted.Failed += uint64(len(keys) - i)
				return c.unknown()
			}
			result = &counted.Stale
		}
		serve(counted, result, key, e, now, put)
	}
	return nil
}

// unknown returns the error for a key that is not cached. It does not name the key, which
// may be a customer's. The caller says what it looked for.
func (c *Cache[K, V]) unknown() error {
	if o := c.outage.Load(); o != nil {
		return fmt.Errorf("%w: %v", ErrUnknown, o.err)
	}
	return fmt.Errorf("%w: %s: no answer after %s", ErrUnknown, c.c.Server, c.c.MissPatience)
}

// Expire makes the next read of a key reload it. Its value is kept in case the source is
// unreachable then. A current load may have read the old value, so only readers that
// already wait for it use it.
func (c *Cache[K, V]) Expire(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.loading, key)
	if e, held := c.entries.Peek(key); held {
		e.expired.Store(c.moment())
	}
}

// ExpireAll is Expire for every key.
func (c *Cache[K, V]) ExpireAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.loading)
	c.expired.Store(c.moment())
}

// Reachable reports whether the last load succeeded within Patience.
func (c *Cache[K, V]) Reachable() bool { return c.outage.Load() == nil && !c.slow.Load() }

func (c *Cache[K, V]) moment() moment { return 1 + int64(c.c.Now().Sub(c.born)) }

// usable reports whether the entry may be served while the source is unreachable.
func (e *entry[V]) usable() bool { return e != nil && e.known }

// Each makes a Config.Source from a function that loads one key. load returns false
// if the key does not exist. Several keys take one call each, one after the other.
func Each[K comparable, V any](load func(context.Context, K) (V, bool, error)) func(context.Context, []K) (map[K]V, error) {
	return func(ctx context.Context, keys []K) (map[K]V, error) {
		values := make(map[K]V, len(keys))
		for _, key := range keys {
			value, exists, err := load(ctx, key)
			if err != nil {
				return nil, err
			}
			if exists {
				values[key] = value
			}
		}
		return values, nil
	}
}
