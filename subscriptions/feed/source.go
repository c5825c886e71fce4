// Package feed lets a store's programs keep a copy of its subscriptions: it reads what changed since a cursor, from
// Postgres or from memory, and serves it over HTTP as pages, which may wait for a change, or as a stream.
package feed

import (
	"context"
	"time"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/subscriptions"
)

// Source has the changes of stores' subscriptions.
type Source interface {
	// Changes returns what changed in a store after a cursor. The error is ErrCursorExpired if a
	// reader with this cursor could miss something, and recorded.ErrNone if the source records no changes.
	Changes(ctx context.Context, store int64, q Query) (Changes, error)

	// News is that of a Waiter.
	News(ctx context.Context, after map[int64]Change) (map[int64]Change, error)
}

// Query asks for the changes of a store after a cursor.
type Query struct {
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
	Changed []subscriptions.Subscription
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

// ErrCursorExpired means that the changes after a cursor are no longer known, or that the
// database is not the one in which the cursor was made.
var ErrCursorExpired = problem.New(problem.CursorExpired, "after", locale.Text{
	locale.En: "The changes after this cursor are no longer known. Start again without after.",
	locale.Ar: "لم تعد التغييرات بعد هذه القيمة معروفة. ابدأ من جديد دون after.",
})
