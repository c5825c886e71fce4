package service

import (
	"cmp"
	"context"
	"errors"
	"time"

	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
)

// Any client can make up tokens, so the carts that a client creates, and the text that it stores in guests' carts, are limited,
// or it could fill Redis. Customers are not limited: each of their carts needs a token of the issuer. What is moved, such as by a
// hand-over, was counted when it was stored.
//
// Carts and text are counted after they were stored, so that other changes cost nothing. So a client can exceed its limit by the
// changes in flight, which make it wait longer. A change counts by how much it makes the text of its cart longer.

// newCartIDFor returns the ID for a cart that a change creates, "" if it may not create one.
func (s *Carts) newCartIDFor(v *Visit) string {
	if v.customer == "" && !v.Counted && s.Creation.Refuse(v.client, errTooManyCarts) != nil {
		return ""
	}
	return s.NewCartID()
}

// noteCreation reports a change that has created a cart, and counts it for its client; also one that
// may have created a cart, because its client has disconnected before the reply of Redis.
func (s *Carts) noteCreation(ctx context.Context, v *Visit, on Conditions, newID string, o redisstore.Outcome, err error) {
	if newID == "" {
		return
	}
	created := err == nil && o.Cart.ID == newID
	if created {
		v.created = true
		s.Events.Created(v.customer != "")
	}
	remembered := o.Status == cart.Applied && o.Ops != nil && o.Cart.ID == "" && on.Key != "" // a list that left the cart unused, whose key takes memory too
	if v.customer == "" && !v.Counted && (created || remembered || err != nil && errors.Is(ctx.Err(), context.Canceled)) {
		s.Creation.Use(ctx, v.client)
	}
}

// TooManyCarts is the refusal of a change that would have created a cart. The client's wait may
// have ended since newCartIDFor refused it.
func (s *Carts) TooManyCarts(v *Visit) *problem.Error {
	return s.Creation.Refused(v.client, errTooManyCarts)
}

// RefuseCreation returns why a client must not store something beside its carts, with that many bytes of text; nil if it may.
func (s *Carts) RefuseCreation(v *Visit, text int64) *problem.Error {
	return cmp.Or(s.Creation.Refuse(v.client, errTooManyCarts), s.tooMuchText(v.client, text))
}

// CountCreation counts what RefuseCreation has allowed.
func (s *Carts) CountCreation(ctx context.Context, v *Visit, text int64) {
	s.Creation.Use(ctx, v.client)
	s.Text.UseN(ctx, v.client, text)
}

var errTooManyCarts = problem.New(problem.RateLimited, "", locale.Text{
	locale.En: "Too many new carts or links came from your address. Please try again in a moment.",
	locale.Ar: "أُنشئت سلات أو روابط جديدة كثيرة من عنوانك. يُرجى المحاولة بعد لحظات.",
})

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
