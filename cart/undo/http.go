package undo

import (
	"commerce/cart/carthttp"
	"commerce/cart/wire"
)

// Extend adds the call to those of the cart, if there is a key to derive tokens from.
func (s *Undos) Extend(api *carthttp.API) {
	if s.carts.Keys != nil {
		api.Handle("POST", "/cart/merge/undo", s.undoMerge)
	}
}

func (s *Undos) undoMerge(c *carthttp.Call) (wire.Answer, error) {
	on, members, err := c.ReadChange()
	if err != nil {
		return wire.Answer{}, err
	}
	id, refusal := carthttp.Text(members, "id")
	if refusal != nil {
		return wire.Answer{}, refusal
	}
	undone, err := s.Undo(c.Ctx(), c.Visit, on, id)
	return c.ShowChanged(undone.Changed, err, func(w *wire.Writer) {
		w.Object("undone")
		w.Text("guest_cart", undone.Guest.Reveal())
		carthttp.WriteAdjusted(w, undone.Adjusted)
		w.EndObject()
	})
}
