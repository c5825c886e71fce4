package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"commerce/auth/cause"
	"commerce/auth/script"
	"commerce/cart"
)

// Sighting is a state of a cart that a listener learns of.
type Sighting struct {
	Tag     string // cart.Cart.Tag of the cart as it is now; of an unused cart if Gone
	Version int64
	Gone    bool // the cart was merged, handed over or erased, or has expired: nothing follows
}

// sightingOf returns what a tag or "gone" says.
func sightingOf(payload string) Sighting {
	_, rest, _ := strings.Cut(payload, ".")
	version, _, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return Sighting{Tag: cart.Cart{}.Tag(), Gone: true}
	}
	return Sighting{Tag: payload, Version: n}
}

// before reports whether other is a later version of the same cart.
func (s Sighting) before(other Sighting) bool { return s.sameCart(other) && s.Version < other.Version }

func (s Sighting) sameCart(other Sighting) bool {
	id, _, _ := strings.Cut(s.Tag, ".")
	return strings.HasPrefix(other.Tag, id+".")
}

var (
	// ErrNoCart means that there is no cart to listen to.
	ErrNoCart = errors.New("redisstore: no cart")

	// ErrBehind means that a listener has not taken its sightings for too long.
	ErrBehind = errors.New("redisstore: listener is behind")

	errFeedClosed = errors.New("redisstore: the subscription was lost")
)

const (
	gone = "gone" // announced instead of a tag

	maxWaiting = 512 // sightings of a listener: about 64 KB of events

	// A change is announced while the mark in the cart lives, which every sync extends.
	markLife  = 2 * time.Minute
	syncEvery = 20 * time.Second
	syncTime  = time.Second // of one sync
	syncs     = 16          // at the same time

	keepEvery   = time.Second
	longestWait = 5 * time.Second // between attempts to subscribe again
)

// live has everything that listens to carts of a store. A topic is a cart that somebody listens to. A feed is a
// subscription to topics of one master. All is closed when nothing listens.
//
// Redis announces a change on the channel of its cart, to those subscribed at that moment. So a sync makes sure
// that nothing was missed: it subscribes, if needed, then asks what the cart is, and then waits for the reply to a
// PING on the subscription, before which everything arrives that was announced before.
type live struct {
	store *Store

	mu     sync.Mutex // of all that follows, topics and listeners included
	topics map[string]*topic
	feeds  map[*master]*feed
	count  int
	lost   chan struct{} // wakes keep
	ctx    context.Context
	stop   context.CancelFunc
}

// topic is a cart that somebody listens to.
type topic struct {
	ref       Ref
	feed      *feed // that is subscribed to it; nil: none is
	last      Sighting
	changes   int  // of last, and messages
	repeat    bool // listeners get last after the next sync, also if it has not changed
	synced    time.Time
	listeners map[*Listener]bool // whether they have got their first sighting
}

// Listener receives the states of a cart. Its methods are not safe for concurrent use.
type Listener struct {
	live    *live
	topic   *topic
	waiting []Sighting
	behind  bool
	gone    bool // nothing follows what waits
	wake    chan struct{}
}

func newLive(s *Store) *live {
	return &live{store: s, topics: map[string]*topic{}, feeds: map[*master]*feed{}, lost: make(chan struct{}, 1)}
}

// Listen begins to listen to a cart. The first sighting is the cart as it is now. The caller calls Close. Errors:
// ErrNoCart, cart.Unavailable.
func (s *Store) Listen(ctx context.Context, ref Ref) (*Listener, error) {
	l := s.live.join(ref)
	for try := 0; ; try++ {
		err := s.live.sync(ctx, l.topic, l)
		if err == nil {
			return l, nil
		}
		if try < redirections && ctx.Err() == nil && (isElsewhere(err) || errors.Is(err, errFeedClosed)) {
			_, _ = s.locateAgain(ctx, ref.cartKey())
			continue
		}
		l.Close()
		if errors.Is(err, ErrNoCart) {
			return nil, err
		}
		return nil, cart.Unavailable("listen to cart", err)
	}
}

