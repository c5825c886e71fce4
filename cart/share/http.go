package share

import (
	"cmp"

	"commerce/cart/carthttp"
	"commerce/cart/wire"
)

// Extend adds the calls with shares to those of the cart. Without a key for codes, lists can still name a share, which does not exist.
func (s *Shares) Extend(api *carthttp.API) {
	api.HandleOp("add_shared", s.additions)
	if s.carts.Keys == nil {
		return
	}
	api.Handle("POST", "/cart/share", s.share)
	api.Handle("GET", "/cart/share/:code", s.show)
	api.Handle("DELETE", "/cart/share/:code", s.delete)
}

// share answers with the code of a share. The request has no members, so its body is optional.
func (s *Shares) share(c *carthttp.Call) (wire.Answer, error) {
	s.carts.Merge(c.Ctx(), c.Visit, "")
	key, invalid := wire.IdempotencyKey(c.Request.Header)
	if err := cmp.Or(c.OptionalBody(), invalid); err != nil {
		return wire.Answer{}, err
	}
	link, replayed, err := s.Share(c.Ctx(), c.Visit, key)
	if replayed && err == nil {
		c.Header("Idempotency-Replayed", "true")
	}
	return c.ShowLink(link), err
}

func (s *Shares) show(c *carthttp.Call) (wire.Answer, error) {
	s.carts.Merge(c.Ctx(), c.Visit, "")
	priced, err := s.SharedCart(c.Ctx(), c.Visit, c.Param("code"))
	known, invalid := wire.ParseTags(c.Request.Header, "If-None-Match")
	answer := c.ShowCopy(&priced)
	answer.Known = known
	return answer, cmp.Or(err, invalid)
}

func (s *Shares) delete(c *carthttp.Call) (wire.Answer, error) {
	s.carts.Merge(c.Ctx(), c.Visit, "")
	key, invalid := wire.IdempotencyKey(c.Request.Header)
	if invalid != nil {
		return wire.Answer{}, invalid
	}
	err := s.Unshare(c.Ctx(), c.Visit, key, c.Param("code"))
	return c.Show(func(w *wire.Writer) {
		w.BeginObject()
		w.Bool("deleted", true)
		w.EndObject()
	}), err
}
