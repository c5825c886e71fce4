package service

import (
	"context"
	"time"

	"commerce/auth/timing"
)

const (
	defaultBudget = 200 * time.Millisecond
	mergeBudgets  = 5 // how many times its budget a request may spend on merges
)

// budget is the time that one request may spend waiting for Redis. Nothing else uses it up, such as
// the catalog. It is not safe for concurrent use: one goroutine serves a request.
type budget struct{ left time.Duration }

// trip is one round trip that is under way.
type trip struct {
	budget *budget
	times  *timing.Times
	start  time.Time
	cancel func()
}

// spend limits one round trip to a part of the time left: 1 is all of it; 2 is half of it, for a
// round trip that the request can be served without, and leaves time for the rest.
func (b *budget) spend(ctx context.Context, part time.Duration) (context.Context, trip) {
	t := trip{budget: b, times: timing.Of(ctx), start: time.Now()}
	ctx, t.cancel = timing.Within(ctx, b.left/part)
	return ctx, t
}

// done subtracts the time that the round trip took.
func (t trip) done() {
	t.cancel()
	took := time.Since(t.start)
	t.budget.left -= took
	t.times.Add(timing.Redis, took)
}
