package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// deadline is a context that ends at a certain time, or earlier with its parent. It has no timer
// until something waits for its end or derives a context from it. Few requests do:
// timing.Within only reads the deadline.
type deadline struct {
	parent  context.Context
	at      time.Time
	once    sync.Once
	started atomic.Pointer[startedDeadline]
}

// startedDeadline is the context with the timer.
type startedDeadline struct {
	context.Context
	cancel context.CancelFunc
}

// start returns the context with the timer.
func (d *deadline) start() context.Context {
	d.once.Do(func() {
		ctx, cancel := context.WithDeadline(d.parent, d.at)
		d.started.Store(&startedDeadline{ctx, cancel})
	})
	return d.started.Load()
}

// stop ends the context early and frees its timer.
func (d *deadline) stop() {
	if s := d.started.Load(); s != nil {
		s.cancel()
	}
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} { return d.start().Done() }

// Err implements context.Context.
func (d *deadline) Err() error {
	if s := d.started.Load(); s != nil {
		return s.Err()
	}
	if err := d.parent.Err(); err != nil {
		return err
	}
	if !time.Now().Before(d.at) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context.
func (d *deadline) Value(key any) any {
	if s := d.started.Load(); s != nil {
		return s.Value(key)
	}
	return d.parent.Value(key)
}
