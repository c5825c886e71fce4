//go:build unix

package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// group is one server, or several that work together.
type group interface {
	url() string
	servers() []*Server
	start() error // returns when all serve requests
}

// startNew makes a group on n new ports and starts it. It tries up to five times if a server
// ended while it was starting: another process may have taken its port.
func startNew[G group](n int, make func(ports []int) (G, error)) (none G, err error) {
	for range 5 {
		ports, err := freePorts(n)
		if err != nil {
			return none, err
		}
		g, err := make(ports)
		if err != nil {
			return none, err
		}
		failed := g.start()
		if failed == nil {
			return g, nil
		}
		err = errors.Join(failed, inParallel(g.servers(), (*Server).kill))
		if !errors.Is(err, errGone) {
			return none, err
		}
	}
	return none, fmt.Errorf("tried five times: %w", err)
}

// private starts a group for one test, and kills it when the test ends.
func private[G group](tb testing.TB, n int, make func(ports []int) (G, error)) G {
	tb.Helper()
	g, err := startNew(n, make)
	must(tb, "start", err)
	for _, s := range g.servers() {
		s.tb = tb
		tb.Cleanup(func() {
			must(tb, "kill", s.kill())
			must(tb, "remove", os.RemoveAll(s.dir))
		})
	}
	return g
}

// until repeats attempt until it succeeds or ctx ends. It returns the last error.
func until(ctx context.Context, attempt func() error) error {
	for {
		err := attempt()
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// inParallel calls do for all of items and returns every error.
func inParallel[T any](items []T, do func(item T) error) error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { errs[i] = do(item) })
	}
	all.Wait()
	return errors.Join(errs...)
}
