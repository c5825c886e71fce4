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
// Text is counted after it was stored, as carts are, so that a change without text costs nothing. A change counts by
// how much it makes the text of its cart longer.

// textPerHour is how many bytes of text a client may store in guests' carts.
const textPerHour = 20_000_000

// NewTextQuota returns a quota for Config.Text that counts as c says, except for its name and rates.
func NewTextQuota(c limit.Config, limits cart.Limits) *limit.Quota {
	c.Name, c.Rates, c.Most = "text", []limit.Rate{{Uses: textPerHour, Per: time.Hour}}, limits.CartText
	return limit.NewQuota(c)
}

// withinText is a rule that also refuses what makes the text of a guest's cart longer if the client has stored too much.
func (s *Carts) withinText(v *Visit, rule cart.Rule) cart.Rule {
	if v.customer != "" {
		return rule
	}
	return func(c *cart.Cell, limits cart.Limits, now time.Time) cart.Effect {
		effect := rule(c, limits, now)
		if effect.Altered {
			if refusal := s.tooMuchText(v.client, effect.Cart.StoredText()-c.StoredText()); refusal != nil {
				return cart.Effect{Problem: refusal}
			}
		}
		return effect
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
func (s *Carts) noteText(ctx context.Context, v *Visit, o redisstore.Outcome, err error) {
	if lost := err != nil && errors.Is(ctx.Err(), context.Canceled); v.customer == "" && (lost || err == nil) {
		s.Text.UseN(ctx, v.client, o.Text)
	}
}

var errTooMuchText = problem.New(problem.RateLimited, "", locale.Text{
	locale.En: "Too much text was stored from your address. Please try again in a moment.",
	locale.Ar: "خُزّن نص كثير جدًا من عنوانك. يُرجى المحاولة بعد لحظات.",
})
