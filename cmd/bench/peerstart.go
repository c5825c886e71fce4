package main

import (
	"context"
	"fmt"
	"time"

	"commerce/cmd/bench/results"
)

// starts measures the time from the start of a process of each peer until it shows a cart.
func starts(ctx context.Context, rounds int, peers []*peer) ([]results.Value, error) {
	took, size := make([][]float64, len(peers)), make([][]float64, len(peers))
	for range rounds {
		for i, p := range peers {
			d, bytes, err := p.restart(ctx)
			if err != nil {
				return nil, fmt.Errorf("start of %s: %w", p.name, err)
			}
			took[i], size[i] = append(took[i], results.Rounded(d.Seconds())), append(size[i], megabytes(bytes))
		}
	}
	var all []results.Value
	for i, p := range peers {
		all = append(all,
			results.Value{Name: startTime + p.name, Unit: "s", Figure: results.FigureOf(took[i]...)},
			results.Value{Name: startMemory + p.name, Unit: "MB", Figure: results.FigureOf(size[i]...)})
	}
	return all, nil
}

// restart starts another process of the peer, and returns how long it takes to show a cart and
// its resident memory then.
func (p *peer) restart(ctx context.Context) (time.Duration, int64, error) {
	cart, err := p.filled(ctx)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	another, err := p.start(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer another.stop()
	if err := cart.check(ctx, another.url); err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	size, err := resident(another.pid())
	return took, size, err
}
