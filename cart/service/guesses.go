package service

import (
	"context"
	"time"

	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/auth/problem"
)

// How many codes may be refused within guessPeriod, which begins with the first refusal.
const (
	maxGuessesOfCart   = 20 // for one client address and cart
	maxGuessesOfClient = 40 // for one client address; of coupons, and of shares
	guessPeriod        = 10 * time.Minute
)

// Guesses limits the codes of coupons and of shares that are refused. For coupons, a client also has a limit for all
// carts, because it can make up cart tokens. The zero Guesses has no limit.
type Guesses struct{ ofCart, ofClient, ofShare *limit.Window }

// NewGuesses returns Guesses that count as c says, except for its name and rates.
func NewGuesses(c limit.Config) Guesses {
	window := func(name string, uses int64) *limit.Window {
		c.Name, c.Rates = name, []limit.Rate{{Uses: uses, Per: guessPeriod}}
		return limit.NewWindow(c)
	}
	return Guesses{window("coupons", maxGuessesOfCart), window("coupons", maxGuessesOfClient), window("shares", maxGuessesOfClient)}
}

// begin counts a coupon's guess before it is judged. forget removes it from all counts. tooMany is why
// the code must not be judged; nil when it may be. cart is "" for a client without a cart token.
func (g Guesses) begin(ctx context.Context, client, cart string) (forget func(), tooMany *problem.Error) {
	forgetCart := func() {}
	if cart != "" {
		if forgetCart, tooMany = g.ofCart.Take(ctx, client+" "+cart, errTooManyGuesses); tooMany != nil {
			return nil, tooMany
		}
	}
	forgetClient, tooMany := g.ofClient.Take(ctx, client, errTooManyGuesses)
	if tooMany != nil {
		forgetCart()
		return nil, tooMany
	}
	return func() { forgetCart(); forgetClient() }, nil
}

var errTooManyGuesses = problem.New(problem.RateLimited, "", locale.Text{
	locale.En: "Too many codes were refused. Please try again in a few minutes.",
	locale.Ar: "رُفض عدد كبير جدًا من الرموز. يُرجى المحاولة بعد بضع دقائق.",
})
