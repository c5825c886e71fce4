package subscriptions

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/singleflight"

	"commerce/auth/bounded"
	"commerce/auth/timing"
)

const (
	// summaryFor is how long a summary is reused. It must be at most a minute old when the
	// caller gets it, so a second is left for the response.
	summaryFor = 59 * time.Second

	// summaryPatience is how long a caller waits for a summary, and a run for its start.
	summaryPatience = 2 * time.Second

	// summaryTimeout bounds a run, not including the wait for its start.
	summaryTimeout = 10 * time.Second

	// maxRuns is how many summaries one instance makes at the same time. Each uses a
	// connection and reads all rows of a store from an index.
	maxRuns = 2

	// maxSummaries bounds the kept summaries. With one currency each they take 2 MB.
	maxSummaries = 4096
)

// summaries makes and caches the summaries of stores. All callers of a store share one run.
// The run outlives them: a late summary serves the next caller.
type summaries struct {
	source Source
	now    func() time.Time
	kept   *bounded.Cache[int64, *Summary] // by store; may be too old to be shown
	runs   singleflight.Group              // by store
	slots  chan struct{}                   // has one element for each run that reads the source
}

func newSummaries(source Source, now func() time.Time) *summaries {
	return &summaries{
		source: source, now: now,
		kept:  bounded.New[int64, *Summary](maxSummaries, nil),
		slots: make(chan struct{}, maxRuns),
	}
}

// get returns a store's summary, which the caller must not modify. It is unavailable if it
// cannot be made within summaryPatience.
func (s *summaries) get(ctx context.Context, store int64) (*Summary, error) {
	if kept := s.fresh(store); kept != nil {
		return kept, nil
	}
	start := time.Now()
	defer func() { timing.Add(ctx, timing.Postgres, time.Since(start)) }()
	lasting := timing.Detach(ctx)
	run := s.runs.DoChan(strconv.FormatInt(store, 10), func() (any, error) { return s.run(lasting, store) })
	ctx, cancel := context.WithTimeout(ctx, summaryPatience)
	defer cancel()
	select {
	case made := <-run:
		if made.Err != nil {
			return nil, made.Err
		}
		return made.Val.(*Summary), nil
	case <-ctx.Done():
		return nil, unavailable(fmt.Errorf("the summary is still being made after %s: %w", summaryPatience, ctx.Err()))
	}
}

// fresh returns a store's kept summary, nil if there is none that may be shown.
func (s *summaries) fresh(store int64) *Summary {
	kept, ok := s.kept.Get(store)
	if !ok || s.now().Sub(kept.AsOf) > summaryFor {
		return nil
	}
	return kept
}

// run makes and keeps a store's summary.
func (s *summaries) run(ctx context.Context, store int64) (*Summary, error) {
	if kept := s.fresh(store); kept != nil { // another run has just ended
		return kept, nil
	}
	if err := s.enter(ctx); err != nil {
		return nil, unavailable(fmt.Errorf("%d other summaries were being made for %s: %w", maxRuns, summaryPatience, err))
	}
	defer func() { <-s.slots }()
	ctx, cancel := context.WithTimeout(ctx, summaryTimeout)
	defer cancel()
	asOf := s.now()
	totals, err := s.source.Totals(ctx, store)
	if err != nil {
		return nil, err
	}
	made, err := summarize(totals)
	if err != nil {
		return nil, unavailable(err)
	}
	made.AsOf = asOf
	s.kept.Put(store, made)
	return made, nil
}

// enter waits for a slot. Without an error the caller must free it.
func (s *summaries) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, summaryPatience)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
