package main

import (
	"context"
	"fmt"
	"time"

	"commerce/cmd/bench/results"
)

// reader reads the rows of a store.
type reader interface {
	// read reads rows until a time, at least one part. The next call goes on after them,
	// and after the last row with the first one.
	read(ctx context.Context, until time.Time) (rows int, err error)

	// pause releases what the service would hold until the next read.
	pause()
}

// way is one way to read all rows of a store.
type way struct {
	name     string
	server   *server
	reader   reader
	compared []base

	took, cpu []float64 // microseconds per row, of each round
}

// base is another way that a way is compared to.
type base struct {
	*way
	atMost *float64 // the target of the time per row; nil for none
}

// ways are the ways to read the rows of a service. Those of a second service are compared
// to those of the first one, which are in the same order.
func (e *exports) ways(first []*way) []*way {
	walks := func(w *walk, away string) *way {
		return &way{name: fmt.Sprintf("pages of %d%s%s", w.perPage, away, e.label), server: e.service, reader: w}
	}
	usual, long := walks(e.usual, ""), walks(e.walk, "")
	remote := walks(e.remote, fmt.Sprintf(", %d ms away", distance.Milliseconds()))
	all := []*way{usual, long, remote}
	for _, stream := range e.streams {
		all = append(all, &way{
			name: stream.name + e.label, server: e.service, reader: stream,
			compared: []base{{usual, new(0.2)}, {long, nil}, {remote, nil}},
		})
	}
	for i := range first {
		all[i].compared = []base{{first[i], nil}}
	}
	return all
}

// measureWays gives each way a turn in every round. In its next turn, a way goes on where it
// stopped.
func measureWays(ctx context.Context, o options, services []*exports) ([]results.Value, error) {
	var all, first []*way
	for _, e := range services {
		own := e.ways(first)
		if first == nil {
			first = own
		}
		all = append(all, own...)
	}
	bar := progress("export", o.rounds*len(all))
	for range o.rounds {
		for _, w := range all {
			if err := w.turn(ctx, o.turn); err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			_ = bar.Add(1)
		}
	}
	var values []results.Value
	for _, w := range all {
		values = append(values, w.values()...)
	}
	return values, nil
}

// turn reads for d. Before that, it reads for a tenth of that time, to open connections.
func (w *way) turn(ctx context.Context, d time.Duration) error {
	defer w.reader.pause()
	if _, err := w.reader.read(ctx, time.Now().Add(d/10)); err != nil {
		return err
	}
	store, err := w.server.store(ctx)
	if err != nil {
		return err
	}
	before, err := usedBy(ctx, w.server.process, store)
	if err != nil {
		return err
	}
	began := time.Now()
	rows, err := w.reader.read(ctx, began.Add(d))
	took := time.Since(began)
	if err != nil {
		return err
	}
	after, err := usedBy(ctx, w.server.process, store)
	used := after.since(before)
	perRow := func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(rows) }
	w.took, w.cpu = append(w.took, perRow(took)), append(w.cpu, perRow(used.server+used.store))
	return err
}

// values are the way's results.
func (w *way) values() []results.Value {
	rates := make([]float64, len(w.took))
	for i, took := range w.took {
		rates[i] = 1e6 / took
	}
	all := []results.Value{
		{Name: w.name, Unit: "rows/s", Figure: results.FigureOf(rates...)},
		{Name: w.name + ": CPU per row", Unit: "µs", Figure: results.FigureOf(w.cpu...)},
	}
	for i, other := range w.compared {
		unit := "× " + other.name
		all = append(all, results.Value{Name: w.name + ": time per row", Unit: unit, Figure: ratioOf(w.took, other.took), AtMost: other.atMost})
		if i < 2 { // the third has the same CPU time as the second
			all = append(all, results.Value{Name: w.name + ": CPU per row", Unit: unit, Figure: ratioOf(w.cpu, other.cpu)})
		}
	}
	return all
}

// ratioOf is the ratio of two values of each round.
func ratioOf(own, base []float64) results.Figure {
	ratios := make([]float64, len(own))
	for i := range own {
		ratios[i] = own[i] / base[i]
	}
	return results.FigureOf(ratios...)
}
