package main

import (
	"context"
	"net/http"
	"slices"
	"syscall"
	"time"
)

// arrive sends requests at a constant rate for d, whether or not earlier ones are
// answered, and returns what the clients see. The time of each request starts when it is
// due, not when a client is free to send it: a server that stalls makes all requests
// late that are due while it stalls. A closed loop would send and count only one of them.
// The times include those of failed requests.
func arrive(ctx context.Context, transport *http.Transport, all []*client, rate float64, d time.Duration) (load, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	due := make(chan time.Time, int(rate*d.Seconds())+1) // never blocks the clock
	wait := together(all, cancel, func(c *client) (load, error) { return c.answer(ctx, transport, due) })
	began := time.Now()
	tick(ctx, due, rate, d)
	sum, err := wait()
	sum.took = time.Since(began)
	slices.Sort(sum.times)
	return sum, err
}

// tick sends the time of each arrival when it comes, and closes due after d.
func tick(ctx context.Context, due chan<- time.Time, rate float64, d time.Duration) {
	defer close(due)
	began := time.Now()
	for n := range int(rate * d.Seconds()) {
		at := began.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		if ctx.Err() != nil {
			return
		}
		pause(time.Until(at))
		due <- at
	}
}

// pause sleeps with a precision of about 0.1 ms. time.Sleep of an idle process rounds up
// to whole milliseconds.
func pause(d time.Duration) {
	if d <= 0 {
		return
	}
	t := syscall.NsecToTimespec(d.Nanoseconds())
	_ = syscall.Nanosleep(&t, nil) // a signal may end it early: the request is sent early
}

// answer sends one request for each arrival.
func (c *client) answer(ctx context.Context, transport *http.Transport, due <-chan time.Time) (load, error) {
	var l load
	for at := range due {
		if ctx.Err() != nil {
			return l, nil
		}
		if err := c.next(ctx); err != nil {
			return l, err
		}
		failed := l.failed
		if err := c.timed(&l, transport, at); err != nil {
			return l, err
		}
		if l.failed > failed {
			l.times = append(l.times, time.Since(at))
		}
	}
	return l, nil
}
