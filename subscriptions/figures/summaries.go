package figures

import (
	"context"
	"fmt"
	"time"

	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/subscriptions"
	"commerce/subscriptions/subscriptionshttp"
)

const (
	// summaryFor is how long a summary is reused. It must be at most a minute old when the
	// caller gets it, so a second is left for the response.
	summaryFor = 59 * time.Second

	// maxSummaries is how many summaries one instance makes at the same time. Each uses a
	// connection and reads all rows of a store from an index.
	maxSummaries = 2
)

// newSummaries returns what makes and caches the summaries of stores.
func newSummaries(source Source, now func() time.Time) *runs[*Summary] {
	read := func(ctx context.Context, store int64) (*Summary, error) {
		asOf := now()
		totals, err := source.Totals(ctx, store)
		if err != nil {
			return nil, err
		}
		return Summarize(totals, asOf)
	}
	return newRuns("summary", maxSummaries, read, func(s *Summary) bool { return now().Sub(s.AsOf) <= summaryFor })
}

func (a *api) summary(m *subscriptionshttp.Merchant) (wire.Answer, error) {
	// A filter would otherwise seem to work.
	if faults := subscriptionshttp.ReadQuery[struct{}](m.Request.URL.RawQuery, nil, nil, textNoParameters, textNoParameters); faults != nil {
		return wire.Answer{}, subscriptionshttp.Refused(faults)
	}
	s, err := a.summaries.get(m.Request.Context(), m.Store.ID)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("summarize subscriptions of store %d: %w", m.Store.ID, err)
	}
	return wire.Answer{Data: func(w *wire.Writer) { writeSummary(w, s) }}, nil
}

// writeSummary writes the summary as the store's programs read it.
func writeSummary(w *wire.Writer, s *Summary) {
	w.BeginObject()
	w.Time("as_of", s.AsOf, subscriptionshttp.Instants)
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
