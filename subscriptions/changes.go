package subscriptions

import (
	"time"

	"commerce/auth/locale"
)

// ChangesQuery asks for the changes of a store after a cursor.
type ChangesQuery struct {
	After    Cursor
	Limit    int           // maximum number of changes, at least 1
	Language locale.Locale // of the products' names
}

// Changes are subscriptions that changed or were deleted. A subscription is in at most one
// of the lists, and both are in the order of the changes. A subscription that changed
// several times appears once, as it is now.
//
// A copy stays complete when its owner applies Deleted, then Changed, and then requests
// the changes after Next. Applying the same Changes again is harmless.
type Changes struct {
	Changed []Subscription
	Deleted []Deletion

	Next Cursor
	More bool // whether more changes follow Next now
}

// Deletion is a subscription that was deleted.
type Deletion struct {
	ID int64
	At time.Time // when the transaction that deleted it began
}

const (
	defaultChanges = 100
	maxChanges     = 1000
)

// KeepDeletions is how long a deletion stays among the changes. A reader whose cursor is
// older may have to start from the beginning.
const KeepDeletions = 90 * 24 * time.Hour
