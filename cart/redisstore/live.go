package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"commerce/cart"
)

// Sighting is a state of a cart that a listener learns of.
type Sighting struct {
	Tag     string // cart.Cart.Tag of the cart as it is now; of an unused cart if Gone
	Version int64
	Gone    bool // the cart was merged, handed over or erased, or has expired: nothing follows
}

// sightingOf returns what a tag says; any other text says that the cart is gone.
func sightingOf(tag string) Sighting {
	_, rest, _ := strings.Cut(tag, ".")
	version, _, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return Sighting{Tag: cart.Cart{}.Tag(), Gone: true}
	}
	return Sighting{Tag: tag, Version: n}
}

// of reports whether s is of a cart, by its latest sighting; "" for none yet.
func (s Sighting) of(last Sighting) bool {
	id, _, _ := strings.Cut(s.Tag, ".")
	return last.Tag == "" || strings.HasPrefix(last.Tag, id+".")
}

var (
	ErrNoCart = errors.New("redisstore: no cart to listen to")
	ErrBehind = errors.New("redisstore: the listener does not take its sightings")

	errLost    = errors.New("redisstore: the subscription was lost")
	errUnclear = errors.New("redisstore: another cart began meanwhile")
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

// live is all that listens to carts of a store. A topic is a cart that has listeners. A feed is a subscription to the
// topics of one master.
//
// Redis announces a change only to those who are subscribed at that moment. A sync of a topic makes sure that nothing
// was missed: it subscribes, if needed, then asks what the cart is now, and then waits for the reply to a PING on the
// subscription, which comes after all that was announced before.
type live struct {
	store *Store
	plain atomic.Bool // Redis does not know sharded pub/sub, as miniredis

	mu     sync.Mutex // of what follows, and of topics and listeners
	topics map[string]*topic
	feeds  map[*master]*feed
	count  int // of listeners
	ctx    context.Context
	stop   context.CancelFunc // closes all feeds
}

type topic struct {
	ref       Ref
	feed      *feed // nil: none is subscribed
	last      Sighting
	told      int // how often last was set
	synced    time.Time
	listeners []*Listener
}

// Listener receives the states of a cart. Its methods are not safe for concurrent use.
type Listener struct {
	live          *live
	topic         *topic
	started, gone bool // between these, it gets sightings
	waiting       []Sighting
	wake          func()
}

func newLive(s *Store) *live {
	return &live{store: s, topics: map[string]*topic{}, feeds: map[*master]*feed{}}
}

// Listen begins to listen to a cart. The first sighting is the cart as it is now. The caller calls Close. Errors:
// ErrNoCart, cart.Unavailable.
func (s *Store) Listen(ctx context.Context, ref Ref) (*Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	l := s.live.join(ref)
	err := s.live.sync(ctx, l.topic, l)
	for ctx.Err() == nil && (isElsewhere(err) || errors.Is(err, errLost) || errors.Is(err, errUnclear)) {
		_, _ = s.locateAgain(ctx, ref.cartKey())
		err = s.live.sync(ctx, l.topic, l)
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
func (v *live) join(ref Ref) *Listener {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.topics[ref.key]
	if t == nil {
		t = &topic{ref: ref, synced: time.Now()}
		v.topics[ref.key] = t
	}
	l := &Listener{live: v, topic: t, wake: func() {}}
	t.listeners = append(t.listeners, l)
	if v.count++; v.count == 1 {
		v.ctx, v.stop = context.WithCancel(context.Background())
		go v.keep(v.ctx)
	}
	return l
}

// Close ends listening.
func (l *Listener) Close() {
	v, t := l.live, l.topic
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.Index(t.listeners, l)
	if i < 0 {
		return
	}
	t.listeners = slices.Delete(t.listeners, i, i+1)
	if v.count--; v.count == 0 {
		v.stop()
		clear(v.feeds)
	}
	if len(t.listeners) == 0 {
		delete(v.topics, t.ref.key)
		if t.feed != nil {
			go t.feed.leave(t.ref.liveChannel())
		}
	}
}

// Wake sets the function that is called when sightings wait. It must not block.
func (l *Listener) Wake(f func()) {
	l.live.mu.Lock()
	defer l.live.mu.Unlock()
	l.wake = f
	f()
}

// Next returns the next sighting. ok is false if none waits. Error: ErrBehind.
func (l *Listener) Next() (s Sighting, ok bool, err error) {
	l.live.mu.Lock()
	defer l.live.mu.Unlock()
	switch {
	case len(l.waiting) > maxWaiting:
		return Sighting{}, false, ErrBehind
	case len(l.waiting) == 0:
		l.waiting = nil // an idle listener needs no memory for them
		return Sighting{}, false, nil
	}
	s, l.waiting = l.waiting[0], l.waiting[1:]
	return s, true, nil
}

func (l *Listener) put(s Sighting) {
	if l.gone || len(l.waiting) > maxWaiting {
		return
	}
	l.waiting, l.gone = append(l.waiting, s), s.Gone
	l.wake()
}

// tell gives the listeners a state of their cart. Another cart under the same key means that theirs is gone.
func (t *topic) tell(s Sighting) {
	mine := s.of(t.last)
	t.last = s
	t.told++
	if !mine {
		s = sightingOf("")
	}
	for _, l := range t.listeners {
		if l.started {
			l.put(s)
		}
	}
}

// sync makes sure that listeners know the cart as it is now. It starts l, if that is not nil, or else returns
// ErrNoCart.
func (v *live) sync(ctx context.Context, t *topic, l *Listener) error {
	ctx, cancel := context.WithTimeoutCause(ctx, syncTime, errHangs)
	defer cancel()
	at, err := v.store.masterOf(ctx, t.ref.cartKey())
	if err != nil {
		return err
	}
	f, told, subscribed := v.feedOf(t, at)
	if !subscribed {
		err = f.subscribe(ctx, t.ref.liveChannel())
	}
	var tag string
	if err == nil {
		tag, err = v.store.mark(ctx, t.ref, v.verb("publish"))
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
	return v.learn(t, f, sightingOf(tag), told, l)
}

// mark turns on announcements of a cart's changes, by a command, and returns the cart's tag; "" for no cart. Call it after
// subscribing.
func (s *Store) mark(ctx context.Context, ref Ref, command string) (tag string, err error) {
	_, err = s.step(ctx, "listen to cart", []string{ref.cartKey()}, 0, func(found *slot) (*commit, error) {
		held, err := parseMembers(found.hashes[0], nil)
		if tag = ""; err != nil || held.ID == "" {
			return nil, err
		}
		tag = held.Tag()
		left := held.Listened.Until - found.now.Unix()
		if held.Listened.By == command && left >= int64(markLife.Seconds())/2 {
			return nil, nil
		}
		c := found.commit() // who listens does not keep the cart from expiring
		c.write("HSET", found.keys[0], "n", c.nextFence(), "w", encodeListening(cart.Listening{Until: found.now.Add(markLife).Unix(), By: command}))
		return c, nil
	})
	return tag, err
}

// learn handles the state of a cart that a sync has found. told is what it was before.
func (v *live) learn(t *topic, f *feed, now Sighting, told int, l *Listener) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.feed != f {
		return errLost
	}
	if t.told != told && !now.of(t.last) { // which of the two carts is the newer one?
		return errUnclear
	}
	t.synced = time.Now()
	if t.told == told && t.last != now || t.last.Version < now.Version {
		if t.last.Version > 0 && time.Since(f.opened) > syncEvery { // f does not get what is announced
			go f.close(errLost)
		}
		t.tell(now)
	}
	if l != nil && now.Gone {
		return ErrNoCart
	}
	if l != nil {
		l.started = true
		l.put(t.last)
	}
	return nil
}

// keep syncs the topics whose time it is, and those that have no feed.
func (v *live) keep(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(keepEvery):
		}
		var all errgroup.Group
		all.SetLimit(syncs)
		for _, t := range v.due() {
			all.Go(func() error {
				_ = v.sync(ctx, t, nil) // next time
				return nil
			})
		}
		_ = all.Wait()
	}
}

// due returns the topics to sync, with one of each feed a second, which finds out whether the feed hangs.
func (v *live) due() (due []*topic) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, t := range v.topics {
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
