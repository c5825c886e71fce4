package subscriptions

import (
	"context"
	"errors"
)

// ErrNotFound is a source's answer that the store has no such subscription.
var ErrNotFound = errors.New("subscriptions: no such subscription")

// Source holds subscriptions. Any error but ErrNotFound means that it failed; an
// *Error among them says how to put it to the caller.
type Source interface {
	// List returns what the query asks for of one store, newest first (by id,
	// descending). The rows lack Scheduled, which the list does not show.
	List(ctx context.Context, store int64, q Query) ([]Subscription, error)

	// Get returns one subscription of the store in full.
	Get(ctx context.Context, store, id int64) (*Subscription, error)

	// LinkKey returns the secret that page links are signed with: the same in
	// every instance that reads the same source, and after a restart. It is
	// asked on every request, and not to be modified.
	LinkKey(ctx context.Context) ([]byte, error)
}

// Query is one page of what passes a filter. Of Skip, Older and Newer at most one
// is set.
type Query struct {
	Filter Filter
	Limit  int // rows at most

	Skip  int   // rows to leave out first; costs time in proportion
	Older int64 // only ids below it
	Newer int64 // only ids above it, and of those the ones next to it
}
