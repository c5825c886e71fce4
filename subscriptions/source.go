package subscriptions

import (
	"cmp"
	"context"
	"time"

	"commerce/auth/locale"
)

// Source has the subscriptions of stores. Errors for the caller are problem.Errors, such as
// ErrNotFound. Any other error means that the source failed.
type Source interface {
	// List returns the rows of a query for one store, in its order. Their Scheduled and
	// CancellationReason are not set, since the list does not show them.
	List(ctx context.Context, store int64, q Query) ([]Subscription, error)

	// Get returns one complete subscription of the store, with the product's name in a
	// language. The error is ErrNotFound if the store does not have it.
	Get(ctx context.Context, store, id int64, l locale.Locale) (*Subscription, error)

	// LinkKeys returns the secrets of page links. The first one signs new links. Links of all of
	// them are accepted. Instances with the same source have the same keys within seconds of a
	// change, or immediately with fresh. The caller must not modify them.
	LinkKeys(ctx context.Context, fresh bool) ([][]byte, error)
}

// Query is a page of the rows that match a filter. At most one of Skip, After and Before is set.
type Query struct {
	Filter   Filter
	Language locale.Locale // of the products' names
	Limit    int           // maximum number of rows

	// ByPeriodEnd lists the earliest end of the current period first, then the lowest ID. The
	// filter has then no other members than Statuses and those of the period's end. Otherwise
	// the highest ID is first.
	ByPeriodEnd bool

	Skip   int      // rows to skip first; takes proportional time
	After  Position // only rows after it
	Before Position // only the nearest rows before it
}

// Position is a place in a list: that of a subscription, whether or not it exists.
type Position struct {
	PeriodEnd time.Time // as it is stored; only of a list by it
	ID        int64
}

// untilY2K is how long before 2000 the microseconds of time.UnixMicro begin. From then on, an int64 has those of
// every time that Postgres can store.
const untilY2K = 946_684_800 * time.Second

// Micros returns a time as Postgres stores it: in microseconds since 2000.
func Micros(t time.Time) int64 { return t.Add(-untilY2K).UnixMicro() }

// AtMicros returns the time that Micros returned.
func AtMicros(micros int64) time.Time { return time.UnixMicro(micros).Add(untilY2K).UTC() }

// compare orders positions as the query lists them.
func (q *Query) compare(a, b Position) int {
	if q.ByPeriodEnd {
		return cmp.Or(cmp.Compare(Micros(a.PeriodEnd), Micros(b.PeriodEnd)), cmp.Compare(a.ID, b.ID))
	}
	return cmp.Compare(b.ID, a.ID)
}

// Compare orders subscriptions as the query lists them.
func (q *Query) Compare(a, b *Subscription) int {
	return q.compare(Position{a.PeriodEnd, a.ID}, Position{b.PeriodEnd, b.ID})
}
