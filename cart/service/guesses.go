package service

import (
	"context"
	"fmt"
	"time"

	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// How many coupon codes may be refused.
const (
	maxGuesses  = 20
	guessWindow = 10 * time.Minute // from the first one on
)

// Guesses limits the coupon codes that are refused for one client address and cart, so
// that codes cannot be found by trying them. Carts that hold nothing share the limit of
// their address, because any client can make up cart tokens. It counts in the process. It
// is safe for concurrent use; a nil *Guesses has no limit.
type Guesses struct{ left limiter.Store }

// NewGuesses returns Guesses, whose memory a goroutine sweeps as long as the process lives.
func NewGuesses() (*Guesses, error) {
	left, err := memorystore.New(&memorystore.Config{
		Tokens: maxGuesses, Interval: guessWindow,
		SweepInterval: time.Minute, SweepMinTTL: guessWindow,
	})
	if err != nil {
		return nil, fmt.Errorf("make the limit of coupon codes: %w", err)
	}
	return &Guesses{left}, nil
}

// guess is one code that a client tries.
type guess struct {
	tooMany *problem.Error // why the code must not be judged; nil when it may be
	forget  func()         // removes the guess from the count
}

// begin counts a guess before it is judged, so that concurrent guesses cannot pass the
// limit together. cartID is "" for a cart that holds nothing.
func (g *Guesses) begin(client, cartID string) guess {
	if g == nil {
		return guess{forget: func() {}}
	}
	ctx, key := context.Background(), client+" "+cartID // the store is in memory
	_, _, reset, ok, err := g.left.Take(ctx, key)
	if err == nil && !ok {
		tooMany := *errTooManyGuesses
		tooMany.RetryAfter = time.Until(time.Unix(0, int64(reset))) // the limiter has no injected clock
		return guess{tooMany: &tooMany}
	}
	return guess{forget: func() { _ = g.left.Burst(ctx, key, 1) }} // an error only after Close
}

var errTooManyGuesses = problem.New(problem.RateLimited, "", locale.Text{
	locale.En: "Too many coupon codes were refused. Please try again in a few minutes.",
	locale.Ar: "رُفض عدد كبير جدًا من رموز القسائم. يُرجى المحاولة بعد بضع دقائق.",
})
