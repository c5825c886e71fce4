package subscriptions

import (
	"fmt"
	"net/url"

	"commerce/auth/problem"
	"commerce/cart/wire"
)

func (a *API) summary(v *visit) (func(*wire.Writer), error) {
	if err := refuseParameters(v.Request.URL.RawQuery); err != nil {
		return nil, err
	}
	s, err := a.summaries.get(v.ctx(), v.store.ID)
	if err != nil {
		return nil, fmt.Errorf("summarize subscriptions of store %d: %w", v.store.ID, err)
	}
	return s.write, nil
}

// refuseParameters refuses a raw query that has any parameter: a filter, for example, would
// otherwise seem to work. Its problem.Error names every parameter.
func refuseParameters(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return problem.New(problem.InvalidParameter, wholeQuery, textUnreadable)
	}
	faults := unknown(values)
	if faults == nil {
		return nil
	}
	for i := range faults {
		faults[i].Sentence = textNoParameters.With()
	}
	return &problem.Error{Code: problem.InvalidParameter, Faults: faults}
}

// write writes the summary as the store's programs read it.
func (s *Summary) write(w *wire.Writer) {
	w.BeginObject()
	w.JSON("as_of", instants.quoted(s.AsOf))
	w.Object("by_status")
	for _, status := range allStatuses {
		w.Number(string(status), s.ByStatus[status])
	}
	w.EndObject()
	w.Number("ending", s.Ending)
	w.Array("mrr")
	for _, r := range s.MRR {
		w.BeginObject()
		w.Text("currency", r.Currency)
		w.Amount("amount", r.Amount, r.Digits)
		w.Number("subscriptions", r.Subscriptions)
		w.EndObject()
	}
	w.EndArray()
	w.EndObject()
}
