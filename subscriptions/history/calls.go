package history

import (
	"context"
	"fmt"

	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/subscriptions/recorded"
	"commerce/subscriptions/subscriptionshttp"
)

// parseHistory reads a raw query. Its problem.Error names every parameter at fault.
func parseHistory(query string, store, id int64) (q Query, err error) {
	q.Limit = DefaultEvents
	place := func(s string) (Place, bool) { return ParsePlace(s, store, id) }
	err = subscriptionshttp.Refused(subscriptionshttp.ReadQuery(query, &q, []subscriptionshttp.Parameter[Query]{
		subscriptionshttp.Parsed("after", func(q *Query) *Place { return &q.After }, place, textPlace.With()),
		subscriptionshttp.Number("limit", func(q *Query) *int { return &q.Limit }, MaxEvents),
	}, subscriptionshttp.TextNoValue, textUnknownOfHistory))
	return q, err
}

// Source has the histories of subscriptions.
type Source interface {
	// History returns what happened to a subscription of the store, also if it was deleted since. The error is
	// subscriptions.ErrNotFound if nothing is known about it, and recorded.ErrNone if the source records none.
	History(ctx context.Context, store, id int64, q Query) (Page, error)

	// Events returns what happened in a store after a cursor. The error has the code of an expired cursor if a reader
	// with it could miss something, and is recorded.ErrNone if the source records none.
	Events(ctx context.Context, store int64, q StoreQuery) (Feed, error)

	EventNews(ctx context.Context, after map[int64]recorded.Change) (map[int64]recorded.Change, error) // a recorded.News
}

// Calls returns the calls for the histories of a source, and for the events of a store.
func Calls(source Source) subscriptionshttp.Calls {
	return func(http *subscriptionshttp.API) []wire.Route {
		a := &api{http: http, source: source}
		a.pages = recorded.NewPages(http, source.EventNews, a.readFeed, func(w *wire.Writer, m *subscriptionshttp.Merchant, f Feed) {
			writeFeed(w, http.View(m, w), &f, m.Store.ID)
		})
		return []wire.Route{
			{Method: "GET", Path: "/subscriptions/events", Handle: http.Serve(a.events)},
			{Method: "GET", Path: "/subscriptions/:id/history", Handle: http.Serve(a.history)},
		}
	}
}

// api handles the calls.
type api struct {
	http   *subscriptionshttp.API
	source Source
	pages  *recorded.Pages[Feed]
}

// events answers with what happened in a store.
func (a *api) events(m *subscriptionshttp.Merchant) (wire.Answer, error) {
	asked, err := recorded.ParsePage(m.Request.URL.RawQuery, ofEvents, m.Store.ID, textEventsCursor.With(), textUnknownOfEvents)
	if err != nil {
		return wire.Answer{}, err
	}
	return a.pages.Answer(m, asked)
}

func (a *api) readFeed(ctx context.Context, m *subscriptionshttp.Merchant, asked recorded.Asked) (Feed, recorded.Cursor, error) {
	f, err := a.source.Events(ctx, m.Store.ID, StoreQuery{asked.After, asked.Limit})
	if err != nil {
		return f, f.Next, fmt.Errorf("read events of store %d: %w", m.Store.ID, err)
	}
	return f, f.Next, nil
}

func writeFeed(w *wire.Writer, v *subscriptionshttp.View, f *Feed, store int64) {
	w.BeginObject()
	w.Array("data")
	for i := range f.Events {
		w.BeginObject()
		w.Number("subscription_id", f.Events[i].SubscriptionID)
		writeEvent(w, v, &f.Events[i].Event)
		w.EndObject()
	}
	w.EndArray()
	w.Text("next", ofEvents.Text(f.Next, store))
	w.Bool("has_more", f.More)
	w.EndObject()
}

// history answers with what happened to a subscription.
func (a *api) history(m *subscriptionshttp.Merchant) (wire.Answer, error) {
	id, err := m.Subscription()
	if err != nil {
		return wire.Answer{}, err
	}
	q, err := parseHistory(m.Request.URL.RawQuery, m.Store.ID, id)
	if err != nil {
		return wire.Answer{}, err
	}
	p, err := a.source.History(m.Request.Context(), m.Store.ID, id, q)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("read the history of subscription %d of store %d: %w", id, m.Store.ID, err)
	}
	return wire.Answer{Data: func(w *wire.Writer) { writeHistory(w, a.http.View(m, w), &p, m.Store.ID, id) }}, nil
}

func writeHistory(w *wire.Writer, v *subscriptionshttp.View, p *Page, store, id int64) {
	w.BeginObject()
	w.Array("data")
	for i := range p.Events {
		w.BeginObject()
		writeEvent(w, v, &p.Events[i])
		w.EndObject()
	}
	w.EndArray()
	w.Bool("has_more", p.More)
	if p.More {
		w.Text("next", p.Next().Text(store, id))
	} else {
		w.Null("next")
	}
	w.EndObject()
}

func writeEvent(w *wire.Writer, v *subscriptionshttp.View, e *Event) {
	v.Instant("at", e.To.At)
	w.Text("event", string(e.Kind))
	writeSide(v, "from", e.Kind, e.From)
	writeSide(v, "to", e.Kind, e.To)
	if e.Cancels() {
		w.Optional("cancellation_reason", e.To.CancellationReason)
	}
}

// writeSide writes what a subscription was before or after an event of a kind, as a single
// subscription shows it. It writes null for a subscription that did not exist, or no longer does, and
// for a price in an unknown currency: a mistake of the past must not hide the other events.
func writeSide(v *subscriptionshttp.View, name string, kind Kind, s *State) {
	switch {
	case s == nil, s.Deleted, kind == EventPrice && !money.Known(s.Currency):
		v.Null(name)
	case kind == EventCreated, kind == EventStatus:
		v.Text(name, string(s.Status))
	case kind == EventVariant:
		v.Number(name, s.VariantID)
	case kind == EventPrice:
		v.Object(name)
		v.Price(s.Price, s.Currency)
		v.Text("duration", string(s.Duration))
		v.EndObject()
	case kind == EventCancelAtPeriodEnd:
		v.Bool(name, s.CancelAtPeriodEnd)
	case kind == EventCard:
		v.Card(name, s.Card)
	case kind == EventRenewed:
		v.Object(name)
		v.Time("current_period_start", s.PeriodStart, subscriptionshttp.Instants)
		v.Time("current_period_end", s.PeriodEnd, subscriptionshttp.Instants)
		v.EndObject()
	}
}

// Texts for parameters that are refused.
var (
	textUnknownOfHistory = locale.Text{
		locale.En: "Unknown parameter. A history accepts %s.",
		locale.Ar: "معامل غير معروف. يقبل السجل %s.",
	}
	textUnknownOfEvents = locale.Text{
		locale.En: "Unknown parameter. Events accept %s.",
		locale.Ar: "معامل غير معروف. تقبل الأحداث %s.",
	}
	textEventsCursor = locale.Text{
		locale.En: "after is not a cursor of this store's events. Send the value of next unchanged, or omit after to start from the beginning.",
		locale.Ar: "قيمة after لا تخص أحداث هذا المتجر. أرسل قيمة next دون تغيير، أو احذف after للبدء من البداية.",
	}
	textPlace = locale.Text{
		locale.En: "after is not from the history of this subscription. Send the value of next unchanged, or omit after to start with the newest event.",
		locale.Ar: "قيمة after لا تخص سجل هذا الاشتراك. أرسل قيمة next دون تغيير، أو احذف after للبدء من أحدث حدث.",
	}
)
