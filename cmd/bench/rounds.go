package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/sync/errgroup"
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
	name     string
	server   *server
	clients  clients
	compared []comparison
}

// comparison is a ratio of CPU per request to that of another case.
type comparison struct {
	of      string  // the other case, which must be an earlier one
	maximum float64 // target for the ratio; 0 for none
	cost    func(round) float64
}

func serverCost(r round) float64 { return r.Server }
func storeCost(r round) float64  { return r.Store }
func wholeCost(r round) float64  { return r.Server + r.Store }

// measure gives each case a turn in every round, so that other load on the machine affects
// all cases alike.
func measure(ctx context.Context, o options, name string, cases []testCase) (results, error) {
	bar := progressbar.NewOptions(o.rounds*len(cases),
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetVisibility(onTerminal()),
		progressbar.OptionSetDescription(name), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
		progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
	rounds := make([][]round, len(cases))
	for range o.rounds {
		for i, c := range cases {
			l, err := c.turn(ctx, o)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return results{}, fmt.Errorf("%s: %w", c.name, err)
			}
			rounds[i] = append(rounds[i], l.round())
			_ = bar.Add(1)
		}
	}
	return summarize(cases, rounds), nil
}

// onTerminal reports whether standard error is a terminal.
func onTerminal() bool {
	info, err := os.Stderr.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// turn measures one case with new clients. Before that, it runs the case for a tenth of a
// turn, to open connections and fill caches.
func (c testCase) turn(ctx context.Context, o options) (load, error) {
	all, err := c.newClients(ctx, o.connections)
	if err != nil {
		return load{}, err
	}
	if _, err := put(ctx, all, o.turn/10); err != nil {
		return load{}, err
	}
	var behind []int
	if c.server.store != nil {
		if behind, err = c.server.store(ctx); err != nil {
			return load{}, err
		}
	}
	for tries := 1; ; tries++ {
		l, err := c.measured(ctx, all, o.turn, behind)
		if err != nil || !l.spoiled() {
			return l, err
		}
		if tries == 3 {
			return l, fmt.Errorf("%d of %d requests failed with 503 or 504", l.failed, l.failed+l.requests)
		}
	}
}

func (c testCase) measured(ctx context.Context, all []*client, d time.Duration, behind []int) (load, error) {
	server, err := cpu(c.server.pid())
	store, err2 := cpu(behind...)
	l, err3 := put(ctx, all, d)
	serverThen, err4 := cpu(c.server.pid())
	storeThen, err5 := cpu(behind...)
	l.server, l.store = serverThen-server, storeThen-store
	return l, errors.Join(err, err2, err3, err4, err5)
}

func (c testCase) newClients(ctx context.Context, n int) ([]*client, error) {
	all := make([]*client, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range all {
		group.Go(func() (err error) {
			if all[i], err = c.clients(ctx); err != nil {
				return err
			}
			all[i].setAddresses(i)
			return nil
		})
	}
	return all, group.Wait()
}
