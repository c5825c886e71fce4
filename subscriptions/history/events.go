// Package history tells what happened to a subscription: it reads the states that it had, from Postgres or from
// memory, and serves the events between them over HTTP.
package history

import (
	"iter"
	"slices"
	"time"

	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/subscriptions"
)

// Bears reports whether a subscription of a status is paid for, so that it bears revenue.
func Bears(s subscriptions.Status) bool {
	return s == subscriptions.Active || s == subscriptions.PastDue
}

// State is what a subscription was from a moment on, until its next state.
type State struct {
	Number int64 // orders the states of a subscription
	At     time.Time

	// Baseline means that nothing happened at At: recording began, or older states were
	// folded into this one. WasBearing is set only then, and if an import created the
	// subscription: it is active or past due, or was before.
	Baseline, WasBearing bool

	Deleted bool // the members below are not set

	Status            subscriptions.Status
	VariantID         int64
	Price             money.Amount
	Currency          string
	Duration          period.Duration
	CancelAtPeriodEnd bool
	Card              *subscriptions.Card // nil: none, or the subscription was deleted later
	PeriodStart       time.Time
	PeriodEnd         time.Time

	// CancellationReason is what the transaction of this state left. One that is written later is no event.
	CancellationReason string
}

// StateOf returns the state of a subscription that changed at a time. It has no number.
func StateOf(s *subscriptions.Subscription, at time.Time) State {
	return State{
		At: at, Status: s.Status, VariantID: s.Variant.ID, Price: s.Price, Currency: s.Currency, Duration: s.Duration,
		CancelAtPeriodEnd: s.CancelAtPeriodEnd, Card: s.Card, PeriodStart: s.PeriodStart, PeriodEnd: s.PeriodEnd,
		CancellationReason: s.CancellationReason,
	}
}

// baseline returns the state with which the history of a subscription begins. One whose paid time
// goes on after its trial has been active.
func baseline(s *subscriptions.Subscription, at time.Time) State {
	first := StateOf(s, at)
	first.Baseline = true
	first.WasBearing = Bears(s.Status) || s.Status != subscriptions.Trialing && (s.TrialEndsAt.IsZero() || s.EndsAt.After(s.TrialEndsAt))
	return first
}

// Past has the states of a subscription, the oldest first.
type Past struct {
	StoreID, ID int64
	States      []State
}

// InOrder yields the states of several pasts in the order of their times, but those of one past in its own.
func InOrder(all []Past) iter.Seq2[*Past, *State] {
	type placed struct {
		past  *Past
		state *State
		at    time.Time // the latest time until then
	}
	var states []placed
	for i := range all {
		latest := time.Time{}
		for j := range all[i].States {
			s := &all[i].States[j]
			if s.At.After(latest) {
				latest = s.At
			}
			states = append(states, placed{&all[i], s, latest})
		}
	}
	slices.SortStableFunc(states, func(a, b placed) int { return a.at.Compare(b.at) })
	return func(yield func(*Past, *State) bool) {
		for _, s := range states {
			if !yield(s.past, s.state) {
				return
			}
		}
	}
}

// Kind is what changed between two states.
type Kind string

const (
	EventCreated           Kind = "created"
	EventStatus            Kind = "status"
	EventVariant           Kind = "variant"
	EventPrice             Kind = "price" // or the currency, or how often it is paid
	EventCancelAtPeriodEnd Kind = "cancel_at_period_end"
	EventCard              Kind = "card"
	EventRenewed           Kind = "renewed" // its period changed
)

// Kinds has every kind once, in the order of the events of one state.
var Kinds = [...]Kind{EventCreated, EventStatus, EventVariant, EventPrice, EventCancelAtPeriodEnd, EventCard, EventRenewed}

// Event is one difference between a state and the one before.
type Event struct {
	Kind     Kind
	From, To *State // From is nil if the subscription was created
}

// Cancels reports whether the event says that the subscription ends: its status becomes canceled, or it will end with
// its period.
func (e *Event) Cancels() bool {
	return e.Kind == EventStatus && e.To.Status == subscriptions.Canceled || e.Kind == EventCancelAtPeriodEnd && e.To.CancelAtPeriodEnd
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
		for _, kind := range Kinds {
			if s.happened(kind, before) {
				events = append(events, Event{kind, before, s})
			}
		}
	}
	return events
}

// happened reports whether an event of a kind made s out of the state before, nil for none.
func (s *State) happened(kind Kind, before *State) bool {
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
func (s *State) card() (c subscriptions.Card) {
	if s.Card != nil {
		c = *s.Card
	}
	return c
}
