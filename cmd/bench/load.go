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

// load is the measurement of a turn.
type load struct {
	requests int // with the expected status
	failed   int // answered 503 or 504
	took     time.Duration
	server   time.Duration // CPU time of the server process
	store    time.Duration // CPU time of the server's Redis or Postgres processes
	times    []time.Duration
}

// round is the result of a turn, per second and per request.
type round struct {
	Requests int     `json:"requests"`
	Failed   int     `json:"failed"`
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"requests_per_second"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Server   float64 `json:"server_us"` // CPU per request
	Store    float64 `json:"store_us"`
}

func (l *load) round() round {
	slices.Sort(l.times)
	percentile := func(p float64) float64 {
		if len(l.times) == 0 {
			return 0
		}
		return l.times[int(p*float64(len(l.times)-1))].Seconds() * 1e3
	}
	each := func(used time.Duration) float64 { return used.Seconds() * 1e6 / float64(max(l.requests, 1)) }
	return round{
		Requests: l.requests, Failed: l.failed, Seconds: l.took.Seconds(), Rate: float64(l.requests) / l.took.Seconds(),
		P50: percentile(0.5), P99: percentile(0.99), Server: each(l.server), Store: each(l.store),
	}
}

// spoiled reports whether so many requests failed that the result is meaningless. A few
// may fail because other processes use the CPU.
func (l *load) spoiled() bool { return l.failed*100 > l.requests }

// put lets all clients send requests for d. An unexpected status other than 503 and 504
// ends it with an error.
func put(ctx context.Context, all []*client, d time.Duration) (load, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	transport := &http.Transport{MaxIdleConnsPerHost: len(all), DisableCompression: true}
	defer transport.CloseIdleConnections()

	var sum load
	var wrong error
	var mu sync.Mutex
	var running sync.WaitGroup
	began := time.Now()
	for _, c := range all {
		running.Go(func() {
			own, err := c.repeat(ctx, transport)
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
	running.Wait()
	sum.took = time.Since(began)
	return sum, wrong
}

// repeat sends requests until ctx ends. It does not interrupt a request.
func (c *client) repeat(ctx context.Context, transport *http.Transport) (load, error) {
	var l load
	for ctx.Err() == nil {
		if c.prepare != nil {
			if err := c.prepare(context.WithoutCancel(ctx)); err != nil {
				return l, err
			}
		}
		i := c.sent % len(c.addresses)
		c.request.Header["X-Forwarded-For"] = c.addresses[i : i+1 : i+1]
		c.sent++
		began := time.Now()
		good, err := c.send(transport)
		if err != nil {
			return l, err
		}
		if !good {
			l.failed++
			continue
		}
		l.requests++
		l.times = append(l.times, time.Since(began))
	}
	return l, nil
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
