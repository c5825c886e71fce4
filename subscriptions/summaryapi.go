package subscriptions

import (
	"fmt"

	"commerce/cart/wire"
)

func (a *API) summary(v *visit) (func(*wire.Writer), error) {
	// A filter would otherwise seem to work.
	if faults := readQuery[struct{}](v.Request.URL.RawQuery, nil, nil, textNoParameters, textNoParameters); faults != nil {
		return nil, refused(faults)
	}
	s, err := a.summaries.get(v.ctx(), v.store.ID)
	if err != nil {
		return nil, fmt.Errorf("summarize subscriptions of store %d: %w", v.store.ID, err)
	}
	return s.write, nil
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
