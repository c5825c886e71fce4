package service

import (
	"context"
	"errors"
	"time"

	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
)

// Any client can make up tokens, so the text that a client stores in guests' carts is limited, or it could fill Redis
// with few large carts. What is moved, such as by a hand-over, was counted when it was stored.
//
// Text is counted after it was stored, as carts are, so that a change without text costs nothing. A replacement
// counts as much as it is longer than what it replaces, if that was read, and else in full.

// textPerHour is how many bytes of text a client may store in guests' carts.
const textPerHour = 20_000_000

// NewTextQuota returns a quota for Config.Text that counts as c says, except for its name and rates.
func NewTextQuota(c limit.Config, limits cart.Limits) *limit.Quota {
	c.Name, c.Rates, c.Most = "text", []limit.Rate{{Uses: textPerHour, Per: time.Hour}}, limits.CartText
	return limit.NewQuota(c)
}

// limitText refuses a change that stores text if the client has stored too much.
func (s *Carts) limitText(v *Visit, c *change) {
	if v.customer != "" || c.refusal != nil {
		return
	}
	if refusal := s.tooMuchText(v.client, c.text); refusal != nil {
		c.refuse(refusal)
	}
}

// tooMuchText returns why a client must not store text of a size; nil if it may.
func (s *Carts) tooMuchText(client string, size int64) *problem.Error {
	if size <= 0 {
		return nil
	}
	return s.Text.Refuse(client, errTooMuchText)
}

// noteText counts the text that a change has stored; also one that may have stored it, because its client has
// disconnected before the reply of Redis.
func (s *Carts) noteText(ctx context.Context, v *Visit, c change, o redisstore.Outcome, err error) {
	lost := err != nil && errors.Is(ctx.Err(), context.Canceled)
	if v.customer != "" || !lost && (err != nil || o.Status != redisstore.Applied) {
		return
	}
	size := max(c.text, 0)
	for i := range c.ops {
		if i >= len(o.Ops) || o.Ops[i].Refusal == nil {
			size += max(c.ops[i].text, 0)
		}
	}
	s.Text.UseN(ctx, v.client, size)
}

func storedText(lines []cart.Line) (size int64) {
	for i := range lines {
		size += lines[i].StoredText()
	}
	return size
}

var errTooMuchText = problem.New(problem.RateLimited, "", locale.Text{
	locale.En: "Too much text was stored from your address. Please try again in a moment.",
	locale.Ar: "خُزّن نص كثير جدًا من عنوانك. يُرجى المحاولة بعد لحظات.",
})