// Listeners returns how many listeners there are.
func (s *Store) Listeners() int {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	return s.live.count
}

// Next waits for the next sighting. Errors: that of ctx, ErrBehind.
func (l *Listener) Next(ctx context.Context) (Sighting, error) {
	for {
		if s, err, ok := l.take(); ok {
			return s, err
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return Sighting{}, ctx.Err()
		}
	}
}

func (l *Listener) take() (s Sighting, err error, ok bool) {
	l.live.mu.Lock()
	defer l.live.mu.Unlock()
	switch {
	case l.behind:
		return Sighting{}, ErrBehind, true
	case len(l.waiting) == 0:
		return Sighting{}, nil, false
	}
	s, l.waiting = l.waiting[0], l.waiting[1:]
	return s, nil, true
}

// put adds a sighting.
func (l *Listener) put(s Sighting) {
	if l.gone {
		return
	}
	l.gone = s.Gone
	if l.behind = l.behind || len(l.waiting) == maxWaiting; !l.behind {
		l.waiting = append(l.waiting, s)
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// join adds a listener, which gets nothing before a sync.
func (v *live) join(ref Ref) *Listener {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.topics[ref.key]
	if t == nil {
		t = &topic{ref: ref, listeners: map[*Listener]bool{}, synced: time.Now()}
		v.topics[ref.key] = t
	}
	l := &Listener{live: v, topic: t, wake: make(chan struct{}, 1)}
	t.listeners[l] = false
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
	if _, listens := t.listeners[l]; !listens {
		return
	}
	delete(t.listeners, l)
	if v.count--; v.count == 0 {
		v.stop() // closes all feeds
		clear(v.feeds)
	}
	if len(t.listeners) > 0 {
		return
	}
	delete(v.topics, t.ref.key)
	if t.feed != nil {
		go t.feed.leave(t.ref.liveChannel())
	}
}

// sync makes sure that a topic is subscribed to, and that its listeners know the cart as it is now. It starts l,
// if that is not nil. Errors: ErrNoCart only with l, errFeedClosed, and those of Redis.
func (v *live) sync(ctx context.Context, t *topic, l *Listener) error {
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	v.mu.Lock()
	f, live := t.feed, v.ctx
	v.mu.Unlock()
	if f == nil {
		at, err := v.store.masterOf(ctx, t.ref.cartKey())
		if err != nil {
			return err
		}
		f = v.feedOf(live, at)
		if err := f.join(ctx, t.ref.liveChannel()); err != nil {
			return err
		}
	}
	v.mu.Lock()
	changes := t.changes
	v.mu.Unlock()
	reply, err := v.store.scripts["listen"].Run(ctx, v.store.Client, script.Repeatable,
		[]string{t.ref.cartKey()}, int64(markLife.Seconds()), f.command()).Text()
	if err != nil && !isMissing(err) {
		return err
	}
	if err := f.ping(ctx); err != nil {
		return err
	}
	return v.learn(t, f, sightingOf(reply), changes, l)
}

// learn handles the state of a cart that a sync has found. changes is what the topic had counted before.
func (v *live) learn(t *topic, f *feed, now Sighting, changes int, l *Listener) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.feed != f {
		return errFeedClosed
	}
	t.synced = time.Now()
	switch {
	case t.last.Tag == "":
		t.tell(now)
	case !t.last.sameCart(now):
		t.tell(sightingOf(gone))
		t.last = now
	case t.changes == changes && t.last != now, t.last.before(now): // it was not announced, or not to f
		t.tell(now)
		f.distrust()
	case t.repeat:
		t.tell(now)
	}
	t.repeat = false
	switch _, listens := t.listeners[l]; {
	case listens && now.Gone:
		return ErrNoCart
	case listens:
		t.listeners[l] = true
		l.put(t.last)
	}
	return nil
}

// tell gives a state of the cart to the listeners.
func (t *topic) tell(s Sighting) {
	t.last, t.repeat = s, false
	t.changes++
	for l, started := range t.listeners {
		if started {
			l.put(s)
		}
	}
}

// keep syncs each topic every syncEvery, and soon after its feed is lost. While that fails, it waits longer.
func (v *live) keep(ctx context.Context) {
	for wait := keepEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-v.lost:
			wait = rand.N(keepEvery / 5) // instances lose their subscriptions at the same time
			continue
		case <-time.After(wait):
		}
		if v.syncDue(ctx) {
			wait = keepEvery
		} else {
			wait = min(wait+rand.N(keepEvery), longestWait)
		}
	}
}

