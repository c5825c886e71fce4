package server

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"commerce/auth/timing"
	"commerce/cart/wire"
)

// requestContext is the context of one request. It ends at its deadline, or earlier with its
// parent, and it collects what the log line shows in addition to the response.
//
// It has no timer until something waits for its end or derives a context from it. Few requests
// do: timing.Within only reads the deadline.
type requestContext struct {
	timing.Times // its Context is the parent
	wire.Call
	store  int64              // 0: not known
	caller wire.Caller        // "": not known
	ended  func(aborted bool) // reports the end of the request, once
	paused time.Duration      // the time of its pauses

	deadline time.Time
	once     sync.Once
	started  atomic.Pointer[startedContext]
}

// startedContext is the part of a requestContext that ends.
type startedContext struct {
	context.Context
	cancel context.CancelFunc
}

// newRequestContext returns a context that ends at a certain time, or earlier with parent, which has
// no deadline. The caller must stop it.
func newRequestContext(parent context.Context, deadline time.Time) *requestContext {
	return &requestContext{Times: timing.Times{Context: parent}, deadline: deadline}
}

// withoutDeadline returns a context for a stream of the request, which may take any time.
func (c *requestContext) withoutDeadline() context.Context {
	return context.WithValue(&c.Times, wire.CallKey{}, &c.Call)
}

func (c *requestContext) start() context.Context {
	c.once.Do(func() {
		ctx, cancel := context.WithDeadline(&c.Times, c.deadline)
		c.started.Store(&startedContext{ctx, cancel})
	})
	return c.started.Load()
}

// restart gives the context another deadline, also if it has ended. Nothing else may use it meanwhile.
func (c *requestContext) restart(deadline time.Time) {
	c.stop()
	c.started.Store(nil)
	c.once, c.deadline = sync.Once{}, deadline
}

// stop ends the context early and frees its timer.
func (c *requestContext) stop() {
	if s := c.started.Load(); s != nil {
		s.cancel()
	}
}

func (c *requestContext) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *requestContext) Done() <-chan struct{} { return c.start().Done() }

func (c *requestContext) Err() error {
	if s := c.started.Load(); s != nil {
		return s.Err()
	}
	if err := c.Times.Err(); err != nil {
		return err
	}
	if !time.Now().Before(c.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

type requestContextKey struct{}

func (c *requestContext) Value(key any) any {
	switch key {
	case requestContextKey{}:
		return c
	case wire.CallKey{}:
		return &c.Call
	}
	if s := c.started.Load(); s != nil {
		return s.Value(key)
	}
	return c.Times.Value(key)
}

func requestContextOf(ctx context.Context) *requestContext {
	c, _ := ctx.Value(requestContextKey{}).(*requestContext)
	return c
}

// places are the log members for the time at each place.
var places = [...]struct {
	member string
	place  timing.Place
}{
	{"redis_ms", timing.Redis},
	{"postgres_ms", timing.Postgres},
	{"catalog_ms", timing.Catalog},
	{"waiting_ms", timing.Waiting},
}

func (c *requestContext) appendPlaces(attrs []slog.Attr) []slog.Attr {
	for _, p := range places {
		if spent := c.Spent(p.place); spent > 0 {
			attrs = append(attrs, slog.Float64(p.member, milliseconds(spent)))
		}
	}
	return attrs
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
