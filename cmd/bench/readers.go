package main

import (
	"context"
	"fmt"
	"slices"

	"commerce/cmd/bench/results"
)

// callers returns the numbers of concurrent readers to measure, up to four times the usual
// connections: 1, 4, 16, 64, 256 for 64.
func callers(connections int) []int {
	var all []int
	for n := 4 * connections; n > 0; n /= 4 {
		all = append(all, n)
	}
	slices.Reverse(all)
	return all
}

// benchReaders measures what a read of a cart costs Redis, by the number of concurrent
// readers, when the service sends their commands together and when it does not.
func benchReaders(ctx context.Context, s *stage) (results.Benchmark, error) {
	cases, err := readerCases(ctx, s)
	if err != nil {
		return results.Benchmark{}, err
	}
	b, err := measure(ctx, s.options, "readers", "Redis", cases)
	b.Curves = []results.Curve{readerCurve(b, callers(s.connections))}
	return b, err
}

// reads returns the name of a case.
func reads(way string, n int) string {
	if n == 1 {
		return way + ", 1 reader"
	}
	return fmt.Sprintf("%s, %d readers", way, n)
}

// The ways to read.
const (
	floorRead = "floor-get"
	batched   = "batched"
	single    = "one by one"
)

func readerCases(ctx context.Context, s *stage) ([]testCase, error) {
	floors, err := openFloors(ctx, s, []string{floorRead})
	if err != nil {
		return nil, err
	}
	on, err := openShop(ctx, s, s.binary, "REDIS_BATCH_READS=on")
	if err != nil {
		return nil, err
	}
	off, err := openShop(ctx, s, s.binary, "REDIS_BATCH_READS=off")
	if err != nil {
		return nil, err
	}
	targets := map[int]float64{4: 1, 64: 0.3}
	read := reading("/cart", fewLines, (*shop).newGuest)
	var all []testCase
	for _, n := range callers(s.connections) {
		ofFloor := results.Comparison{Cost: results.StoreCPU, Of: reads(floorRead, n)}
		ofBoth := ofFloor
		if atMost, ok := targets[n]; ok {
			ofBoth.AtMost = &atMost
		}
		all = append(all,
			testCase{name: reads(floorRead, n), connections: n, server: floors[0].server, clients: floors[0].clients},
			testCase{name: reads(batched, n), connections: n, server: on.server, clients: read(on), compared: []results.Comparison{ofBoth}},
			testCase{name: reads(single, n), connections: n, server: off.server, clients: read(off), compared: []results.Comparison{ofFloor}})
	}
	return all, nil
}

// readerCurve is the CPU time of Redis by the number of readers.
func readerCurve(b results.Benchmark, callers []int) results.Curve {
	curve := results.Curve{Name: "readers", X: "concurrent readers", Y: "CPU of Redis per read (µs)"}
	for _, way := range []string{floorRead, single, batched} {
		series := results.Series{Name: way}
		for _, n := range callers {
			if c, ok := b.Case(reads(way, n)); ok {
				series.Points = append(series.Points, results.Point{X: float64(n), Figure: c.Store})
			}
		}
		curve.Series = append(curve.Series, series)
	}
	return curve
}
