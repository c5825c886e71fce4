package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// request is what a load repeats.
type request struct {
	url    string
	header http.Header
}

// load is what came of one.
type load struct {
	requests int
	took     time.Duration
	server   time.Duration // CPU of the server's process
	database time.Duration // CPU of Postgres' processes
	times    []time.Duration
}

func (l *load) add(more load) {
	l.requests += more.requests
	l.took += more.took
	l.server += more.server
	l.database += more.database
	l.times = append(l.times, more.times...)
}

func (l *load) rate() float64 { return float64(l.requests) / l.took.Seconds() }

// perThousand is CPU time for a thousand requests.
func (l *load) perThousand(used time.Duration) time.Duration {
	return used * 1000 / time.Duration(max(l.requests, 1))
}

func (l *load) percentile(p float64) time.Duration {
	slices.Sort(l.times)
	return l.times[int(p*float64(len(l.times)-1))]
}

// connections is how many clients ask at the same time, each on a connection and
// from an address of its own.
const connections = 64

// put repeats a request on all connections for d. An answer that is not 200 ends it.
func put(ctx context.Context, r request, d time.Duration) (load, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	transport := &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}
	defer transport.CloseIdleConnections()

	var all load
	var failed error
	var mu sync.Mutex
	var clients sync.WaitGroup
	began := time.Now()
	for i := range connections {
		clients.Go(func() {
			times, err := repeat(ctx, transport, r, fmt.Sprintf("198.51.100.%d", i+1))
			mu.Lock()
			defer mu.Unlock()
			all.requests += len(times)
			all.times = append(all.times, times...)
			if err != nil {
				failed = err
				cancel()
			}
		})
	}
	clients.Wait()
	all.took = time.Since(began)
	return all, failed
}

func repeat(ctx context.Context, transport *http.Transport, r request, from string) ([]time.Duration, error) {
	made, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, r.url, nil)
	if err != nil {
		return nil, err
	}
	made.Header = r.header.Clone()
	made.Header.Set("X-Forwarded-For", from) // a limit for each
	var times []time.Duration
	for ctx.Err() == nil {
		began := time.Now()
		response, err := transport.RoundTrip(made)
		if err != nil {
			return times, err
		}
		if err := discard(response.Body); err != nil {
			return times, err
		}
		if response.StatusCode != http.StatusOK {
			return times, fmt.Errorf("GET %s: %s", r.url, response.Status)
		}
		times = append(times, time.Since(began))
	}
	return times, nil
}
