// Package timing measures where the time of a request goes: to Redis, to Postgres, or to waits.
// The server reads the sums at the end of the request.
package timing

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Place is where a request spends time.
type Place int

// The places.
const (
	Redis    Place = iota
	Postgres       // statements that the request itself waits for
	Catalog        // loads of a cache of the catalog
	Waiting        // everything else: a limiter, a connection of a pool, an issuer's keys
	places
)

// Times holds the time of one request at each place. It is safe for concurrent use. A nil
// *Times measures nothing.
//
// Times is also the context of the request, so that measuring takes only one allocation.
type Times struct {
	context.Context
	spent [places]atomic.Int64 // nanoseconds
}

type timesKey struct{}

// Value implements context.Context.
func (t *Times) Value(key any) any {
	if key == (timesKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// Of returns the Times of the request that ctx belongs to, or nil if the request is not
// measured.
func Of(ctx context.Context) *Times {
	t, _ := ctx.Value(timesKey{}).(*Times)
	return t
}

// Add adds time that the request has just spent at a place. If ctx has no Times, it adds
// nothing. If the request is traced, a wait at Catalog or Waiting also gets a span.
func Add(ctx context.Context, at Place, d time.Duration) {
	Of(ctx).Add(at, d)
	if waits[at] != "" && d >= MinWait && Traced(ctx) {
		_, end := Step(ctx, waits[at], trace.WithTimestamp(time.Now().Add(-d)))
		end(nil)
	}
}

// Add adds time spent at a place.
func (t *Times) Add(at Place, d time.Duration) {
	if t != nil {
		t.spent[at].Add(int64(d))
	}
}

// Spent returns the time spent at a place so far. If waits overlap, each counts in full.
func (t *Times) Spent(at Place) time.Duration {
	if t == nil {
		return 0
	}
	return time.Duration(t.spent[at].Load())
}

// Detach returns a context for work that outlives its request or that several requests
// share. It has the values of ctx, but no deadline, and the work is not measured: each
// request measures how long it waits for the result.
func Detach(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), timesKey{}, (*Times)(nil))
}

// Within returns a context for a call that may take at most limit, and no longer than the
// deadline of ctx allows. It has the values of ctx. The caller must call cancel.
//
// It takes no part in the cancellation of ctx: a client that disconnects does not end a call
// that has begun.
func Within(ctx context.Context, limit time.Duration) (_ context.Context, cancel func()) {
	ends := time.Now().Add(limit)
	if earlier, bounded := ctx.Deadline(); bounded && earlier.Before(ends) {
		ends = earlier
	}
	call, cancel := context.WithDeadline(context.WithoutCancel(ctx), ends)
	if ctx.Err() != nil {
		cancel()
	}
	return call, cancel
}
