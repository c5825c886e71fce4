package figures

import (
	"context"
	"fmt"
	"iter"
	"time"

	"commerce/auth/problem"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/subscriptions/formats"
	"commerce/subscriptions/subscriptionshttp"
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
func newMetrics(source Source, now func() time.Time) *runs[*Metrics] {
	read := func(ctx context.Context, store int64) (*Metrics, error) {
		asOf := now()
		movements, err := source.Movements(ctx, store)
		if err != nil {
			return nil, err
		}
		return Measure(movements, asOf)
	}
	return newRuns("monthly figures", maxMetrics, read, func(m *Metrics) bool {
		return now().Sub(m.AsOf) <= metricsFor && MonthOf(now()) == m.Last
	})
}

type metricsRequest struct{ from, to Month } // both included; from may be 0: not given

// parseMetrics reads a raw query. Its problem.Error names every parameter at fault.
func parseMetrics(query string, running Month) (metricsRequest, error) {
	r := metricsRequest{to: running}
	month := func(s string) (Month, bool) {
		m, ok := ParseMonth(s)
		return m, ok && m <= running
	}
	faults := subscriptionshttp.ReadQuery(query, &r, []subscriptionshttp.Parameter[metricsRequest]{
		subscriptionshttp.Parsed("from", func(r *metricsRequest) *Month { return &r.from }, month, textMonth.With("from")),
		subscriptionshttp.Parsed("to", func(r *metricsRequest) *Month { return &r.to }, month, textMonth.With("to")),
	}, subscriptionshttp.TextNoValue, textUnknownOfMetrics)
	if r.from == 0 {
		r.from = r.to - defaultMonths + 1
	}
	switch {
	case faults != nil:
	case r.from > r.to:
		faults = append(faults, subscriptionshttp.Fault("from", textMonthsReversed))
	case r.to-r.from >= MaxMonths:
		faults = append(faults, problem.Fault{Member: "from", Sentence: textManyMonths.With(MaxMonths)})
	}
	return r, subscriptionshttp.Refused(faults)
}

func (a *api) metrics(m *subscriptionshttp.Merchant) (wire.Answer, error) {
	r, err := parseMetrics(m.Request.URL.RawQuery, MonthOf(a.http.Now()))
	if err != nil {
		return wire.Answer{}, err
	}
	found, err := a.measured.get(m.Request.Context(), m.Store.ID)
	if err == nil && found.Last < r.to { // another caller asked for them before the month began
		found, err = a.measured.get(m.Request.Context(), m.Store.ID)
	}
	if err != nil {
		return wire.Answer{}, fmt.Errorf("measure subscriptions of store %d: %w", m.Store.ID, err)
	}
	rows := metricsRows(found, r, m.Store.Currency)
	if formats.Preferred(formats.Accept(m.Request), formats.JSON, formats.CSV) == formats.CSV {
		return wire.Answer{Stream: &wire.Stream{ContentType: formats.CSV.ContentType(), Parts: func(context.Context, *wire.Writer) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) { yield(metricsTable(rows), nil) }
		}}}, nil
	}
	return wire.Answer{Data: func(w *wire.Writer) { writeMetrics(w, found.AsOf, rows) }}, nil
}

// metricsRow is a month in one currency.
type metricsRow struct {
	month    Month
	currency string
	complete bool
	figures  *Figures // nil: recording had not begun
}

// metricsRows returns the rows of each month, in the store's own currency if there are no figures.
func metricsRows(m *Metrics, r metricsRequest, own string) (rows []metricsRow) {
	all := m.Series
	if len(all) == 0 {
		all = []Series{{Currency: own, Months: make([]Figures, m.Last-m.First+1)}}
	}
	for month := r.from; month <= r.to; month++ {
		for _, s := range all {
			row := metricsRow{month: month, currency: s.Currency, complete: month < m.Last}
			if m.First <= month && month <= m.Last {
				row.figures = &s.Months[month-m.First]
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func writeMetrics(w *wire.Writer, asOf time.Time, rows []metricsRow) {
	w.BeginObject()
	w.Time("as_of", asOf, subscriptionshttp.Instants)
	w.Array("data")
	for _, row := range rows {
		w.BeginObject()
		row.write(w)
		w.EndObject()
	}
	w.EndArray()
	w.EndObject()
}

// metricsTable returns the rows as CSV, with a column for each member.
func metricsTable(rows []metricsRow) []byte {
	columns := []string{"month", "currency", "complete"}
	for _, f := range figures {
		columns = append(columns, f.name)
	}
	table := formats.NewTable(columns)
	for _, row := range rows {
		row.write(table)
		table.End()
	}
	return table.Page()
}

func (r *metricsRow) write(to subscriptionshttp.Members) {
	to.Text("month", r.month.String())
	to.Text("currency", r.currency)
	to.Bool("complete", r.complete)
	digits, _ := money.Digits(r.currency)
	for _, f := range figures {
		switch {
		case r.figures == nil:
			to.Null(f.name)
		case f.count != nil:
			to.Number(f.name, f.count(r.figures))
		default:
			to.Amount(f.name, f.amount(r.figures), digits)
		}
	}
}

// figures are the members of a row after its month, in their order: counts and amounts.
var figures = []struct {
	name   string
	count  func(*Figures) int64
	amount func(*Figures) money.Amount
}{
	{name: "mrr", amount: func(f *Figures) money.Amount { return f.MRR }},
	{name: "subscriptions", count: func(f *Figures) int64 { return f.Subscriptions }},
	{name: "new", amount: func(f *Figures) money.Amount { return f.New }},
	{name: "reactivated", amount: func(f *Figures) money.Amount { return f.Reactivated }},
	{name: "expansion", amount: func(f *Figures) money.Amount { return f.Expansion }},
	{name: "contraction", amount: func(f *Figures) money.Amount { return f.Contraction }},
	{name: "churned", amount: func(f *Figures) money.Amount { return f.Churned }},
}
