package subscriptionshttp

import (
	"fmt"

	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/subscriptions"
)

// parseHistory reads a raw query. Its problem.Error names every parameter at fault.
func parseHistory(query string, store, id int64) (q subscriptions.HistoryQuery, err error) {
	q.Limit = subscriptions.DefaultEvents
	place := func(s string) (subscriptions.Place, bool) { return subscriptions.ParsePlace(s, store, id) }
	err = refused(readQuery(query, &q, []parameter[subscriptions.HistoryQuery]{
		{"after", into(func(q *subscriptions.HistoryQuery) *subscriptions.Place { return &q.After }, place), textPlace.With()},
		number("limit", func(q *subscriptions.HistoryQuery) *int { return &q.Limit }, subscriptions.MaxEvents),
	}, textNoValue, textUnknownOfHistory))
	return q, err
}

// history answers with what happened to a subscription.
func (a *API) history(m *merchant) (wire.Answer, error) {
	id, err := m.subscription()
	if err != nil {
		return wire.Answer{}, err
	}
	q, err := parseHistory(m.Request.URL.RawQuery, m.store.ID, id)
	if err != nil {
		return wire.Answer{}, err
	}
	p, err := a.Source.History(m.Request.Context(), m.store.ID, id, q)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("read the history of subscription %d of store %d: %w", id, m.store.ID, err)
	}
	return wire.Answer{Data: func(w *wire.Writer) { writeHistory(w, a.view(m, w), &p, id) }}, nil
}

func writeHistory(w *wire.Writer, v *view, p *subscriptions.HistoryPage, id int64) {
	w.BeginObject()
	w.Array("data")
	for i := range p.Events {
		e := &p.Events[i]
		w.BeginObject()
		v.instant("at", e.To.At)
		w.Text("event", string(e.Kind))
		v.side("from", e.Kind, e.From)
		v.side("to", e.Kind, e.To)
		w.EndObject()
	}
	w.EndArray()
	w.Bool("has_more", p.More)
	if p.More {
		w.Text("next", p.Next().Text(v.store.ID, id))
	} else {
		w.Null("next")
	}
	w.EndObject()
}

// side writes what a subscription was before or after an event of a kind, as a single
// subscription shows it. It writes null for a subscription that did not exist, or no longer does, and
// for a price in an unknown currency: a mistake of the past must not hide the other events.
func (v *view) side(name string, kind subscriptions.EventKind, s *subscriptions.State) {
	switch {
	case s == nil, s.Deleted, kind == subscriptions.EventPrice && !money.Known(s.Currency):
		v.Null(name)
	case kind == subscriptions.EventCreated, kind == subscriptions.EventStatus:
		v.Text(name, string(s.Status))
	case kind == subscriptions.EventVariant:
		v.Number(name, s.VariantID)
	case kind == subscriptions.EventPrice:
		v.Object(name)
		v.price(s.Price, s.Currency)
		v.Text("duration", string(s.Duration))
		v.EndObject()
	case kind == subscriptions.EventCancelAtPeriodEnd:
		v.Bool(name, s.CancelAtPeriodEnd)
	case kind == subscriptions.EventCard:
		v.card(name, s.Card)
	case kind == subscriptions.EventRenewed:
		v.Object(name)
		v.Time("current_period_start", s.PeriodStart, instants)
		v.Time("current_period_end", s.PeriodEnd, instants)
		v.EndObject()
	}
}
