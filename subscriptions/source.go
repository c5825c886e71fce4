package subscriptions

import (
	"context"
	"time"

	"commerce/auth/locale"
)

// Source has the subscriptions of stores. Errors for the caller are problem.Errors, such as
// ErrNotFound. Any other error means that the source failed.
type Source interface {
	// List returns the rows of a query for one store by descending ID. Their Scheduled
	// is not set, since the list does not show it.
	List(ctx context.Context, store int64, q Query) ([]Subscription, error)

	// Get returns one complete subscription of the store, with the product's name in a
	// language. The error is ErrNotFound if the store does not have it.
	Get(ctx context.Context, store, id int64, l locale.Locale) (*Subscription, error)

	// Changes returns what changed in a store after a cursor. The error is
	// ErrCursorExpired if a reader with this cursor could miss something.
	Changes(ctx context.Context, store int64, q ChangesQuery) (Changes, error)

	// News returns the latest change of each store that has one after the given change of the
	// store. It is cheap, also for many stores. With an error, it returns what it knows.
	News(ctx context.Context, after map[int64]Change) (map[int64]Change, error)

	// Totals adds up all subscriptions of the store by status, currency and duration. The
	// order is undefined. A call may outlive the request that caused it.
	Totals(ctx context.Context, store int64) ([]Total, error)

	// LinkKeys returns the secrets of page links. The first one signs new links. Links of all of
	// them are accepted. Instances with the same source have the same keys within seconds of a
	// change, or immediately with fresh. The caller must not modify them.
	LinkKeys(ctx context.Context, fresh bool) ([][]byte, error)
}

// Query is a page of the rows that match a filter. At most one of Skip, Older and Newer is set.
type Query struct {
	Filter   Filter
	Language locale.Locale // of the products' names
	Limit    int           // maximum number of rows

	Skip  int   // rows to skip first; takes proportional time
	Older int64 // only IDs below it
	Newer int64 // only the nearest IDs above it
}

// ChangesQuery asks for the changes of a store after a cursor.
type ChangesQuery struct {
	After    Cursor
	Limit    int           // maximum number of changes, at least 1
	Language locale.Locale // of the products' names
}

// Changes are subscriptions that changed or were deleted, in the order of the changes. Each is in at
// most one of the lists, and only once, as it is now.
//
// A copy stays complete when its owner applies Deleted, then Changed, and then requests the changes
// after Next. Applying the same Changes again is harmless.
type Changes struct {
	Changed []Subscription
	Deleted []Deletion

	Next Cursor
	More bool // whether more changes follow Next now
}

type Deletion struct {
	ID int64
	At time.Time // when the transaction that deleted it began
}

// The number of changes that a page has by default and at most.
const (
	DefaultChanges = 100
	MaxChanges     = 1000
)

// KeepDeletions is how long a deletion stays among the changes. A reader whose cursor is
// older may have to start from the beginning.
const KeepDeletions = 90 * 24 * time.Hour
