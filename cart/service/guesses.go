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

// How many coupon codes may be refused within guessWindow, which begins with the first one.
const (
	maxGuesses      = 20  // for one client address and cart
	maxEmptyGuesses = 200 // for one client address and all carts that hold nothing
	guessWindow     = 10 * time.Minute
)

// Guesses limits the coupon codes that are refused, so that codes cannot be found by trying
// them. Carts that hold nothing also share a limit, because any client can make up cart
// tokens. It counts in the process. It is safe for concurrent use; a nil *Guesses has no
// limit.
type Guesses struct{ ofCart, ofEmpty limiter.Store }

// NewGuesses returns Guesses. Their goroutines, which free memory, run until the process
// ends.
func NewGuesses() (*Guesses, error) {
	ofCart, err := newGuessLimit(maxGuesses)
	if err != nil {
		return nil, err
	}
	ofEmpty, err := newGuessLimit(maxEmptyGuesses)
	return &Guesses{ofCart, ofEmpty}, err
}

func newGuessLimit(most uint64) (limiter.Store, error) {
	limit, err := memorystore.New(&memorystore.Config{
		Tokens: most, Interval: guessWindow,
		SweepInterval: time.Minute, SweepMinTTL: guessWindow,
	})
	if err != nil {
		return nil, fmt.Errorf("make the limit of coupon codes: %w", err)
	}
	return limit, nil
}

// guess is one code that a client tries.
type guess struct {
	tooMany *problem.Error // why the code must not be judged; nil when it may be
	counted []counted
}

// counted is where a guess counts.
type counted struct {
	limit limiter.Store
	key   string
}

// begin counts a guess before it is judged, so that concurrent guesses cannot pass the
// limit together. cart is "" for a client without a cart token. empty says that nothing is
// stored for the cart.
func (g *Guesses) begin(client, cart string, empty bool) (made guess) {
	if g == nil {
		return made
	}
	var limits []counted
	if empty {
		limits = append(limits, counted{g.ofEmpty, client})
	}
	if cart != "" {
		limits = append(limits, counted{g.ofCart, client + " " + cart})
	}
	for _, c := range limits {
		_, _, reset, ok, err := c.limit.Take(context.Background(), c.key) // in memory; an error only after Close
		if err == nil && !ok {
			tooMany := *errTooManyGuesses
			tooMany.RetryAfter = time.Until(time.Unix(0, int64(reset))) // the limiter has no injected clock
			made.tooMany = &tooMany
			made.forget()
			return made
		}
		made.counted = append(made.counted, c)
	}
	return made
}

// forget removes the guess from all counts.
func (m guess) forget() {
	for _, c := range m.counted {
		_ = c.limit.Burst(context.Background(), c.key, 1) // an error only after Close
	}
}

var errTooManyGuesses = problem.New(problem.RateLimited, "", locale.Text{
	locale.En: "Too many coupon codes were refused. Please try again in a few minutes.",
	locale.Ar: "رُفض عدد كبير جدًا من رموز القسائم. يُرجى المحاولة بعد بضع دقائق.",
}).OfKind(LimitCouponCodes)

// LimitCouponCodes is the Kind of the error after too many refused coupon codes.
const LimitCouponCodes = "coupon_codes"
