package carthttp

import (
	"cmp"

	"commerce/cart/service"
	"commerce/cart/wire"
)

func (a *API) undoMerge(c *call) (wire.Answer, error) {
	on, invalid := conditionsOf(c.Request.Header)
	a.carts.Merge(c.ctx(), c.Visit, "")
	in, _, err := readInput(c.Context)
	if err := cmp.Or(err, invalid); err != nil {
		return wire.Answer{}, err
	}
	id, refusal := in.members.asSent("id")
	if refusal != nil {
		return wire.Answer{}, refusal
	}
	return c.showChanged(a.carts.UndoMerge(c.ctx(), c.Visit, on, id))
}

func (w view) undone(u *service.Undone) {
	w.Object("undone")
	w.Text("guest_cart", u.Guest.Reveal())
	w.adjusted(u.Adjusted)
	w.EndObject()
}
