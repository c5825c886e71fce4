package figures

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/singleflight"

	"commerce/auth/bounded"
	"commerce/auth/limit"
	"commerce/auth/timing"
	"commerce/subscriptions"
)

const (
	// runPatience is how long a caller waits for a result, and a run for its start.
	runPatience = 2 * time.Second

	// runTimeout bounds a run, not including the wait for its start.
	runTimeout = 10 * time.Second

	// maxKept bounds the kept results.
	maxKept = 4096
)

// runs make and cache what reads all rows of a store. All callers of a store share one run. The run
// outlives them: a late result serves the next caller.
type runs[V any] struct {
	what   string // for errors
	read   func(ctx context.Context, store int64) (V, error)
	usable func(V) bool             // whether a kept result may still be shown
	kept   *bounded.Cache[int64, V] // by store
	going  singleflight.Group       // by store
	slots  *limit.Slots[struct{}]   // for runs that read the source
}

// newRuns returns runs, of which as many as most go on at the same time in all.
func newRuns[V any](what string, most int, read func(ctx context.Context, store int64) (V, error), usable func(V) bool) *runs[V] {
	return &runs[V]{
		what: what, read: read, usable: usable,
		kept:  bounded.New[int64, V](maxKept, nil),
		slots: limit.NewSlots[struct{}](limit.SlotsConfig{Each: most, Waiting: maxKept}),
	}
}

// get returns a store's result, which the caller must not modify. It is unavailable if it
// cannot be made within runPatience.
func (r *runs[V]) get(ctx context.Context, store int64) (result V, err error) {
	if kept, ok := r.kept.Get(store); ok && r.usable(kept) {
		return kept, nil
	}
	start := time.Now()
	defer func() { timing.Add(ctx, timing.Postgres, time.Since(start)) }()
	lasting := timing.Detach(ctx)
	run := r.going.DoChan(strconv.FormatInt(store, 10), func() (any, error) { return r.run(lasting, store) })
	ctx, cancel := context.WithTimeout(ctx, runPatience)
	defer cancel()
	select {
	case made := <-run:
		if made.Err != nil {
			return result, made.Err
		}
		return made.Val.(V), nil
	case <-ctx.Done():
		return result, subscriptions.Unavailable(fmt.Errorf("the %s is still being made after %s: %w", r.what, runPatience, ctx.Err()))
	}
}

// run makes and keeps a store's result.
func (r *runs[V]) run(ctx context.Context, store int64) (result V, err error) {
	if kept, ok := r.kept.Get(store); ok && r.usable(kept) { // another run has just ended
		return kept, nil
	}
	wait, cancel := context.WithTimeout(ctx, runPatience)
	leave, err := r.slots.Enter(wait, struct{}{})
	cancel()
	if err != nil {
		return result, subscriptions.Unavailable(fmt.Errorf("%d others were being made for %s, before the %s: %w", r.slots.Each, runPatience, r.what, err))
	}
	defer leave()
	ctx, cancel = context.WithTimeout(ctx, runTimeout)
	defer cancel()
	if result, err = r.read(ctx, store); err == nil {
		r.kept.Put(store, result)
	}
	return result, err
}
