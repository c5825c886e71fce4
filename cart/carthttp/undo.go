package carthttp

import (
	"commerce/auth"
	"commerce/cart"
	"commerce/cart/service"
	"commerce/cart/wire"
)

// undoMerge undoes a merge, and answers with the customer's cart and the token of the guest's.
func (a *API) undoMerge(c *call) (wire.Answer, error) {
	a.carts.Merge(c.ctx(), c.Visit, "")
	in, _, err := readInput(c.Context)
	if err != nil {
		return wire.Answer{}, err
	}
	id, refusal := in.members.asSent("id")
	if refusal != nil {
		return wire.Answer{}, refusal
	}
	undone, err := a.carts.UndoMerge(c.ctx(), c.Visit, id)
	if err != nil {
		return wire.Answer{}, err
	}
	if undone.Durability != "" {
		c.Header("Durability", undone.Durability)
	}
	return c.showAs(func(w view, p *cart.Priced, token auth.CartToken, m *cart.MergeReport) {
		w.BeginObject()
		w.members(p, token, m)
		w.rest(p)
		w.undone(undone)
		w.EndObject()
	}, &undone.Priced), nil
}

func (w view) undone(u service.Undone) {
	w.Object("undone")
	w.Text("guest_cart", u.Guest.Reveal())
	w.adjusted(u.Adjusted)
	w.EndObject()
}
