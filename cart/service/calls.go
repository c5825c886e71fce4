package service

import (
	"context"

	"commerce/auth/problem"
	"commerce/cart"
)

// Add adds a product. It is atomic: a refusal changes nothing. A failure is
// problem.Unavailable, or problem.OutcomeUnknown when the change may have been made.
func (s *Carts) Add(ctx context.Context, v *Visit, on Conditions, a cart.Addition) (Changed, error) {
	if a.Err.Names("product_id") {
		return s.Refuse(ctx, v, on, a.Err)
	}
	product, err := s.product(ctx, v, a.ProductID)
	switch {
	case a.Err != nil && err != nil:
		return s.Refuse(ctx, v, on, a.Err)
	case a.Err != nil:
		_, refusal := cart.Resolve(a, product, s.Limits)
		return s.Refuse(ctx, v, on, refusal)
	case err != nil:
		return Changed{}, err
	}
	if err := s.priceable(ctx, v, on); err != nil {
		return Changed{}, err
	}
	c := s.addition(a, product)
	if c.refusal != nil { // an earlier request may have added the line
		c.line = new(a.LineID(product))
	}
	return s.makeChange(ctx, v, on, c)
}

func (s *Carts) addition(a cart.Addition, product *cart.Product) change {
	line, refusal := cart.Resolve(a, product, s.Limits)
	c := change{Change: cart.Change{Rule: cart.Add(line)}, member: a.QuantityMember, product: product, line: &line.ID}
	if refusal != nil {
		c.refuse(refusal)
	}
	return c
}

type Edit struct {
	Item cart.LineID // a line, or a product of which the cart holds one line; "" if no line can have the requested ID
	cart.Edit
}

// Edit edits a line: its quantity, where 0 removes it, its plan, fields and notice. It is
// atomic, and fails like Add.
func (s *Carts) Edit(ctx context.Context, v *Visit, on Conditions, e Edit) (Changed, error) {
	var product *cart.Product
	if e.Item != "" && !e.Removes() {
		var err error
		if product, err = s.product(ctx, v, e.Item.Product()); err != nil {
			if e.Err != nil {
				return s.Refuse(ctx, v, on, e.Err)
			}
			return Changed{}, err
		}
	}
	if err := s.priceable(ctx, v, on); err != nil {
		return Changed{}, err
	}
	return s.makeChange(ctx, v, on, s.edit(e, product, false))
}

// edit returns the change of an edit. In a list, an item never names a product's line.
func (s *Carts) edit(e Edit, product *cart.Product, listed bool) change {
	item := cart.Item{ID: e.Item, OnlyIDs: listed}
	c := change{member: e.Member(), product: product, line: &e.Item}
	switch {
	case e.Err != nil:
		c.Rule = cart.Malformed{Err: e.Err}.Rule(cart.EditLine(item, func(l cart.Line) (cart.EditedLine, *problem.Error) {
			return e.Resolve(l, product, s.Limits)
		}))
	case e.Item == "":
		c.refuse(errItemNotFound)
	case e.Removes():
		c.line = new(cart.LineID(""))
		c.Rule = cart.SetQuantity(item, 0, cart.Bounds{}, "")
	case e.OnlyQuantity():
		c.Rule = cart.SetQuantity(item, *e.Quantity, cart.BoundsOf(product, s.Limits), cart.RaiseRefusal(product))
	default:
		c.Rule = cart.EditLine(item, func(l cart.Line) (cart.EditedLine, *problem.Error) {
			return e.Resolve(l, product, s.Limits)
		})
	}
	return c
}

var errItemNotFound = cart.Refusal{Code: problem.ItemNotFound}.Problem("", nil, cart.Limits{})

// Do makes the change of an operation that needs neither the cart nor a product.
func (s *Carts) Do(ctx context.Context, v *Visit, on Conditions, op Op) (Changed, error) {
	return s.makeChange(ctx, v, on, s.op(op, nil, 0, false))
}

// Refuse returns the refusal of a malformed body, unless a replay or If-Match takes precedence.
func (s *Carts) Refuse(ctx context.Context, v *Visit, on Conditions, refusal *problem.Error) (Changed, error) {
	if on.Key == "" && on.IfMatch == "" {
		return Changed{}, refusal
	}
	var c change
	c.refuse(refusal)
	return s.makeChange(ctx, v, on, c)
}
