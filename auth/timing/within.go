package timing

import (
	"context"
	"sync"
	"time"
)

// Within returns a context for a call that may take at most limit, and no longer than the
// deadline of ctx allows. It has the values of ctx. The caller must call cancel.
//
// It costs a fraction of what context.WithTimeout does, because it takes no part in the
// cancellation of ctx: a client that disconnects does not end a call that has begun.
func Within(ctx context.Context, limit time.Duration) (_ context.Context, cancel func()) {
	c := &call{Context: ctx, ends: time.Now().Add(limit), err: ctx.Err()}
	if ends, bounded := ctx.Deadline(); bounded && ends.Before(c.ends) {
		c.ends = ends
	}
	return c, func() { c.end(context.Canceled) }
}

// call is the context of one call. It has no timer until something waits for its end.
type call struct {
	context.Context // only for values
	ends            time.Time

	mu    sync.Mutex
	err   error         // nil until the call ends
	done  chan struct{} // nil until something waits
	timer *time.Timer   // nil until something waits
}

func (c *call) Deadline() (time.Time, bool) { return c.ends, true }

func (c *call) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		} else {
			c.timer = time.AfterFunc(time.Until(c.ends), func() { c.end(context.DeadlineExceeded) })
		}
	}
	return c.done
}

func (c *call) Err() error {
	c.mu.Lock()
	err := c.err
	c.mu.Unlock()
	if err == nil && !time.Now().Before(c.ends) {
		return c.end(context.DeadlineExceeded)
	}
	return err
}

// end ends the call for a reason, unless it has ended before. It returns the first reason.
func (c *call) end(reason error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.err = reason
	if c.timer != nil {
		c.timer.Stop()
		close(c.done)
	}
	return reason
}
