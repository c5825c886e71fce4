package redisstore

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/cause"
	"commerce/auth/script"
)

// feed is a connection on which a master sends what it announces to listeners. Any failure closes it, and another one
// is opened: go-redis would reconnect, but does not say when, and then subscribes to all channels by one command, which a
// cluster refuses.
type feed struct {
	live   *live
	at     located
	opened time.Time
	ctx    context.Context // ends when nothing listens
	sub    *redis.PubSub
	pause  time.Duration // after it was closed, until the next one is opened
	retry  time.Time     // then; zero while it is open

	mu      sync.Mutex // of what follows, and of the order of commands
	awaited []awaited  // in the order of their commands
	err     error      // why it is closed
	closed  chan struct{}
}

// awaited is a reply that somebody waits for.
type awaited struct {
	to   string // "ping", or what a Subscription says, such as "ssubscribe" and the channel
	done chan error
}

const firstPause, longestPause = 50 * time.Millisecond, 5 * time.Second

// feedOf returns the feed of a master. It is closed if the latest one has just failed.
func (v *live) feedOf(at located) *feed {
	v.mu.Lock()
	defer v.mu.Unlock()
	pause, last := firstPause, v.feeds[at.master]
	if last != nil {
		if last.retry.IsZero() || time.Now().Before(last.retry) {
			return last
		}
		pause = min(2*last.pause, longestPause)
	}
	f := &feed{live: v, at: at, opened: time.Now(), ctx: v.ctx, sub: at.client.SSubscribe(v.ctx), pause: pause, closed: make(chan struct{})}
	v.feeds[at.master] = f
	context.AfterFunc(v.ctx, func() { f.close(errLost) })
	go f.read()
	return f
}

func (f *feed) close(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return
	}
	f.err = err
	close(f.closed)
	_ = f.sub.Close()
	v := f.live
	v.mu.Lock()
	defer v.mu.Unlock()
	f.retry = time.Now().Add(f.pause/2 + rand.N(f.pause))
	for _, t := range v.topics {
		if t.feed == f {
			t.lose()
		}
	}
}

// lose notes that no feed is subscribed to a topic.
func (t *topic) lose() { t.feed, t.last.Version = nil, unsure }

// verbs are the commands of a subscription.
var verbs = map[string]func(*redis.PubSub, context.Context, ...string) error{
	"ping":      (*redis.PubSub).Ping,
	"subscribe": (*redis.PubSub).Subscribe, "unsubscribe": (*redis.PubSub).Unsubscribe,
	"ssubscribe": (*redis.PubSub).SSubscribe, "sunsubscribe": (*redis.PubSub).SUnsubscribe,
}

// do sends a command and waits for its reply.
func (f *feed) do(ctx context.Context, verb string, channels ...string) error {
	began, reply := time.Now(), awaited{verb + strings.Join(channels, ""), make(chan error, 1)}
	f.mu.Lock()
	err := verbs[verb](f.sub, f.ctx, channels...)
	f.awaited = append(f.awaited, reply)
	f.mu.Unlock()
	if err != nil {
		f.close(err)
	}
	select {
	case err = <-reply.done:
	case <-f.closed:
		err = f.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	return cause.Of(serverOf(f.at.client), began, err)
}

// read handles what Redis sends, until the feed is closed.
func (f *feed) read() {
	for {
		got, err := f.sub.Receive(f.ctx)
		switch got := got.(type) {
		case *redis.Message:
			f.announced(got.Channel, sightingOf(got.Payload))
		case *redis.Subscription:
			f.subscribed(got.Channel, !strings.Contains(got.Kind, "un"))
			f.replied(got.Kind+got.Channel, nil)
		case *redis.Pong:
			f.replied("ping", nil)
		default:
			if !isReply(err) {
				f.close(err)
				return
			}
			f.replied("", err)
		}
	}
}

// replied passes a reply on to the one who waits for it. An error is that to the first of the commands.
func (f *feed) replied(to string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.awaited) > 0 && (err != nil || f.awaited[0].to == to) {
		f.awaited[0].done <- err
		f.awaited = f.awaited[1:]
	}
}

func (f *feed) announced(channel string, s Sighting) {
	f.live.mu.Lock()
	defer f.live.mu.Unlock()
	if t := f.live.topics[keyOf(channel)]; t != nil && t.feed == f && t.last != s {
		t.tell(s)
	}
}

// subscribed notes whether the feed is subscribed to a channel. Redis ends that when the slot gets another master.
func (f *feed) subscribed(channel string, is bool) {
	f.live.mu.Lock()
	defer f.live.mu.Unlock()
	switch t := f.live.topics[keyOf(channel)]; {
	case t == nil && is: // the listener has left
		go f.leave(channel)
	case t != nil && is:
		t.feed, f.pause = f, firstPause
	case t != nil && t.feed == f:
		t.lose()
	}
}

func (f *feed) leave(channel string) { _ = f.do(f.ctx, f.live.verb("unsubscribe"), channel) }

// verb returns the name of a command as Redis has it.
func (v *live) verb(name string) string {
	if v.plain.Load() {
		return name
	}
	return "s" + name
}

// ask subscribes to a cart, unless the feed is, and returns what the cart is now, after all that was announced before. told
// is what the topic had told before.
func (f *feed) ask(ctx context.Context, t *topic) (now Sighting, told int, err error) {
	v := f.live
	v.mu.Lock()
	subscribed := t.feed == f
	v.mu.Unlock()
	if !subscribed {
		err = f.do(ctx, v.verb("subscribe"), t.ref.liveChannel())
		if redis.HasErrorPrefix(err, "unknown command") {
			v.plain.Store(true)
			err = f.do(ctx, v.verb("subscribe"), t.ref.liveChannel())
		}
		if err != nil {
			return Sighting{}, 0, err
		}
	}
	v.mu.Lock()
	told = t.told
	v.mu.Unlock()
	tag, err := v.store.scripts["listen"].Run(ctx, v.store.Client, script.Repeatable,
		[]string{t.ref.cartKey()}, int64(markLife.Seconds()), v.verb("publish")).Text()
	if err != nil && !isMissing(err) {
		return Sighting{}, 0, err
	}
	return sightingOf(tag), told, f.do(ctx, "ping")
}
