package history

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"commerce/subscriptions/recorded"
)

// Query asks for the newest events of a subscription, or for those that are older
// than the one at After.
type Query struct {
	After Place
	Limit int // maximum number of events, at least 1
}

// Page has events, the newest first.
type Page struct {
	Events []Event
	More   bool // whether older events follow
}

// Next is the place of the last event.
func (p *Page) Next() Place { return p.Events[len(p.Events)-1].place() }

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
	Kind  int   // its index in Kinds
}

func (e *Event) place() Place { return Place{e.To.Number, slices.Index(Kinds[:], e.Kind)} }

// Newest is the maximum number of the states that a page needs.
func (q *Query) Newest() int64 {
	if (q.After == Place{}) {
		return math.MaxInt64
	}
	return q.After.State
}

// Page returns the page, given the states from q.Newest on. ok is false if it needs older
// ones, too. Whole means that there are none.
func (q *Query) Page(newestFirst []State, whole bool) (p Page, ok bool) {
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
	return base64.RawURLEncoding.EncodeToString(append(b, recorded.Checksum(b, "history cursor", store, subscription)...))
}

// ParsePlace reads the text of a place. ok is true only if exactly this text was made for
// the same subscription.
func ParsePlace(s string, store, subscription int64) (p Place, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(s) > maxPlace || len(b) < 2+recorded.SumSize {
		return Place{}, false
	}
	number, _ := binary.Uvarint(b[2:])
	p = Place{State: int64(number), Kind: int(b[1])}
	return p, p.State >= 0 && p.Text(store, subscription) == s
}
