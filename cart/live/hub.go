// Package live sends those who follow a cart its states: see "Listening" in docs/design.md.
package live

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"commerce/cart"
	"commerce/cart/redisstore"
)

var (
	ErrNoCart = errors.New("live: no cart to listen to")
	ErrBehind = errors.New("live: the listener does not take its sightings")

	errLost    = errors.New("live: the subscription was lost")
	errUnclear = errors.New("live: another cart began meanwhile")
	errHangs   = errors.New("no answer to a listener")
)

const (
	maxWaiting = 512              // sightings of a listener: about 64 KB of events
	markLife   = 2 * time.Minute  // of the mark because of which changes are announced; a sync renews it
	syncEvery  = 20 * time.Second // a topic
	syncTime   = time.Second      // for one sync
	syncs      = 16               // at the same time
	keepEvery  = 250 * time.Millisecond
)

// Hub is all that listens to carts of a store. A topic is a cart that has listeners. A feed is a subscription to the
// topics of one master.
//
// Redis announces a change only to those who are subscribed at that moment. A sync of a topic makes sure that nothing
// was missed: it subscribes, if needed, then asks what the cart is now, and then waits for the reply to a PING on the
// subscription, which comes after all that was announced before.
type Hub struct {
	store *redisstore.Store
	plain atomic.Bool // Redis does not know sharded pub/sub, as miniredis

	mu     sync.Mutex        // of what follows, and of topics and listeners
	topics map[string]*topic // by their channels
	feeds  map[string]*feed  // by the addresses of their masters
	count  int               // of listeners
	ctx    context.Context
	stop   context.CancelFunc // closes all feeds
}

type topic struct {
	View
	ref       redisstore.Ref
	feed      *feed // nil: none is subscribed
	synced    time.Time
	listeners []*Listener
}

// NewHub returns a Hub without listeners.
func NewHub(s *redisstore.Store) *Hub {
	return &Hub{store: s, topics: map[string]*topic{}, feeds: map[string]*feed{}}
}

// Listen begins to listen to a cart. The first sighting is the cart as it is now. The caller calls Close. Errors:
// ErrNoCart, cart.Unavailable.
func (h *Hub) Listen(ctx context.Context, ref redisstore.Ref) (*Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	l := h.join(ref)
	err := h.sync(ctx, l.topic, l)
	for ctx.Err() == nil && (redisstore.IsElsewhere(err) || errors.Is(err, errLost) || errors.Is(err, errUnclear)) {
		h.store.AwaitMove(ctx, ref)
		err = h.sync(ctx, l.topic, l)
	}
	if err == nil {
		return l, nil
	}
	l.Close()
	if errors.Is(err, ErrNoCart) {
		return nil, err
	}
	return nil, cart.Unavailable("listen to cart", err)
}

// join adds a listener, which gets nothing before it is started.
func (h *Hub) join(ref redisstore.Ref) *Listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[ref.Channel()]
	if t == nil {
		t = &topic{ref: ref, synced: time.Now()}
		h.topics[ref.Channel()] = t
	}
	l := &Listener{hub: h, topic: t, wake: func() {}}
	t.listeners = append(t.listeners, l)
	if h.count++; h.count == 1 {
		h.ctx, h.stop = context.WithCancel(context.Background())
		go h.keep(h.ctx)
	}
	return l
}

// tell gives the listeners a state of their cart.
func (t *topic) tell(s Sighting) {
	s = t.Tell(s)
	for _, l := range t.listeners {
		if l.started {
			l.put(s)
		}
	}
}

// sync makes sure that listeners know the cart as it is now. It starts l, if that is not nil, or else returns
// ErrNoCart.
func (h *Hub) sync(ctx context.Context, t *topic, l *Listener) error {
	ctx, cancel := context.WithTimeoutCause(ctx, syncTime, errHangs)
	defer cancel()
	at, err := h.store.MasterOf(ctx, t.ref)
	if err != nil {
		return err
	}
	f, told, subscribed := h.feedOf(t, at)
	if !subscribed {
		err = f.subscribe(ctx, t.ref.Channel())
	}
	var tag string
	if err == nil {
		tag, err = h.store.Announce(ctx, t.ref, h.verb("publish"), markLife)
	}
	if err == nil {
		err = f.do(ctx, "ping", rand.Text()) // no earlier ping has the same reply
	}
	if context.Cause(ctx) == errHangs {
		f.close(errHangs)
	}
	if err != nil {
		return err
	}
	return h.learn(t, f, SightingOf(tag), told, l)
}

// learn handles the state of a cart that a sync has found. told is what it was before.
func (h *Hub) learn(t *topic, f *feed, now Sighting, told int, l *Listener) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.feed != f {
		return errLost
	}
	isNews, err := t.IsNews(now, told)
	if err != nil {
		return err
	}
	t.synced = time.Now()
	if isNews {
		if t.Last.Version > 0 && time.Since(f.opened) > syncEvery { // f does not get what is announced
			go f.close(errLost)
		}
		t.tell(now)
	}
	if l != nil && now.Gone {
		return ErrNoCart
	}
	if l != nil {
		l.started = true
		l.put(t.Last)
	}
	return nil
}

// keep syncs the topics whose time it is, and those that have no feed.
func (h *Hub) keep(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(keepEvery):
		}
		var all errgroup.Group
		all.SetLimit(syncs)
		for _, t := range h.due() {
			all.Go(func() error {
				_ = h.sync(ctx, t, nil) // next time
				return nil
			})
		}
		_ = all.Wait()
	}
}

// due returns the topics to sync, with one of each feed a second, which finds out whether the feed hangs.
func (h *Hub) due() (due []*topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.topics {
		switch f := t.feed; {
		case f != nil && time.Since(f.synced) > time.Second:
			f.synced = time.Now()
			fallthrough
		case f == nil, time.Since(t.synced) > syncEvery:
			due = append(due, t)
		}
	}
	return due
}