// syncDue syncs the topics whose time it is, and reports whether it succeeded. The topics of a master that does
// not answer are left for the next time.
func (v *live) syncDue(ctx context.Context) bool {
	byMaster, failed := map[*master][]*topic{}, atomic.Bool{}
	for _, t := range v.due(ctx) {
		at, err := v.store.masterOf(ctx, t.ref.key)
		if err != nil {
			failed.Store(true)
			continue
		}
		byMaster[at.master] = append(byMaster[at.master], t)
	}
	var all sync.WaitGroup
	for _, topics := range byMaster {
		all.Go(func() {
			some, ctx := errgroup.WithContext(ctx)
			some.SetLimit(syncs)
			for _, t := range topics {
				some.Go(func() error {
					err := ctx.Err()
					if err == nil {
						err = v.sync(ctx, t, nil)
					}
					if err != nil {
						failed.Store(true)
					}
					if isReply(err) {
						return nil
					}
					return err
				})
			}
			_ = some.Wait()
		})
	}
	all.Wait()
	if cluster, ok := v.store.Client.(*redis.ClusterClient); ok && failed.Load() {
		cluster.ReloadState(ctx)
	}
	return !failed.Load()
}

// due returns the topics whose time it is. It checks all feeds, and closes those that have none.
func (v *live) due(ctx context.Context) (due []*topic) {
	v.mu.Lock()
	defer v.mu.Unlock()
	used := map[*feed]bool{}
	for _, t := range v.topics {
		used[t.feed] = true
		if t.feed == nil || time.Since(t.synced) > syncEvery {
			due = append(due, t)
		}
	}
	for _, f := range v.feeds {
		switch silent := time.Since(f.opened); {
		case used[f]:
			go f.check(ctx)
		case silent > syncTime:
			go f.close(errFeedClosed)
		}
	}
	return due
}

// feed is a subscription to topics of one master: a connection on which Redis sends what is announced. Any failure
// closes it, and keep opens another one.
type feed struct {
	live   *live
	at     located
	ctx    context.Context
	opened time.Time
	sub    *redis.PubSub // safe for concurrent use, apart from Receive
	plain  atomic.Bool   // the server does not know sharded pub/sub, as miniredis
	heard  atomic.Bool   // anything, since the latest check

	mu      sync.Mutex
	awaited []awaited // replies, in their order
	err     error     // why it is closed
	closed  chan struct{}
}

// awaited is the reply to a command.
type awaited struct {
	to    string // kind and channel of a Subscription; "" for a Pong
	reply chan error
}

// feedOf returns the feed of a master.
func (v *live) feedOf(ctx context.Context, at located) *feed {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.feeds[at.master]
	if f == nil {
		f = &feed{live: v, at: at, ctx: ctx, opened: time.Now(), sub: at.client.SSubscribe(ctx), closed: make(chan struct{})}
		v.feeds[at.master] = f
		context.AfterFunc(ctx, func() { f.close(errFeedClosed) })
		go f.read()
	}
	return f
}

// close ends a feed. Its topics need another one.
func (f *feed) close(err error) {
	f.mu.Lock()
	first := f.err == nil
	if first {
		f.err = err
		close(f.closed)
	}
	f.mu.Unlock()
	if !first {
		return
	}
	_ = f.sub.Close()
	v := f.live
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.feeds[f.at.master] == f {
		delete(v.feeds, f.at.master)
	}
	for _, t := range v.topics {
		if t.feed == f {
			v.lose(t)
		}
	}
}

