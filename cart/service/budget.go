package service

import (
	"context"
	"time"
)

const (
	// defaultBudget is the time that a request may spend waiting for Redis.
	defaultBudget = 200 * time.Millisecond

	// mergeBudgets is how many times its budget a request may spend on merges.
	mergeBudgets = 5
)

// budget is the time that one request may spend waiting for Redis. Nothing else uses it
// up, such as a slow request body or the catalog. It is not safe for concurrent use: one
// goroutine serves a request.
type budget struct {
	full, left time.Duration
}

func newBudget(full time.Duration) *budget { return &budget{full: full, left: full} }

// spend limits one round trip to the time left; done subtracts the time that it took.
func (b *budget) spend(ctx context.Context) (_ context.Context, done func()) {
	return b.spendOf(ctx, b.left)
}

// spendHalf is for a round trip that the request can be served without: it leaves time for
// the rest.
func (b *budget) spendHalf(ctx context.Context) (_ context.Context, done func()) {
	return b.spendOf(ctx, b.left/2)
}

func (b *budget) spendOf(ctx context.Context, limit time.Duration) (_ context.Context, done func()) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, func() {
		cancel()
		b.left -= time.Since(start)
	}
}

// renew restores the full budget after a merge, which has its own timeout.
func (b *budget) renew() { b.left = b.full }
