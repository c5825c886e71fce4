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

	// LinkKeys returns the secrets of page links. New links are signed with the
	// first, links of any of them are accepted. Every instance that reads the same
	// source has the same ones, within seconds of a change. With fresh they are
	// as they are now. The caller does not modify them.
	LinkKeys(ctx context.Context, fresh bool) ([][]byte, error)
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
