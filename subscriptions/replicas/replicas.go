// Package replicas watches the Postgres replicas of a primary, and decides which of them may
// serve reads: those that answer, belong to the same database, and lag little.
package replicas

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

type Config struct {
	// Primary is checked once per interval. One connection is enough.
	Primary *pgxpool.Pool

	// Servers are the replicas. They are preferred in this order, so it must be the same on
	// all instances. See Set.Fit.
	Servers []Server

	// MaxLag is the maximum lag of a replica that serves reads.
	MaxLag time.Duration

	// CheckTime is how long a server has to answer a check. Default: 500 ms, as a read has
	// on a replica.
	CheckTime time.Duration

	// Log receives a line for each change of a replica's state.
	Log *slog.Logger

	// Observe, if not nil, is called after each check of a replica: with its name, whether it
	// serves reads, and its lag.
	Observe func(name string, fit bool, lag time.Duration)
}

type Server struct {
	Name string // host and port

	// Checks is used for one check at a time. It is separate from pools for reads, so that a
	// check never waits for them.
	Checks *pgxpool.Pool
}

const (
	// maxInterval is the longest time between two checks of a server. It is shorter if the
	// maximum lag is less than five times as long.
	maxInterval = time.Second

	// minPause is the shortest time between two checks, if reads keep failing.
	minPause = 50 * time.Millisecond
)

// Set watches replicas.
type Set struct {
	config   Config
	interval time.Duration
	replicas []*Replica
	primary  primary
}

// New returns a Set. No replica is fit until Run has checked it.
func New(c Config) *Set {
	c.CheckTime = cmp.Or(c.CheckTime, 500*time.Millisecond)
	if c.Observe == nil {
		c.Observe = func(string, bool, time.Duration) {}
	}
	s := &Set{config: c, interval: min(maxInterval, c.MaxLag/5), primary: primary{pool: c.Primary, log: c.Log}}
	for _, server := range c.Servers {
		s.replicas = append(s.replicas, &Replica{
			Server: server, wake: make(chan struct{}, 1), judge: judge{maxLag: c.MaxLag, verdict: verdict{state: Unchecked}},
		})
	}
	return s
}

// Timeline returns the timeline of the primary's log; 0 before it is known.
func (s *Set) Timeline() int64 { return s.primary.seen().timeline }

// All returns all replicas, in the order of Config.Servers.
func (s *Set) All() []*Replica { return s.replicas }

// Run checks all servers until ctx ends.
func (s *Set) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { s.every(ctx, nil, s.primary.check) })
	for _, r := range s.replicas {
		all.Go(func() { s.every(ctx, r.wake, func(ctx context.Context) { s.check(ctx, r) }) })
	}
	all.Wait()
}

// every calls check immediately, and again after each interval or when wake receives, until
// ctx ends.
func (s *Set) every(ctx context.Context, wake <-chan struct{}, check func(context.Context)) {
	for {
		began := time.Now()
		probe, cancel := context.WithTimeout(ctx, s.config.CheckTime)
		check(probe)
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-time.After(minPause):
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-time.After(s.interval - time.Since(began)):
		}
	}
}

// Fit returns the indexes in All of up to two replicas to read a store's rows from, the preferred one first. A
// store's reads use the same replica while it is fit, on all instances, so that a page is
// never older than the one before. If it is not fit, its stores are spread over the others.
func (s *Set) Fit(store int64) []int {
	const attempts = 2
	var fit []int
	for i, r := range s.replicas {
		if r.fit() {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	n := uint64(len(s.replicas))
	first := slices.Index(fit, int(uint64(store)%n))
	if first < 0 {
		first = int(uint64(store) / n % uint64(len(fit)))
	}
	return append(fit[first:], fit[:first]...)[:min(attempts, len(fit))]
}

// States returns the state of each replica, by name. See State.
func (s *Set) States() map[string]string {
	states := map[string]string{}
	for _, r := range s.replicas {
		states[r.Name] = string(r.verdict().state)
	}
	return states
}
