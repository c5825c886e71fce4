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
	"time"

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

// setAddresses gives the nth client its own addresses. It uses them in turn, so that a
// fast client stays below the rate limit per address.
func (c *client) setAddresses(n int) {
	for i := range 16 {
		c.addresses = append(c.addresses, fmt.Sprintf("198.18.%d.%d", n%256, i+1))
	}
}

// load is what the clients see in a turn.
type load struct {
	requests int // with the expected status
	failed   int // answered 503 or 504
	took     time.Duration
	times    []time.Duration
}

// round returns the result of a turn in which the server used u and ended with that many
// resident bytes.
func (l *load) round(u usage, resident int64) results.Round {
	slices.Sort(l.times)
	each := func(x float64) float64 { return results.Rounded(x / float64(max(l.requests, 1))) }
	return results.Round{
		Requests: l.requests, Failed: l.failed,
		Seconds: results.Rounded(l.took.Seconds()), Rate: results.Rounded(float64(l.requests) / l.took.Seconds()),
		P50:         milliseconds(percentile(l.times, 0.5)),
		P99:         milliseconds(percentile(l.times, 0.99)),
		Server:      each(u.server.Seconds() * 1e6),
		Store:       each(u.store.Seconds() * 1e6),
		Allocations: each(u.allocations),
		Allocated:   each(u.allocated),
		Resident:    megabytes(resident),
	}
}

// percentile returns a percentile of sorted times, 0 if there are none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(p*float64(len(sorted)-1))]
}

func milliseconds(d time.Duration) float64 { return results.Rounded(d.Seconds() * 1e3) }

func megabytes(bytes int64) float64 { return results.Rounded(float64(bytes) / 1e6) }

// spoiled reports whether so many requests failed that the result is meaningless. A few
// may fail because other processes use the CPU.
func (l *load) spoiled() bool { return l.failed*100 > l.requests }

// newTransport returns a transport that keeps n connections open. The caller closes the
// idle ones.
func newTransport(n int) *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}
}

// put lets all clients send requests for d. An unexpected status other than 503 and 504
// ends it with an error.
func put(ctx context.Context, transport *http.Transport, all []*client, d time.Duration) (load, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()

	began := time.Now()
	sum, err := together(all, cancel, func(c *client) (load, error) { return c.repeat(ctx, transport) })()
	sum.took = time.Since(began)
	return sum, err
}

// together starts call for all clients. The returned function waits for them, and adds up
// what they saw. The first error calls cancel, which must end the other calls.
func together(all []*client, cancel func(), call func(*client) (load, error)) (wait func() (load, error)) {
	var sum load
	var wrong error
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, c := range all {
		running.Go(func() {
			own, err := call(c)
			mu.Lock()
			defer mu.Unlock()
			sum.requests += own.requests
			sum.failed += own.failed
			sum.times = append(sum.times, own.times...)
			if err != nil && wrong == nil {
				wrong = err
				cancel()
			}
		})
	}
	return func() (load, error) {
		running.Wait()
		return sum, wrong
	}
}

// repeat sends requests until ctx ends. It does not interrupt a request.
func (c *client) repeat(ctx context.Context, transport *http.Transport) (load, error) {
	var l load
	for ctx.Err() == nil {
		if err := c.next(ctx); err != nil {
			return l, err
		}
		if err := c.timed(&l, transport, time.Now()); err != nil {
			return l, err
		}
	}
	return l, nil
}

// times sends n requests.
func (c *client) times(ctx context.Context, transport *http.Transport, n int) error {
	for range n {
		if err := c.next(ctx); err != nil {
			return err
		}
		if _, err := c.send(transport); err != nil {
			return err
		}
	}
	return nil
}

// next prepares the next request.
func (c *client) next(ctx context.Context) error {
	if c.prepare != nil {
		if err := c.prepare(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	i := c.sent % len(c.addresses)
	c.request.Header["X-Forwarded-For"] = c.addresses[i : i+1 : i+1]
	c.sent++
	return nil
}

// timed sends the request and adds the time since began to l.
func (c *client) timed(l *load, transport *http.Transport, began time.Time) error {
	good, err := c.send(transport)
	if err != nil {
		return err
	}
	if !good {
		l.failed++
		return nil
	}
	l.requests++
	l.times = append(l.times, time.Since(began))
	return nil
}

// send reports whether the response has the expected status. It returns false for 503
// and 504, and an error for any other status.
func (c *client) send(transport *http.Transport) (good bool, err error) {
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
