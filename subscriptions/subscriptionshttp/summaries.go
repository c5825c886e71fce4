package subscriptionshttp

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/singleflight"

	"commerce/auth/bounded"
	"commerce/auth/limit"
	"commerce/auth/timing"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/subscriptions"
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
	source subscriptions.Source
	now    func() time.Time
	kept   *bounded.Cache[int64, *subscriptions.Summary] // by store; may be too old to be shown
	runs   singleflight.Group                            // by store
	slots  *limit.Slots[struct{}]                        // for runs that read the source
}

func newSummaries(source subscriptions.Source, now func() time.Time) *summaries {
	return &summaries{
		source: source, now: now,
		kept:  bounded.New[int64, *subscriptions.Summary](maxSummaries, nil),
		slots: limit.NewSlots[struct{}](limit.SlotsConfig{Each: maxRuns, Waiting: maxSummaries}),
	}
}

// get returns a store's summary, which the caller must not modify. It is unavailable if it
// cannot be made within summaryPatience.
func (s *summaries) get(ctx context.Context, store int64) (*subscriptions.Summary, error) {
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
		return made.Val.(*subscriptions.Summary), nil
	case <-ctx.Done():
		return nil, subscriptions.Unavailable(fmt.Errorf("the summary is still being made after %s: %w", summaryPatience, ctx.Err()))
	}
}

// fresh returns a store's kept summary, nil if there is none that may be shown.
func (s *summaries) fresh(store int64) *subscriptions.Summary {
	kept, ok := s.kept.Get(store)
	if !ok || s.now().Sub(kept.AsOf) > summaryFor {
		return nil
	}
	return kept
}

// run makes and keeps a store's summary.
func (s *summaries) run(ctx context.Context, store int64) (*subscriptions.Summary, error) {
	if kept := s.fresh(store); kept != nil { // another run has just ended
		return kept, nil
	}
	wait, cancel := context.WithTimeout(ctx, summaryPatience)
	leave, err := s.slots.Enter(wait, struct{}{})
	cancel()
	if err != nil {
		return nil, subscriptions.Unavailable(fmt.Errorf("%d other summaries were being made for %s: %w", maxRuns, summaryPatience, err))
	}
	defer leave()
	ctx, cancel = context.WithTimeout(ctx, summaryTimeout)
	defer cancel()
	asOf := s.now()
	totals, err := s.source.Totals(ctx, store)
	if err != nil {
		return nil, err
	}
	made, err := subscriptions.Summarize(totals)
	if err != nil {
		return nil, err
	}
	made.AsOf = asOf
	s.kept.Put(store, made)
	return made, nil
}

func (a *API) summary(m *merchant) (wire.Answer, error) {
	// A filter would otherwise seem to work.
	if faults := readQuery[struct{}](m.Request.URL.RawQuery, nil, nil, textNoParameters, textNoParameters); faults != nil {
		return wire.Answer{}, refused(faults)
	}
	s, err := a.summaries.get(m.Request.Context(), m.store.ID)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("summarize subscriptions of store %d: %w", m.store.ID, err)
	}
	return wire.Answer{Data: func(w *wire.Writer) { writeSummary(w, s) }}, nil
}

// writeSummary writes the summary as the store's programs read it.
func writeSummary(w *wire.Writer, s *subscriptions.Summary) {
	w.BeginObject()
	w.Time("as_of", s.AsOf, instants)
	w.Object("by_status")
	for _, status := range subscriptions.Statuses {
		w.Number(string(status), s.ByStatus[status])
	}
	w.EndObject()
	w.Number("ending", s.Ending)
	w.Array("mrr")
	for _, r := range s.MRR {
		w.BeginObject()
		w.Text("currency", r.Currency)
		digits, _ := money.Digits(r.Currency)
		w.Amount("amount", r.Amount, digits)
		w.Number("subscriptions", r.Subscriptions)
		w.EndObject()
	}
	w.EndArray()
	w.EndObject()
}
