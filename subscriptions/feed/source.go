// Package feed lets a store's programs keep a copy of its subscriptions: it reads what changed since a cursor, from
// Postgres or from memory, and serves it over HTTP as pages, which may wait for a change, or as a stream.
package feed

import (
	"context"
	"time"

	"commerce/auth/locale"
	"commerce/subscriptions"
	"commerce/subscriptions/recorded"
)

// Source has the changes of stores' subscriptions.
type Source interface {
	// Changes returns what changed in a store after a cursor. The error is ErrCursorExpired if a
	// reader with this cursor could miss something, and recorded.ErrNone if the source records no changes.
	Changes(ctx context.Context, store int64, q Query) (Changes, error)

	// News is that of a Waiter.
	News(ctx context.Context, after map[int64]recorded.Change) (map[int64]recorded.Change, error)
}

// Query asks for the changes of a store after a cursor.
type Query struct {
	After    recorded.Cursor
	Limit    int           // maximum number of changes, at least 1
	Language locale.Locale // of the products' names
}

// Changes are subscriptions that changed or were deleted, in the order of the changes. Each is in at
// most one of the lists, and only once, as it is now.
//
// A copy stays complete when its owner applies Deleted, then Changed, and then requests the changes
// after Next. Applying the same Changes again is harmless.
type Changes struct {
	Changed []subscriptions.Subscription
	Deleted []Deletion

	Next recorded.Cursor
	More bool // whether more changes follow Next now
}

type Deletion struct {
	ID int64
	At time.Time // when the transaction that deleted it began
}

// OfChanges is what cursors of changes are for.
const OfChanges recorded.Kind = "changes cursor"

// KeepDeletions is how long a deletion stays among the changes. A reader whose cursor is
// older may have to start from the beginning.
const KeepDeletions = 90 * 24 * time.Hour
