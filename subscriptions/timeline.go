package subscriptions

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"commerce/cart/money"
	"commerce/cart/period"
)

// State is what a subscription was from a moment on, until its next state.
type State struct {
	Number int64 // orders the states of a subscription
	At     time.Time

	// Baseline means that nothing happened at At: recording began, or older states were
	// folded into this one. WasBearing is set only then: the subscription is active or past
	// due, or was before.
	Baseline, WasBearing bool

	Deleted bool // the members below are not set

	Status            Status
	VariantID         int64
	Price             money.Amount
	Currency          string
	Duration          period.Duration
	CancelAtPeriodEnd bool
	Card              *Card // nil: none, or the subscription was deleted later
	PeriodStart       time.Time
	PeriodEnd         time.Time
}

// StateOf returns the state of a subscription that changed at a time. It has no number.
func StateOf(s *Subscription, at time.Time) State {
	return State{
		At: at, Status: s.Status, VariantID: s.Variant.ID, Price: s.Price, Currency: s.Currency, Duration: s.Duration,
		CancelAtPeriodEnd: s.CancelAtPeriodEnd, Card: s.Card, PeriodStart: s.PeriodStart, PeriodEnd: s.PeriodEnd,
	}
}

// baseline returns the state with which the history of a subscription begins. One whose paid time
// goes on after its trial has been active.
func baseline(s *Subscription, at time.Time) State {
	first := StateOf(s, at)
	first.Baseline = true
	first.WasBearing = s.Status == Active || s.Status == PastDue ||
		s.Status != Trialing && (s.TrialEndsAt.IsZero() || s.EndsAt.After(s.TrialEndsAt))
	return first
}

// Past has the states of a subscription, the oldest first.
type Past struct {
	StoreID, ID int64
	States      []State
}

// EventKind is what changed between two states.
type EventKind string

const (
	EventCreated           EventKind = "created"
	EventStatus            EventKind = "status"
	EventVariant           EventKind = "variant"
	EventPrice             EventKind = "price" // or the currency, or how often it is paid
	EventCancelAtPeriodEnd EventKind = "cancel_at_period_end"
	EventCard              EventKind = "card"
	EventRenewed           EventKind = "renewed" // its period changed
)

// EventKinds has every kind once, in the order of the events of one state.
var EventKinds = [...]EventKind{EventCreated, EventStatus, EventVariant, EventPrice, EventCancelAtPeriodEnd, EventCard, EventRenewed}

// Event is one difference between a state and the one before.
type Event struct {
	Kind     EventKind
	From, To *State // From is nil if the subscription was created
}

// Events returns the differences between states, the newest first. The oldest state has a
// state before it that is not given, unless whole is set.
func Events(newestFirst []State, whole bool) []Event {
	var events []Event
	for i := range newestFirst {
		s := &newestFirst[i]
		var before *State
		switch {
		case i+1 < len(newestFirst):
			before = &newestFirst[i+1]
		case !whole:
			return events
		}
		for _, kind := range EventKinds {
			if s.happened(kind, before) {
				events = append(events, Event{kind, before, s})
			}
		}
	}
	return events
}

// happened reports whether an event of a kind made s out of the state before, nil for none.
func (s *State) happened(kind EventKind, before *State) bool {
	existed := before != nil && !before.Deleted
	switch {
	case s.Baseline:
		return false
	case s.Deleted:
		return existed && kind == EventStatus
	case !existed:
		return kind == EventCreated
	}
	switch kind {
	case EventStatus:
		return s.Status != before.Status
	case EventVariant:
		return s.VariantID != before.VariantID
	case EventPrice:
		return s.Price != before.Price || s.Currency != before.Currency || s.Duration != before.Duration
	case EventCancelAtPeriodEnd:
		return s.CancelAtPeriodEnd != before.CancelAtPeriodEnd
	case EventCard:
		return s.card() != before.card()
	case EventRenewed:
		return !s.PeriodStart.Equal(before.PeriodStart) || !s.PeriodEnd.Equal(before.PeriodEnd)
	}
	return false
}

// card returns the zero Card for none.
func (s *State) card() (c Card) {
	if s.Card != nil {
		c = *s.Card
	}
	return c
}

// HistoryQuery asks for the newest events of a subscription, or for those that are older
// than the one at After.
type HistoryQuery struct {
	After Place
	Limit int // maximum number of events, at least 1
}

// HistoryPage has events, the newest first.
type HistoryPage struct {
	Events []Event
	More   bool // whether older events follow
}

// Next is the place of the last event.
func (p *HistoryPage) Next() Place { return p.Events[len(p.Events)-1].place() }

// The number of events that a page has by default and at most.
const (
	DefaultEvents = 20
	MaxEvents     = 100
)

// KeepStates is how long states are kept in Postgres. Older ones are folded into one. Three years
// have a leap day at most, so all months of metrics are kept whole.
const KeepStates = (3*365 + 1) * 24 * time.Hour

// Place is the place of an event in a history. The zero Place is before the newest one.
type Place struct {
	State int64 // its number
	Kind  int   // its index in EventKinds
}

func (e *Event) place() Place { return Place{e.To.Number, slices.Index(EventKinds[:], e.Kind)} }

// Newest is the maximum number of the states that a page needs.
func (q *HistoryQuery) Newest() int64 {
	if (q.After == Place{}) {
		return math.MaxInt64
	}
	return q.After.State
}

// Page returns the page, given the states from q.Newest on. ok is false if it needs older
// ones, too. Whole means that there are none.
func (q *HistoryQuery) Page(newestFirst []State, whole bool) (p HistoryPage, ok bool) {
	p.Events = slices.DeleteFunc(Events(newestFirst, whole), func(e Event) bool {
		at := e.place()
		return at.State == q.After.State && at.Kind <= q.After.Kind
	})
	if p.More = len(p.Events) > q.Limit; p.More {
		p.Events = p.Events[:q.Limit]
	}
	return p, p.More || whole
}

const (
	placeVersion = 1
	maxPlace     = 40 // characters; texts of places have at most 26
)

// Text returns a place as a store's programs see it. Like a Cursor, it has a checksum but no
// signature.
//
//	version, kind: 1 byte each · number: uvarint · checksum, 8 bytes
func (p Place) Text(store, subscription int64) string {
	b := binary.AppendUvarint([]byte{placeVersion, byte(p.Kind)}, uint64(p.State))
	return base64.RawURLEncoding.EncodeToString(append(b, checksum(b, "history cursor", store, subscription)...))
}

// ParsePlace reads the text of a place. ok is true only if exactly this text was made for
// the same subscription.
func ParsePlace(s string, store, subscription int64) (p Place, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(s) > maxPlace || len(b) < 2+cursorSum {
		return Place{}, false
	}
	number, _ := binary.Uvarint(b[2:])
	p = Place{State: int64(number), Kind: int(b[1])}
	return p, p.State >= 0 && p.Text(store, subscription) == s
}