// lose notes that a topic has no feed.
func (v *live) lose(t *topic) {
	t.feed, t.repeat = nil, true
	select {
	case v.lost <- struct{}{}:
	default:
	}
}

// read handles all that Redis sends, until the feed is closed.
func (f *feed) read() {
	for {
		got, err := f.sub.Receive(f.ctx)
		f.heard.Store(true)
		switch got := got.(type) {
		case *redis.Message:
			f.announced(got.Channel, sightingOf(got.Payload))
		case *redis.Subscription:
			f.subscribed(got.Channel, !strings.Contains(got.Kind, "un"))
			f.replied(got.Kind+" "+got.Channel, nil)
		case *redis.Pong:
			f.replied("", nil)
		default:
			if !isReply(err) {
				f.close(err)
				return
			}
			f.replied("", err)
		}
	}
}

// announced tells the listeners of a topic its new state.
func (f *feed) announced(channel string, s Sighting) {
	f.live.mu.Lock()
	defer f.live.mu.Unlock()
	if t := f.live.topics[strings.TrimSuffix(channel, afterCart)]; t != nil && t.feed == f && t.last != s {
		t.tell(s)
	}
}

// subscribed notes whether the feed is subscribed to a channel. It no longer is when another master has its slot.
func (f *feed) subscribed(channel string, is bool) {
	f.live.mu.Lock()
	defer f.live.mu.Unlock()
	switch t := f.live.topics[strings.TrimSuffix(channel, afterCart)]; {
	case t == nil && is:
		go f.leave(channel)
	case t != nil && is:
		t.feed = f
	case t != nil && t.feed == f:
		f.live.lose(t)
	}
}

// replied passes a reply, or an error that Redis replied, to the one who waits for it.
func (f *feed) replied(to string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.awaited) > 0 && (err != nil || f.awaited[0].to == to) {
		f.awaited[0].reply <- err
		f.awaited = f.awaited[1:]
	}
}

// do sends a command and waits for its reply.
func (f *feed) do(ctx context.Context, to string, send func() error) error {
	began, reply := time.Now(), make(chan error, 1)
	f.mu.Lock()
	err := send()
	f.awaited = append(f.awaited, awaited{to, reply})
	f.mu.Unlock()
	if err != nil {
		f.close(err)
	}
	select {
	case err = <-reply:
	case <-f.closed:
		err = f.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	return cause.Of(serverOf(f.at.client), began, err)
}

// join subscribes to the channel of a cart.
func (f *feed) join(ctx context.Context, channel string) error {
	if !f.plain.Load() {
		err := f.do(ctx, "ssubscribe "+channel, func() error { return f.sub.SSubscribe(f.ctx, channel) })
		if !redis.HasErrorPrefix(err, "unknown command") {
			return err
		}
		f.plain.Store(true)
	}
	return f.do(ctx, "subscribe "+channel, func() error { return f.sub.Subscribe(f.ctx, channel) })
}

// leave unsubscribes from a channel.
func (f *feed) leave(channel string) {
	if f.plain.Load() {
		_ = f.do(f.ctx, "unsubscribe "+channel, func() error { return f.sub.Unsubscribe(f.ctx, channel) })
	} else {
		_ = f.do(f.ctx, "sunsubscribe "+channel, func() error { return f.sub.SUnsubscribe(f.ctx, channel) })
	}
}

// command is that which announces changes to the feed.
func (f *feed) command() string {
	if f.plain.Load() {
		return "publish"
	}
	return "spublish"
}

func (f *feed) ping(ctx context.Context) error {
	return f.do(ctx, "", func() error { return f.sub.Ping(f.ctx) })
}

// check closes a feed whose connection hangs.
func (f *feed) check(ctx context.Context) {
	if f.heard.Swap(false) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	if err := f.ping(ctx); err != nil && ctx.Err() != nil {
		f.close(err)
	}
}

// distrust closes a feed that has missed something. A young one is kept: instances of an older release, which
// announce nothing, may serve during an upgrade.
func (f *feed) distrust() {
	if time.Since(f.opened) > syncEvery {
		go f.close(errFeedClosed)
	}
}
