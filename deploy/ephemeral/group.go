//go:build unix

package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// group is one server, or several that work together.
type group struct {
	url    string
	stages [][]*Server // in the order in which they start
	ports  claims
}

func (g *group) servers() []*Server { return slices.Concat(g.stages...) }

type maker func(ports []int) (*group, error)

func (g *group) start() error {
	for _, stage := range g.stages {
		if err := inParallel(stage, (*Server).start); err != nil {
			return err
		}
		if err := inParallel(stage, (*Server).becomeReady); err != nil {
			return err
		}
	}
	return nil
}

// startNew makes a group on n new ports and starts it. It tries up to five times if a server
// ended while it was starting: another process may have taken its port.
func startNew(n int, make maker) (*group, error) {
	var ended error
	for range 5 {
		ports, claimed, err := freePorts(n)
		if err != nil {
			return nil, err
		}
		g, err := make(ports)
		if err != nil {
			return nil, err
		}
		g.ports = claimed
		failed := g.start()
		if failed == nil {
			return g, nil
		}
		claimed.release()
		ended = errors.Join(failed, inParallel(g.servers(), (*Server).kill))
		if !errors.Is(ended, errGone) {
			return nil, ended
		}
	}
	return nil, fmt.Errorf("tried five times: %w", ended)
}

// private starts a group for one test, and kills it when the test ends.
func private(tb testing.TB, n int, make maker) *group {
	tb.Helper()
	g, err := startNew(n, make)
	must(tb, "start", err)
	tb.Cleanup(g.ports.release)
	for _, s := range g.servers() {
		s.tb = tb
		tb.Cleanup(func() {
			must(tb, "kill", s.kill())
			must(tb, "remove", os.RemoveAll(s.dir))
		})
	}
	return g
}

// until repeats attempt until it succeeds, or for startLimit of Patience. It returns the last error.
func until(attempt func(ctx context.Context) error) error {
	limit := Patience(startLimit)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		err := attempt(ctx)
		switch {
		case err == nil, errors.Is(err, errGone):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("not within %v: %w", limit, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func inParallel[T any](items []T, do func(item T) error) error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { errs[i] = do(item) })
	}
	all.Wait()
	return errors.Join(errs...)
}
