package service

import (
	"context"
	"errors"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
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
	line, refusal := cart.Resolve(a, product, s.Limits)
	if refusal != nil {
		line.ID = a.LineID(product)
	}
	return s.makeChange(ctx, v, on, change{redisstore.Add(line, s.Limits), refusal, a.QuantityMember, product, &line.ID})
}

// Edit is a shopper's request to edit a line.
type Edit struct {
	Item cart.LineID // a line, or a product for the first line that holds it; "" if no line can have the requested ID
	cart.Edit
}

// maxReads is how often an edit is computed from a read of its line before the call fails.
const maxReads = 5

// Edit edits a line: its quantity, where 0 removes it, its plan, fields and notice. It is
// atomic, and fails like Add, also if other requests keep changing the line.
func (s *Carts) Edit(ctx context.Context, v *Visit, on Conditions, e Edit) (Changed, error) {
	if e.Err != nil {
		return s.Refuse(ctx, v, on, s.faults(ctx, v, e))
	}
	if e.Item == "" {
		return s.makeChange(ctx, v, on, change{refusal: errItemNotFound, line: &e.Item})
	}
	if e.Removes() {
		set := redisstore.SetQuantity(e.Item, 0, cart.Bounds{}, "")
		return s.makeChange(ctx, v, on, change{Change: set, line: new(cart.LineID(""))})
	}
	product, err := s.product(ctx, v, e.Item.Product())
	if err != nil {
		return Changed{}, err
	}
	if e.OnlyQuantity() {
		set := redisstore.SetQuantity(e.Item, *e.Quantity, cart.BoundsOf(product, s.Limits), cart.RaiseRefusal(product))
		return s.makeChange(ctx, v, on, change{set, nil, e.QuantityMember, product, &e.Item})
	}
	if err := s.priceable(ctx, v, on); err != nil {
		return Changed{}, err
	}
	for range maxReads {
		changed, err := s.editOnce(ctx, v, on, e, product)
		if !errors.Is(err, errLineChanged) {
			return changed, err
		}
	}
	err = errors.New("service: other requests changed the line after each read")
	return Changed{}, cart.Unavailable("edit line", err)
}

// faults returns all that is wrong with a malformed edit, as far as the line and its product are
// known.
func (s *Carts) faults(ctx context.Context, v *Visit, e Edit) *problem.Error {
	stored, err := s.loadOwn(ctx, v)
	line := stored.Line(e.Item)
	if err != nil || line == nil {
		return e.Err
	}
	product, err := s.product(ctx, v, line.ID.Product())
	if err != nil {
		return e.Err
	}
	_, refusal := e.Resolve(*line, product, s.Limits)
	return refusal
}

// editOnce reads the line, and makes the edit if the line is still as it was read; if not, it fails
// with errLineChanged.
func (s *Carts) editOnce(ctx context.Context, v *Visit, on Conditions, e Edit, product *cart.Product) (Changed, error) {
	stored, err := s.loadOwn(ctx, v)
	if err == nil && len(stored.Pending) > 0 { // the line may be on its way from a guest's cart
		_ = s.resume(ctx, v, stored.Pending)
		stored, err = s.loadOwn(ctx, v)
	}
	if err != nil {
		return Changed{}, err
	}
	c := change{member: e.Member(), product: product, line: &e.Item}
	if line := stored.Line(e.Item); line == nil {
		c.refusal = errItemNotFound
	} else {
		var edited cart.EditedLine
		edited, c.refusal = e.Resolve(*line, product, s.Limits)
		c.Change = redisstore.Edit(e.Item, edited, s.Limits)
	}
	return s.makeChange(ctx, v, on, c)
}

// errItemNotFound refuses an edit of a line that the cart does not have.
var errItemNotFound = cart.Refusal{Code: problem.ItemNotFound}.Problem("", nil, cart.Limits{})

// Remove removes a line. Removing a line that does not exist changes nothing and succeeds.
func (s *Carts) Remove(ctx context.Context, v *Visit, on Conditions, item cart.LineID) (Changed, error) {
	return s.makeChange(ctx, v, on, change{Change: redisstore.Remove(item)})
}

// Clear removes all lines and the coupon.
func (s *Carts) Clear(ctx context.Context, v *Visit, on Conditions) (Changed, error) {
	return s.makeChange(ctx, v, on, change{Change: redisstore.Clear()})
}

// Refuse returns refusal, which is about an invalid request body, unless a replay or
// If-Match takes precedence.
func (s *Carts) Refuse(ctx context.Context, v *Visit, on Conditions, refusal *problem.Error) (Changed, error) {
	if on.Key == "" && on.IfMatch == "" {
		return Changed{}, refusal
	}
	return s.makeChange(ctx, v, on, change{refusal: refusal})
}
