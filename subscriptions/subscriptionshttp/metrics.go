package subscriptionshttp

import (
	"context"
	"fmt"
	"time"

	"commerce/auth/problem"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/subscriptions"
)

const (
	// metricsFor is how long metrics are reused, at most until their last month ends.
	metricsFor = time.Hour

	// maxMetrics is how many stores' metrics one instance makes at the same time. Each uses a
	// connection and reads the history of all subscriptions of a store.
	maxMetrics = 1

	defaultMonths = 12
)

// newMetrics returns what makes and caches the metrics of stores.
func newMetrics(source subscriptions.Source, now func() time.Time) *runs[*subscriptions.Metrics] {
	read := func(ctx context.Context, store int64) (*subscriptions.Metrics, error) {
		asOf := now()
		movements, err := source.Movements(ctx, store)
		if err != nil {
			return nil, err
		}
		made, err := subscriptions.Measure(movements, subscriptions.MonthOf(asOf))
		if err == nil {
			made.AsOf = asOf
		}
		return made, err
	}
	return newRuns("monthly figures", maxMetrics, read, func(m *subscriptions.Metrics) bool {
		return now().Sub(m.AsOf) <= metricsFor && subscriptions.MonthOf(now()) == m.Last
	})
}

type metricsRequest struct{ from, to subscriptions.Month } // both included; from may be 0: not given

// parseMetrics reads a raw query. Its problem.Error names every parameter at fault.
func parseMetrics(query string, running subscriptions.Month) (metricsRequest, error) {
	r := metricsRequest{to: running}
	month := func(s string) (subscriptions.Month, bool) {
		m, ok := subscriptions.ParseMonth(s)
		return m, ok && m <= running
	}
	faults := readQuery(query, &r, []parameter[metricsRequest]{
		{"from", into(func(r *metricsRequest) *subscriptions.Month { return &r.from }, month), textMonth.With("from")},
		{"to", into(func(r *metricsRequest) *subscriptions.Month { return &r.to }, month), textMonth.With("to")},
	}, textNoValue, textUnknownOfMetrics)
	if r.from == 0 {
		r.from = r.to - defaultMonths + 1
	}
	switch {
	case faults != nil:
	case r.from > r.to:
		faults = append(faults, fault("from", textMonthsReversed))
	case r.to-r.from >= subscriptions.MaxMonths:
		faults = append(faults, problem.Fault{Member: "from", Sentence: textManyMonths.With(subscriptions.MaxMonths)})
	}
	return r, refused(faults)
}

func (a *API) metrics(m *merchant) (wire.Answer, error) {
	r, err := parseMetrics(m.Request.URL.RawQuery, subscriptions.MonthOf(a.Now()))
	if err != nil {
		return wire.Answer{}, err
	}
	found, err := a.measured.get(m.Request.Context(), m.store.ID)
	if err == nil && found.Last < r.to { // another caller asked for them before the month began
		found, err = a.measured.get(m.Request.Context(), m.store.ID)
	}
	if err != nil {
		return wire.Answer{}, fmt.Errorf("measure subscriptions of store %d: %w", m.store.ID, err)
	}
	return wire.Answer{Data: func(w *wire.Writer) { writeMetrics(w, found, r, m.store.Currency) }}, nil
}

// writeMetrics writes the figures of each month and currency, in the store's own currency if there
// are none.
func writeMetrics(w *wire.Writer, m *subscriptions.Metrics, r metricsRequest, own string) {
	all := m.Series
	if len(all) == 0 {
		all = []subscriptions.Series{{Currency: own, Months: make([]subscriptions.Figures, m.Last-m.First+1)}}
	}
	w.BeginObject()
	w.Time("as_of", m.AsOf, instants)
	w.Array("data")
	for month := r.from; month <= r.to; month++ {
		for _, s := range all {
			var figures *subscriptions.Figures
			if m.First <= month && month <= m.Last {
				figures = &s.Months[month-m.First]
			}
			w.BeginObject()
			w.Text("month", month.String())
			w.Text("currency", s.Currency)
			w.Bool("complete", month < m.Last)
			writeFigures(w, figures, s.Currency)
			w.EndObject()
		}
	}
	w.EndArray()
	w.EndObject()
}

// writeFigures writes the figures of a month, nil for one before recording began.
func writeFigures(w *wire.Writer, f *subscriptions.Figures, currency string) {
	if f == nil {
		for _, name := range []string{"mrr", "subscriptions", "new", "reactivated", "expansion", "contraction", "churned"} {
			w.Null(name)
		}
		return
	}
	digits, _ := money.Digits(currency)
	w.Amount("mrr", f.MRR, digits)
	w.Number("subscriptions", f.Subscriptions)
	w.Amount("new", f.New, digits)
	w.Amount("reactivated", f.Reactivated, digits)
	w.Amount("expansion", f.Expansion, digits)
	w.Amount("contraction", f.Contraction, digits)
	w.Amount("churned", f.Churned, digits)
}
