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
	columns := []string{"month", "currency", "complete", "mrr", "subscriptions"}
	for _, kind := range Kinds {
		columns = append(columns, kind, kind+"_subscriptions")
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
	var f Figures
	if r.figures != nil {
		f = *r.figures
	}
	r.writeMove(to, "mrr", "subscriptions", Move{f.MRR, f.Subscriptions})
	for kind, name := range Kinds {
		r.writeMove(to, name, name+"_subscriptions", f.Moves[kind])
	}
}

// writeMove writes an amount and a count, or null if the row has no figures.
func (r *metricsRow) writeMove(to subscriptionshttp.Members, amount, count string, m Move) {
	if r.figures == nil {
		to.Null(amount)
		to.Null(count)
		return
	}
	digits, _ := money.Digits(r.currency)
	to.Amount(amount, m.Amount, digits)
	to.Number(count, m.Subscriptions)
}
