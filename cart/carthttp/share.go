package carthttp

import (
	"cmp"

	"commerce/cart"
	"commerce/cart/wire"
)

// share answers with a code of a copy of the cart's lines. The request has no members, so its body is optional.
func (a *API) share(c *call) (wire.Answer, error) {
	a.carts.Merge(c.ctx(), c.Visit, "")
	key, invalid := wire.IdempotencyKey(c.Request.Header)
	if err := cmp.Or(c.optionalBody(), invalid); err != nil {
		return wire.Answer{}, err
	}
	link, replayed, err := a.carts.Share(c.ctx(), c.Visit, key)
	if replayed && err == nil {
		c.Header("Idempotency-Replayed", "true")
	}
	return c.show(func(w view) { w.link(link) }), err
}

func (a *API) shared(c *call) (wire.Answer, error) {
	a.carts.Merge(c.ctx(), c.Visit, "")
	priced, err := a.carts.SharedCart(c.ctx(), c.Visit, c.Param("code"))
	known, invalid := wire.ParseTags(c.Request.Header, "If-None-Match")
	answer := c.showOther(&priced, func(w view, p *cart.Priced) { w.cart(p, "", nil) })
	answer.Known = known
	return answer, cmp.Or(err, invalid)
}

func (a *API) unshare(c *call) (wire.Answer, error) {
	a.carts.Merge(c.ctx(), c.Visit, "")
	err := a.carts.Unshare(c.ctx(), c.Visit, c.Param("code"))
	c.issuesToken = false
	return c.show(func(w view) {
		w.BeginObject()
		w.Bool("deleted", true)
		w.EndObject()
	}), err
}
