package service

import (
	"context"
	"time"
)

// budget is the time that one request may keep Redis waiting for it, or wait for
// Redis. Nothing else uses it up: neither a body that comes slowly nor a product
// that has to be looked up. A request is served by one goroutine; so is its budget.
type budget struct {
	full, left time.Duration
}

func newBudget(full time.Duration) *budget { return &budget{full: full, left: full} }

// spend bounds one trip to what is left; done takes off what the trip took.
func (b *budget) spend(ctx context.Context) (_ context.Context, done func()) {
	return b.spendOf(ctx, b.left)
}

// spendHalf is for a trip without which the request can still be served, so that
// it leaves time for that.
func (b *budget) spendHalf(ctx context.Context) (_ context.Context, done func()) {
	return b.spendOf(ctx, b.left/2)
}

func (b *budget) spendOf(ctx context.Context, most time.Duration) (_ context.Context, done func()) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, most)
	return ctx, func() {
		cancel()
		b.left -= time.Since(start)
	}
}

// renew is for after a merge, which has a time of its own.
func (b *budget) renew() { b.left = b.full }
