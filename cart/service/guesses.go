package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
)

// How many different wrong codes of coupons a client may send within guessPeriod, which begins with the first.
const (
	maxGuessesOfCart   = 20 // for one cart
	maxGuessesOfClient = 40 // for one client address
	guessPeriod        = 10 * time.Minute
)

// Guesses limits the codes of coupons that do not exist. A client also has a limit for all carts, because it can make up cart
// tokens. The zero Guesses has no limit.
//
// Only wrong codes count, so that shoppers who share an address do not lock each other out with codes that are
// refused for another reason. But every code is refused once the limit is reached. Whether it is, is asked in the
// step that counts a wrong code, so of tries at the same time no more than the limit learn what their codes are.
type Guesses struct{ ofCart, ofClient *limit.Window }

// NewGuesses returns Guesses that count as c says, except for its name and rates.
func NewGuesses(c limit.Config) Guesses {
	c.Name = "coupons"
	window := func(uses int64) *limit.Window {
		c.Rates = []limit.Rate{{Uses: uses, Per: guessPeriod}}
		return limit.NewWindow(c)
	}
	return Guesses{window(maxGuessesOfCart), window(maxGuessesOfClient)}
}

// refuse returns why a coupon's code must not be judged; nil when it may be, as far as this instance knows.
func (g Guesses) refuse(v *Visit) *problem.Error {
	if name := v.name(); name != "" {
		if tooMany := g.ofCart.Refuse(name, ErrTooManyGuesses); tooMany != nil {
			return tooMany
		}
	}
	return g.ofClient.Refuse(v.client, ErrTooManyGuesses)
}

// judged counts a coupon's code if it does not exist. It returns why the client must not learn what the code is; nil
// when it may.
func (g Guesses) judged(ctx context.Context, v *Visit, code string, exists bool) *problem.Error {
	guess := ""
	if !exists {
		guess = guessOf(v.own.String(), cart.CouponKey(code))
	}
	if name := v.name(); name != "" { // a new guest has no cart token
		if tooMany := g.ofCart.Take(ctx, name, guess, ErrTooManyGuesses); tooMany != nil {
			return tooMany
		}
	}
	return g.ofClient.Take(ctx, v.client, guess, ErrTooManyGuesses)
}

// guessOf names a wrong code of a cart.
func guessOf(cart, code string) string {
	sum := sha256.Sum256([]byte(cart + " " + code))
	return hex.EncodeToString(sum[:8])
}

// ErrTooManyGuesses is the refusal of a client that has sent too many wrong codes.
var ErrTooManyGuesses = problem.New(problem.RateLimited, "", locale.Text{
	locale.En: "Too many wrong codes were sent. Please try again in a few minutes.",
	locale.Ar: "أُرسل عدد كبير جدًا من الرموز الخاطئة. يُرجى المحاولة بعد بضع دقائق.",
})
