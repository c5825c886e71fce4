package service

import (
	"context"
	"sync"
	"time"

	"commerce/auth/bounded"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/quota"
)

// How many coupon codes may be refused within guessWindow, which begins with the first one.
const (
	maxGuesses         = 20 // for one client address and cart
	maxGuessesOfClient = 40 // for one client address, whatever the carts
	guessWindow        = 10 * time.Minute
)

// GuessRate is the rate of refused codes of a client that all instances count together.
var GuessRate = quota.Rate{Uses: maxGuessesOfClient, Per: guessWindow}

// maxGuessers is how many counts of each kind an instance remembers. It forgets those first
// that have not been used lately.
const maxGuessers = 20_000

// Guesses limits the coupon codes that are refused, so that codes cannot be found by trying
// them. All carts of a client address share a limit, because any client can make up cart
// tokens. It counts in the process, before a code is judged; and what was refused is counted for
// all instances. It is safe for concurrent use; a nil *Guesses has no limit.
type Guesses struct {
	now              func() time.Time
	ofCart, ofClient *guessLimit
	shared           *quota.Quota
}

// NewGuesses returns Guesses. shared counts at GuessRate for all instances; nil: each counts
// alone. now is the clock; nil: time.Now.
func NewGuesses(shared *quota.Quota, now func() time.Time) *Guesses {
	if now == nil {
		now = time.Now
	}
	return &Guesses{now, newGuessLimit(maxGuesses), newGuessLimit(maxGuessesOfClient), shared}
}

// guessLimit limits the guesses of each key.
type guessLimit struct {
	most  int
	byKey *bounded.Cache[string, *guessCount]
}

func newGuessLimit(most int) *guessLimit {
	return &guessLimit{most, bounded.New[string, *guessCount](maxGuessers, nil)}
}

// guessCount counts the guesses of one key in the current window.
type guessCount struct {
	mu   sync.Mutex
	n    int
	ends time.Time
}

// take counts a guess. At the limit it counts none, and returns when the window ends.
func (l *guessLimit) take(key string, now time.Time) (count *guessCount, wait time.Duration) {
	count = l.byKey.GetOrPut(key, func() *guessCount { return &guessCount{} })
	count.mu.Lock()
	defer count.mu.Unlock()
	if !now.Before(count.ends) {
		count.n, count.ends = 0, now.Add(guessWindow)
	}
	if count.n >= l.most {
		return nil, count.ends.Sub(now)
	}
	count.n++
	return count, 0
}

func (c *guessCount) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n = max(c.n-1, 0)
}

// guess is one code that a client tries.
type guess struct {
	tooMany *problem.Error // why the code must not be judged; nil when it may be
	counted []*guessCount
}

// begin counts a guess before it is judged, so that concurrent guesses cannot pass the
// limit together. cart is "" for a client without a cart token.
func (g *Guesses) begin(ctx context.Context, client, cart string) (made guess) {
	if g == nil {
		return made
	}
	g.shared.Ask(ctx, client)
	if made.tooMany = g.shared.Refuse(client, errTooManyGuesses); made.tooMany != nil {
		return made
	}
	made.count(g.ofClient, client, g.now())
	if cart != "" && made.tooMany == nil {
		made.count(g.ofCart, client+" "+cart, g.now())
	}
	return made
}

// refused counts a code that was judged and refused, for all instances.
func (g *Guesses) refused(ctx context.Context, client string) {
	if g != nil {
		g.shared.Use(ctx, client)
	}
}

func (m *guess) count(limit *guessLimit, key string, now time.Time) {
	count, wait := limit.take(key, now)
	if count == nil {
		m.tooMany = errTooManyGuesses.After(wait)
		m.tooMany.Budget = problem.Budget{Name: "coupons", Uses: int64(limit.most)}
		m.forget()
		return
	}
	m.counted = append(m.counted, count)
}

// forget removes the guess from all counts.
func (m *guess) forget() {
	for _, count := range m.counted {
		count.forget()
	}
}

var errTooManyGuesses = problem.New(problem.RateLimited, "", locale.Text{
	locale.En: "Too many coupon codes were refused. Please try again in a few minutes.",
	locale.Ar: "رُفض عدد كبير جدًا من رموز القسائم. يُرجى المحاولة بعد بضع دقائق.",
})
