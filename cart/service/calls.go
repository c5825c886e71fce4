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
	c := s.addition(a, product)
	if c.refusal != nil { // an earlier request may have added the line
		c.line = new(a.LineID(product))
	}
	return s.makeChange(ctx, v, on, c)
}

func (s *Carts) addition(a cart.Addition, product *cart.Product) change {
	line, refusal := cart.Resolve(a, product, s.Limits)
	c := change{
		Change: redisstore.Add(line, s.Limits), member: a.QuantityMember, product: product, line: &line.ID,
		text: (&cart.Line{Fields: line.Fields, Notice: line.Notice, Metadata: line.Metadata}).StoredText(),
	}
	if refusal != nil {
		c.refuse(refusal)
	}
	return c
}

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
	var product *cart.Product
	if e.Item != "" && !e.Removes() {
		var err error
		if product, err = s.product(ctx, v, e.Item.Product()); err != nil {
			return Changed{}, err
		}
	}
	if !e.needsLine() {
		return s.makeChange(ctx, v, on, s.edit(e, product, nil))
	}
	if err := s.priceable(ctx, v, on); err != nil {
		return Changed{}, err
	}
	return untilUnchanged(func() (Changed, error) {
		stored, err := s.readLines(ctx, v)
		if err != nil {
			return Changed{}, err
		}
		return s.makeChange(ctx, v, on, s.edit(e, product, stored.Line(e.Item)))
	})
}

// untilUnchanged makes a change that is computed from a read, again if a line has changed since.
func untilUnchanged(change func() (Changed, error)) (Changed, error) {
	for range maxReads {
		if changed, err := change(); !errors.Is(err, errLineChanged) {
			return changed, err
		}
	}
	return Changed{}, errAlwaysChanged
}

// errAlwaysChanged means that a line was another one after each of maxReads reads.
var errAlwaysChanged = cart.Unavailable("edit line", errors.New("service: other requests changed the line after each read"))

// needsLine reports whether the edit is computed from a read of its line.
func (e Edit) needsLine() bool { return e.Item != "" && !e.Removes() && !e.OnlyQuantity() }

// edit returns the change of an edit. line is the line as it was read, nil if the cart does not have it;
// only an edit that needs it uses it.
func (s *Carts) edit(e Edit, product *cart.Product, line *cart.Line) change {
	c := change{member: e.Member(), product: product, line: &e.Item}
	switch {
	case e.Item == "":
		c.refuse(errItemNotFound)
	case e.needsLine() && line == nil:
		// If the cart has the line by then, it is not as it was read.
		c.Change = redisstore.Edit(e.Item, cart.EditedLine{}, s.Limits)
	case !e.needsLine():
		if e.Removes() {
			c.line = new(cart.LineID(""))
		}
		c.Change = redisstore.SetQuantity(e.Item, *e.Quantity, cart.BoundsOf(product, s.Limits), cart.RaiseRefusal(product))
	default:
		var edited cart.EditedLine
		edited, c.refusal = e.Resolve(*line, product, s.Limits)
		c.Change = redisstore.Edit(e.Item, edited, s.Limits)
		after := cart.Line{Fields: edited.Fields, Notice: edited.Notice, Metadata: line.Metadata.With(edited.Metadata)}
		c.text = after.StoredText() - line.StoredText()
		if c.refusal != nil {
			c.Change, c.text = redisstore.RefusedEdit(c.refusal.Code, e.Item, line), 0
		}
	}
	return c
}

// faults returns all that is wrong with an edit, as far as the line and its product are known.
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

// readLines reads the cart with the lines that are on their way from a guest's cart.
func (s *Carts) readLines(ctx context.Context, v *Visit) (redisstore.Stored, error) {
	if v.Fresh {
		return redisstore.Stored{}, nil
	}
	stored, err := s.loadOwn(ctx, v)
	if err == nil && len(stored.Pending) > 0 {
		_ = s.resume(ctx, v, stored.Pending)
		stored, err = s.loadOwn(ctx, v)
	}
	return stored, err
}

var errItemNotFound = cart.Refusal{Code: problem.ItemNotFound}.Problem("", nil, cart.Limits{})

// Do makes the change of an operation that needs neither the cart nor a product.
func (s *Carts) Do(ctx context.Context, v *Visit, on Conditions, op Op) (Changed, error) {
	return s.makeChange(ctx, v, on, s.op(op, cart.Cart{}, nil, 0))
}

// Refuse returns the refusal of a malformed body, unless a replay or If-Match takes precedence.
func (s *Carts) Refuse(ctx context.Context, v *Visit, on Conditions, refusal *problem.Error) (Changed, error) {
	if on.Key == "" && on.IfMatch == "" {
		return Changed{}, refusal
	}
	return s.makeChange(ctx, v, on, change{refusal: refusal})
}
