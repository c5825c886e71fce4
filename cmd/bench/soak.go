package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"commerce/cmd/bench/results"
)

// benchSoak measures the resident memory of the service under full load for a long time.
// Half of the clients read carts; the others count lines or add.
func benchSoak(ctx context.Context, s *stage) (results.Benchmark, error) {
	shop, err := openShop(ctx, s, s.binary)
	if err != nil {
		return results.Benchmark{}, err
	}
	all, err := newClients(ctx, s.connections, shop.mixed())
	if err != nil {
		return results.Benchmark{}, err
	}
	transport := newTransport(len(all))
	defer transport.CloseIdleConnections()

	ctx, stop := context.WithTimeout(ctx, s.soak)
	defer stop()
	sizes := make(chan []results.Point, 1)
	bar := progress("soak", 100)
	go func() {
		sizes <- residentOver(ctx, shop.server.pid(), s.soak/101, func() { _ = bar.Add(1) })
	}()
	l, err := put(ctx, transport, all, s.soak)
	if err = errors.Join(err, context.Cause(ctx)); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return results.Benchmark{}, err
	}
	return soaked(<-sizes, l), nil
}

// soaked compares the memory of the last quarter with that of the second one: the first
// one fills caches.
func soaked(points []results.Point, l load) results.Benchmark {
	var all []float64
	for _, p := range points {
		all = append(all, p.Median)
	}
	n := len(all)
	second, last := results.FigureOf(all[n/4:n/2]...), results.FigureOf(all[n-n/4:]...)
	return results.Benchmark{
		Name: "soak",
		Values: []results.Value{
			{Name: "requests", Figure: results.FigureOf(float64(l.requests))},
			{Name: "failed requests", Figure: results.FigureOf(float64(l.failed))},
			{Name: "highest resident memory", Unit: "MB", Figure: results.FigureOf(results.FigureOf(all...).Max), AtMost: new(100.0)},
			{Name: "resident memory of the last quarter", Unit: "of the second quarter", Figure: results.FigureOf(last.Median / second.Median), AtMost: new(1.1)},
		},
		Curves: []results.Curve{{
			Name: "soak", X: "time under load (s)", Y: "resident memory (MB)",
			Series: []results.Series{{Name: "service", Points: points}},
		}},
	}
}

// mixed returns clients that read, count and add.
func (s *shop) mixed() clients {
	read := reading("/cart", fewLines, (*shop).newGuest)(s)
	kinds := []clients{
		read, reading("/cart/count", fewLines, (*shop).newCustomer)(s), read, adding(stamped)(s),
	}
	var made atomic.Int64
	return func(ctx context.Context) (*client, error) { return kinds[made.Add(1)%int64(len(kinds))](ctx) }
}

// residentOver samples the resident memory of a process at an interval, until ctx ends. It
// calls sampled after each sample.
func residentOver(ctx context.Context, pid int, every time.Duration, sampled func()) []results.Point {
	var points []results.Point
	samples := time.NewTicker(every)
	defer samples.Stop()
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return points
		case <-samples.C:
		}
		size, err := resident(pid)
		if err != nil { // the load reports that the process has ended
			return points
		}
		points = append(points, results.Point{X: results.Rounded(time.Since(began).Seconds()), Figure: results.FigureOf(megabytes(size))})
		sampled()
	}
}
