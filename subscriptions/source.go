package subscriptions

import (
	"context"
	"errors"

	"commerce/auth/locale"
)

// ErrNotFound means that the store does not have the subscription.
var ErrNotFound = errors.New("subscriptions: no such subscription")

// ErrCursorExpired means that the changes after a cursor are no longer known, or that the
// database is not the one in which the cursor was made.
var ErrCursorExpired = errors.New("subscriptions: the changes after the cursor are not known")

// Source has the subscriptions of stores. Any error other than these two means that it
// failed. Errors for the caller are problem.Errors.
type Source interface {
	// List returns the rows of a query for one store by descending ID. Their Scheduled
	// is not set, since the list does not show it.
	List(ctx context.Context, store int64, q Query) ([]Subscription, error)

	// Get returns one complete subscription of the store, with the product's name in a
	// language.
	Get(ctx context.Context, store, id int64, l locale.Locale) (*Subscription, error)

	// Changes returns what changed in a store after a cursor. The error is
	// ErrCursorExpired if a reader with this cursor could miss something.
	Changes(ctx context.Context, store int64, q ChangesQuery) (Changes, error)

	// Totals adds up all subscriptions of the store by status, currency and duration. The
	// order is undefined. A call may outlive the request that caused it.
	Totals(ctx context.Context, store int64) ([]Total, error)

	// LinkKeys returns the secrets of page links. The first one signs new links. Links
	// of all of them are accepted. Instances with the same source have the same keys
	// within seconds of a change, or immediately with fresh. The caller must not
	// modify them.
	LinkKeys(ctx context.Context, fresh bool) ([][]byte, error)
}

// Query is a page of the rows that match a filter. At most one of Skip, Older and Newer is
// set.
type Query struct {
	Filter   Filter
	Language locale.Locale // of the products' names
	Limit    int           // maximum number of rows

	Skip  int   // rows to skip first; takes proportional time
	Older int64 // only IDs below it
	Newer int64 // only the nearest IDs above it
}
