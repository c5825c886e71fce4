package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"commerce/cmd/bench/results"
)

// server is a process under load.
type server struct {
	*process

	// store returns the process ids of the server's Redis and Postgres sessions.
	store func(context.Context) ([]int, error)
}

// testCase is one kind of request to one server.
type testCase struct {
	name        string
	server      *server
	clients     clients
	compared    []comparison
	connections int           // clients at a time; 0 for -connections
	rate        float64       // requests per second; 0 for full load
	patience    time.Duration // of the clients; 0 for endless
	commands    int           // of Redis for each request, which the result is of; 0 for 1
}

// comparison is a ratio of costs to measure.
type comparison struct {
	of     string // an earlier case
	cost   cost
	atMost float64 // the target; 0 for none
}

// cost is what a request takes.
type cost struct {
	name string
	of   func(results.Round) float64
}

func cpu() cost { return cost{"CPU", results.Round.CPU} }

func serverCPU() cost {
	return cost{"server CPU", func(r results.Round) float64 { return r.Server }}
}

func storeCPU() cost { return cost{"stores' CPU", func(r results.Round) float64 { return r.Store }} }
func p50() cost      { return cost{"p50", func(r results.Round) float64 { return r.P50 }} }
func p99() cost      { return cost{"p99", func(r results.Round) float64 { return r.P99 }} }

// cpuOf compares CPU with another case. A target of 0 means none.
func cpuOf(other string, atMost float64) []comparison { return []comparison{{other, cpu(), atMost}} }

// inRounds calls each of some turns once in every round, so that other load on the machine
// affects all of them alike.
func inRounds(ctx context.Context, o options, turns int, take func(turn int) error) error {
	for range o.rounds {
		for turn := range turns {
			if err := errors.Join(take(turn), ctx.Err()); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure gives each case a turn in every round, and compares it with earlier ones.
func measure(ctx context.Context, o options, cases ...testCase) (results.Benchmark, error) {
	b := results.Benchmark{Cases: make([]results.Case, len(cases))}
	err := inRounds(ctx, o, len(cases), func(i int) error {
		r, err := cases[i].turn(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", cases[i].name, err)
		}
		b.Cases[i].Rounds = append(b.Cases[i].Rounds, r)
		return nil
	})
	if err != nil {
		return b, err
	}
	earlier := map[string]results.Case{}
	for i, c := range cases {
		b.Cases[i].Name = c.name
		for _, by := range c.compared {
			b.Cases[i].Ratios = append(b.Cases[i].Ratios, by.ratio(b.Cases[i], earlier[by.of]))
		}
		earlier[c.name] = b.Cases[i]
	}
	return b, nil
}

func (by comparison) ratio(own, other results.Case) results.Value {
	return results.Value{Name: by.cost.name, Unit: "× " + by.of, Figure: own.Over(other, by.cost.of), AtMost: by.atMost}
}

// turn measures one case with new clients, after a tenth of a turn that opens connections and
// fills caches. It repeats a turn that many failed requests spoil; a few may fail because other
// processes use the CPU.
func (c testCase) turn(ctx context.Context, o options) (results.Round, error) {
	all, err := newCrowd(ctx, cmp.Or(c.connections, o.connections), c.clients)
	if err != nil {
		return results.Round{}, err
	}
	defer all.close()
	if _, err := all.send(ctx, pace{lasting: o.turn / 10}); err != nil {
		return results.Round{}, err
	}
	for tries := 1; ; tries++ {
		var l load
		used, err := c.server.using(ctx, func() (err error) {
			l, err = all.send(ctx, pace{o.turn, c.rate, c.patience})
			return err
		})
		l.requests *= max(1, c.commands)
		if err != nil || c.patience > 0 || l.failed*100 <= l.requests {
			return l.round(used), err
		}
		if tries == 3 {
			return results.Round{}, fmt.Errorf("%d of %d requests failed with 503 or 504", l.failed, l.failed+l.requests)
		}
	}
}

// round returns the result of a turn in which the server and its store used u.
func (l load) round(u usage) results.Round {
	each := func(x float64) float64 { return results.Rounded(x / float64(max(l.requests, 1))) }
	return results.Round{
		Requests: l.requests, Failed: l.failed, Rate: results.Rounded(float64(l.requests) / l.took.Seconds()),
		P50: l.percentile(0.5), P99: l.percentile(0.99),
		Server: each(u.server.Seconds() * 1e6), Store: each(u.store.Seconds() * 1e6),
		Resident: megabytes(u.resident),
	}
}
