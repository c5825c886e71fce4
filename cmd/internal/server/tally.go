package server

import (
	"context"
	"log/slog"
	"time"

	"commerce/auth/timing"
	"commerce/cart/wire"
)

// tally is the context of one request. It collects what the log line shows in addition to the
// response: whose request it was, and where its time went.
type tally struct {
	timing.Times
	deadline deadline
	client   string      // cached by wire.Client
	store    int64       // 0: not known
	caller   wire.Caller // "": not known
}

// newTally returns a tally that ends at a certain time, or earlier with ctx, which has no
// deadline. The caller must stop the deadline.
func newTally(ctx context.Context, ends time.Time) *tally {
	t := &tally{deadline: deadline{parent: ctx, at: ends}}
	t.Times.Context = &t.deadline
	return t
}

type tallyKey struct{}

// Value implements context.Context.
func (t *tally) Value(key any) any {
	switch key {
	case tallyKey{}:
		return t
	case wire.ClientKey{}:
		return &t.client
	}
	return t.Times.Value(key)
}

// tallyOf returns the tally of the request that ctx belongs to, or nil.
func tallyOf(ctx context.Context) *tally {
	t, _ := ctx.Value(tallyKey{}).(*tally)
	return t
}

// untimed is the context of a stream, which may take longer than other requests. It has the
// values of the tally, and is canceled only when the client disconnects.
type untimed struct {
	context.Context
	tally *tally
}

// Value implements context.Context.
func (u untimed) Value(key any) any { return u.tally.Value(key) }

// identify records whose request it is.
func (t *tally) identify(a *wire.Answer) { t.store, t.caller = a.Store, a.Caller }

// places are the log members for the time at each place.
var places = [...]struct {
	member string
	place  timing.Place
}{
	{"redis_ms", timing.Redis},
	{"postgres_ms", timing.Postgres},
	{"catalog_ms", timing.Catalog},
	{"waiting_ms", timing.Waiting},
}

// appendPlaces appends the times that are not 0.
func (t *tally) appendPlaces(attrs []slog.Attr) []slog.Attr {
	for _, p := range places {
		if spent := t.Spent(p.place); spent > 0 {
			attrs = append(attrs, slog.Float64(p.member, milliseconds(spent)))
		}
	}
	return attrs
}

// milliseconds returns d in milliseconds, with microsecond precision.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
