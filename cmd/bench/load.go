package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"commerce/cmd/bench/results"
)

// client sends requests one after the other on its own connection.
type client struct {
	request *http.Request
	want    int // expected status; 0 means 200

	// prepare changes request into the next one. nil: all requests are the same. It may
	// send other requests.
	prepare func(ctx context.Context) error

	addresses []string
	sent      int
}

// clients returns a new client for a turn.
type clients func(ctx context.Context) (*client, error)

// same returns clients that repeat a GET.
func same(rawURL string, header http.Header) clients {
	return func(context.Context) (*client, error) {
		r, err := newRequest(http.MethodGet, rawURL, header)
		return &client{request: r}, err
	}
}

func newRequest(method, rawURL string, header http.Header) (*http.Request, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	return &http.Request{Method: method, URL: u, Host: u.Host, Header: header.Clone()}, nil
}

func setBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// crowd is some clients with their connections.
type crowd struct {
	all       []*client
	transport *http.Transport
}

// newCrowd returns n clients. Each uses 16 addresses of its own in turn, so that a fast client
// stays below the rate limit per address.
func newCrowd(ctx context.Context, n int, one clients) (crowd, error) {
	c := crowd{make([]*client, n), &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range c.all {
		group.Go(func() (err error) {
			if c.all[i], err = one(ctx); err != nil {
				return err
			}
			for last := range 16 {
				c.all[i].addresses = append(c.all[i].addresses, fmt.Sprintf("198.18.%d.%d", i%256, last+1))
			}
			return nil
		})
	}
	return c, group.Wait()
}

func (c crowd) close() { c.transport.CloseIdleConnections() }

// pace is when clients send requests.
type pace struct {
	lasting time.Duration

	// rate is the number of requests per second, whether or not earlier ones are answered. The
	// time of each request starts when it is due, not when a client is free to send it: a server
	// that stalls makes all requests late that are due while it stalls. 0 means a closed loop:
	// each client sends the next request when it has its answer.
	rate float64

	// patience is how long a client waits for an answer, which counts as failed if it comes
	// later. 0 means any time.
	patience time.Duration
}

// load is what clients see.
type load struct {
	requests int // with the expected status, in time
	failed   int // answered 503 or 504, or too late
	took     time.Duration
	times    []time.Duration // sorted; without failed requests if clients are impatient
}

// send lets all clients send requests. An unexpected status other than 503 and 504 ends it with
// an error.
func (c crowd) send(ctx context.Context, p pace) (load, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	due := make(chan time.Time, int(p.rate*p.lasting.Seconds())+1) // never blocks the clock
	next := func() (time.Time, bool) { return time.Time{}, ctx.Err() == nil && time.Since(began) < p.lasting }
	if p.rate > 0 {
		next = func() (time.Time, bool) { at, more := <-due; return at, more && ctx.Err() == nil }
	}
	var sum load
	var mu sync.Mutex
	var running errgroup.Group
	for _, client := range c.all {
		running.Go(func() error {
			own, err := client.work(ctx, c.transport, next, p.patience)
			if err != nil {
				cancel()
			}
			mu.Lock()
			defer mu.Unlock()
			sum.requests += own.requests
			sum.failed += own.failed
			sum.times = append(sum.times, own.times...)
			return err
		})
	}
	tick(ctx, due, p)
	err := running.Wait()
	sum.took = time.Since(began)
	slices.Sort(sum.times)
	return sum, err
}

// tick sends the time of each arrival when it comes, and closes due at the end.
func tick(ctx context.Context, due chan<- time.Time, p pace) {
	defer close(due)
	began := time.Now()
	for n := range int(p.rate * p.lasting.Seconds()) {
		at := began.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
		if ctx.Err() != nil {
			return
		}
		if wait := time.Until(at); wait > 0 { // time.Sleep of an idle process rounds up to milliseconds
			t := syscall.NsecToTimespec(wait.Nanoseconds())
			_ = syscall.Nanosleep(&t, nil) // a signal may end it early: the request is sent early
		}
		due <- at
	}
}

// work sends a request for each time that next returns; a zero time means now. It does not
// interrupt a request, and does not send one for which its client no longer waits.
func (c *client) work(ctx context.Context, transport *http.Transport, next func() (time.Time, bool), patience time.Duration) (load, error) {
	var l load
	late := func(at time.Time) bool { return patience > 0 && time.Since(at) > patience }
	for at, more := next(); more; at, more = next() {
		if !at.IsZero() && late(at) {
			l.failed++
			continue
		}
		if c.prepare != nil {
			if err := c.prepare(context.WithoutCancel(ctx)); err != nil {
				return l, err
			}
		}
		if at.IsZero() {
			at = time.Now()
		}
		good, err := c.send(transport)
		if err != nil {
			return l, err
		}
		if good = good && !late(at); good {
			l.requests++
		} else {
			l.failed++
		}
		if good || patience == 0 {
			l.times = append(l.times, time.Since(at))
		}
	}
	return l, nil
}

// send reports whether the response has the expected status. It returns false for 503
// and 504, and an error for any other status.
func (c *client) send(transport *http.Transport) (good bool, err error) {
	i := c.sent % len(c.addresses)
	c.request.Header["X-Forwarded-For"] = c.addresses[i : i+1 : i+1]
	c.sent++
	response, err := transport.RoundTrip(c.request)
	if err != nil {
		return false, err
	}
	if err := discard(response.Body); err != nil {
		return false, err
	}
	switch {
	case response.StatusCode == cmp.Or(c.want, http.StatusOK):
		return true, nil
	case unavailable(response.StatusCode):
		return false, nil
	}
	return false, fmt.Errorf("%s %s: %s", c.request.Method, c.request.URL, response.Status)
}

func unavailable(status int) bool {
	return status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// percentile returns a percentile of the times in milliseconds, 0 if there are none.
func (l load) percentile(p float64) float64 {
	if len(l.times) == 0 {
		return 0
	}
	return results.Rounded(l.times[int(p*float64(len(l.times)-1))].Seconds() * 1e3)
}

func megabytes(bytes uint64) float64 { return results.Rounded(float64(bytes) / 1e6) }
