package live

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/cause"
	"commerce/cart/redisstore"
)

// feed is a connection on which a master sends what it announces to listeners. Any failure closes it, and another one
// is opened: go-redis would reconnect, but does not say when, and then subscribes to all channels by one command, which a
// cluster refuses.
type feed struct {
	hub    *Hub
	at     *redis.Client
	opened time.Time
	ctx    context.Context // ends when nothing listens
	sub    *redis.PubSub
	synced time.Time // a topic, by due
	retry  time.Time // when the next one may be opened; zero while this one is open

	mu      sync.Mutex // of what follows, and of the order of commands
	awaited []awaited  // in the order of their commands
	err     error      // why it is closed
	closed  chan struct{}
}

type awaited struct {
	to   string // the verb and what the reply repeats: a channel, or the text of a ping
	done chan error
}

// feedOf returns the feed of a topic, or that of its master, which is not yet subscribed to the topic. A feed that has just failed
// is closed. told is that of the topic.
func (h *Hub) feedOf(t *topic, at *redis.Client) (f *feed, told int, subscribed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.feed != nil {
		return t.feed, t.Told(), true
	}
	f = h.feeds[at.Options().Addr]
	if f == nil || f.ctx != h.ctx || !f.retry.IsZero() && time.Now().After(f.retry) {
		f = &feed{hub: h, at: at, opened: time.Now(), ctx: h.ctx, sub: at.SSubscribe(h.ctx), closed: make(chan struct{})}
		h.feeds[at.Options().Addr] = f
		go f.read()
	}
	return f, t.Told(), false
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
	h := f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	f.retry = time.Now().Add(keepEvery/4 + rand.N(2*keepEvery)) // instances lose their feeds at the same time
	for _, t := range h.topics {
		if t.feed == f {
			t.feed = nil
		}
	}
}

var verbs = map[string]func(*redis.PubSub, context.Context, ...string) error{
	"ping":      (*redis.PubSub).Ping,
	"subscribe": (*redis.PubSub).Subscribe, "unsubscribe": (*redis.PubSub).Unsubscribe,
	"ssubscribe": (*redis.PubSub).SSubscribe, "sunsubscribe": (*redis.PubSub).SUnsubscribe,
}

// do sends a command on a channel, or a ping with a text, and waits for the reply.
func (f *feed) do(ctx context.Context, verb, text string) error {
	began, reply := time.Now(), awaited{verb + text, make(chan error, 1)}
	f.mu.Lock()
	err := verbs[verb](f.sub, f.ctx, text)
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
	return cause.Of(redisstore.ServerOf(f.at), began, err)
}

func (f *feed) read() {
	defer context.AfterFunc(f.ctx, func() { f.close(errLost) })() // or else the context would keep each feed that was closed
	for {
		got, err := f.sub.Receive(f.ctx)
		switch got := got.(type) {
		case *redis.Message:
			f.announced(got.Channel, SightingOf(got.Payload))
		case *redis.Subscription:
			f.subscribed(got.Channel, !strings.Contains(got.Kind, "un"))
			f.replied(got.Kind+got.Channel, nil)
		case *redis.Pong:
			f.replied("ping"+got.Payload, nil)
		default:
			if !isReply(err) || !f.replied("", err) { // an error that nobody awaits refuses the connection
				f.close(err)
				return
			}
		}
	}
}

func isReply(err error) bool {
	_, is := errors.AsType[redis.Error](err)
	return is
}

// replied passes a reply on to the one who waits for it, if anyone does. An error is that to the first of the commands.
func (f *feed) replied(to string, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.awaited) == 0 || err == nil && f.awaited[0].to != to {
		return false
	}
	f.awaited[0].done <- err
	f.awaited = f.awaited[1:]
	return true
}

func (f *feed) announced(channel string, s Sighting) {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	if t := f.hub.topics[channel]; t != nil && t.feed == f && t.Last != s {
		t.tell(s)
	}
}

// subscribed notes whether the feed is subscribed to a channel. Redis ends that when the slot gets another master.
func (f *feed) subscribed(channel string, is bool) {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	switch t := f.hub.topics[channel]; {
	case t == nil && is: // the listener has left
		go f.leave(channel)
	case t != nil && is && f.retry.IsZero(): // or else the reply was read while f was being closed
		t.feed = f
	case t != nil && t.feed == f:
		t.feed = nil
	}
}

func (f *feed) subscribe(ctx context.Context, channel string) error {
	err := f.do(ctx, f.hub.verb("subscribe"), channel)
	if redis.HasErrorPrefix(err, "unknown command") {
		f.hub.plain.Store(true)
		err = f.do(ctx, f.hub.verb("subscribe"), channel)
	}
	return err
}

func (f *feed) leave(channel string) { _ = f.do(f.ctx, f.hub.verb("unsubscribe"), channel) }

// verb returns the name of a command as Redis has it.
func (h *Hub) verb(name string) string {
	if h.plain.Load() {
		return name
	}
	return "s" + name
}
