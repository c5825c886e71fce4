package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"commerce/cmd/bench/results"
)

// targetShare is the share of the highest throughput at which latency has a target.
const targetShare = 0.6

// shares returns the offered loads, as shares of the service's highest throughput.
func shares() []float64 { return []float64{0.1, 0.3, targetShare, 0.75, 0.9} }

// benchLatency measures how long a read of a cart takes at constant rates of arrival.
func benchLatency(ctx context.Context, s *stage) (results.Benchmark, error) {
	cases, err := cartBench{floors: []string{"floor-get"}, cases: []cartCase{
		{"GET /cart", reading("/cart", fewLines, (*shop).newGuest), nil},
	}}.open(ctx, s)
	if err != nil {
		return results.Benchmark{}, err
	}
	return latency{options: s.options, cases: cases}.measure(ctx)
}

// latency compares the cases at the same rates. The first case is the floor, the second
// one is the service.
type latency struct {
	options
	cases []testCase
}

// percentiles are the times of one case at one rate in one round, in ms.
type percentiles struct {
	p50, p99, p999 float64
	failed         int // requests
}

func (l latency) measure(ctx context.Context) (results.Benchmark, error) {
	closed, err := measure(ctx, l.options, "latency", "Redis", l.cases)
	if err != nil {
		return closed, err
	}
	highest := closed.Cases[1].Rate.Median
	bar := progress("latency", l.rounds*len(shares())*len(l.cases))
	took := make([][][]percentiles, len(l.cases)) // by case, share and round
	for i := range took {
		took[i] = make([][]percentiles, len(shares()))
	}
	for range l.rounds {
		for at, share := range shares() {
			for i, c := range l.cases {
				p, err := l.turn(ctx, c, share*highest)
				if err = errors.Join(err, ctx.Err()); err != nil {
					return closed, fmt.Errorf("%s at %.0f requests/s: %w", c.name, share*highest, err)
				}
				took[i][at] = append(took[i][at], p)
				_ = bar.Add(1)
			}
		}
	}
	closed.Curves = l.curves(highest, took)
	closed.Values = l.targets(highest, took)
	return closed, nil
}

// turn measures one case at one rate, after a tenth of a turn to open connections.
func (l latency) turn(ctx context.Context, c testCase, rate float64) (percentiles, error) {
	all, err := newClients(ctx, cmp.Or(c.connections, l.connections), c.clients)
	if err != nil {
		return percentiles{}, err
	}
	transport := newTransport(len(all))
	defer transport.CloseIdleConnections()
	if _, err := put(ctx, transport, all, l.options.turn/10); err != nil {
		return percentiles{}, err
	}
	seen, err := arrive(ctx, transport, all, rate, l.options.turn*3/2)
	at := func(p float64) float64 { return milliseconds(percentile(seen.times, p)) }
	return percentiles{at(0.5), at(0.99), at(0.999), seen.failed}, err
}

// curves are latency against offered load, one for each percentile.
func (l latency) curves(highest float64, took [][][]percentiles) []results.Curve {
	var all []results.Curve
	for _, of := range []struct {
		name  string
		value func(percentiles) float64
	}{
		{"p50", func(p percentiles) float64 { return p.p50 }},
		{"p99", func(p percentiles) float64 { return p.p99 }},
		{"p99.9", func(p percentiles) float64 { return p.p999 }},
	} {
		curve := results.Curve{Name: of.name, X: "offered load (requests/s)", Y: of.name + " (ms)"}
		for i, c := range l.cases {
			series := results.Series{Name: c.name}
			for at, share := range shares() {
				var values []float64
				for _, p := range took[i][at] {
					values = append(values, of.value(p))
				}
				series.Points = append(series.Points, results.Point{X: results.Rounded(share * highest), Figure: results.FigureOf(values...)})
			}
			curve.Series = append(curve.Series, series)
		}
		all = append(all, curve)
	}
	return all
}

// targets compares the p99 of the service with that of the floor at each load.
func (l latency) targets(highest float64, took [][][]percentiles) []results.Value {
	var all []results.Value
	failed := 0
	for at, share := range shares() {
		var ratios []float64
		for round, p := range took[1][at] {
			ratios = append(ratios, p.p99/took[0][at][round].p99)
			failed += p.failed
		}
		v := results.Value{
			Name:   fmt.Sprintf("p99 at %.0f %% of the highest throughput (%.0f requests/s)", share*100, share*highest),
			Unit:   "of " + l.cases[0].name + "'s",
			Figure: results.FigureOf(ratios...),
		}
		if share == targetShare {
			v.AtMost = new(1.5)
		}
		all = append(all, v)
	}
	return append(all, results.Value{Name: "failed requests of " + l.cases[1].name, Figure: results.FigureOf(float64(failed))})
}
