package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/sync/errgroup"

	"commerce/cmd/bench/results"
)

// server is a process under load.
type server struct {
	*process

	// store returns the process ids of the server's Redis or Postgres; nil if it has
	// neither.
	store func(context.Context) ([]int, error)
}

// testCase is one kind of request to one server.
type testCase struct {
	name        string
	server      *server
	clients     clients
	compared    []results.Comparison
	connections int // clients at a time; 0 for -connections
}

// measure gives each case a turn in every round, so that other load on the machine affects
// all cases alike. store names what keeps the servers' data.
func measure(ctx context.Context, o options, name, store string, cases []testCase) (results.Benchmark, error) {
	bar := progress(name, o.rounds*len(cases))
	rounds := make([][]results.Round, len(cases))
	for range o.rounds {
		for i, c := range cases {
			r, err := c.turn(ctx, o)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return results.Benchmark{}, fmt.Errorf("%s: %w", c.name, err)
			}
			rounds[i] = append(rounds[i], r)
			_ = bar.Add(1)
		}
	}
	return results.Benchmark{Name: name, Store: store, Cases: summarize(cases, rounds)}, nil
}

// summarize compares each case with earlier ones.
func summarize(cases []testCase, rounds [][]results.Round) []results.Case {
	byName := map[string][]results.Round{}
	var all []results.Case
	for i, c := range cases {
		byName[c.name] = rounds[i]
		s := results.NewCase(c.name, rounds[i])
		for _, by := range c.compared {
			s.Ratios = append(s.Ratios, by.Ratio(rounds[i], byName[by.Of]))
		}
		all = append(all, s)
	}
	return all
}

// progress returns a progress bar, which is visible only on a terminal.
func progress(name string, turns int) *progressbar.ProgressBar {
	return progressbar.NewOptions(turns,
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetVisibility(onTerminal()),
		progressbar.OptionSetDescription(name), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
		progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
}

// onTerminal reports whether standard error is a terminal.
func onTerminal() bool {
	info, err := os.Stderr.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// turn measures one case with new clients. Before that, it runs the case for a tenth of a
// turn, to open connections and fill caches.
func (c testCase) turn(ctx context.Context, o options) (results.Round, error) {
	all, err := newClients(ctx, cmp.Or(c.connections, o.connections), c.clients)
	if err != nil {
		return results.Round{}, err
	}
	transport := newTransport(len(all))
	defer transport.CloseIdleConnections()
	if _, err := put(ctx, transport, all, o.turn/10); err != nil {
		return results.Round{}, err
	}
	var store []int
	if c.server.store != nil {
		if store, err = c.server.store(ctx); err != nil {
			return results.Round{}, err
		}
	}
	for tries := 1; ; tries++ {
		before, err := usedBy(ctx, c.server.process, store)
		l, err2 := put(ctx, transport, all, o.turn)
		after, err3 := usedBy(ctx, c.server.process, store)
		size, err4 := resident(c.server.pid())
		if err := errors.Join(err, err2, err3, err4); err != nil || !l.spoiled() {
			return l.round(after.since(before), size), err
		}
		if tries == 3 {
			return results.Round{}, fmt.Errorf("%d of %d requests failed with 503 or 504", l.failed, l.failed+l.requests)
		}
	}
}

func newClients(ctx context.Context, n int, one clients) ([]*client, error) {
	all := make([]*client, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range all {
		group.Go(func() (err error) {
			if all[i], err = one(ctx); err != nil {
				return err
			}
			all[i].setAddresses(i)
			return nil
		})
	}
	return all, group.Wait()
}
