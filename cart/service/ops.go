package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
)

// List is a shopper's request to make several changes in one step.
type List struct {
	Ops  []Op
	Each bool // apply what can be applied; otherwise all or nothing
}

// Op is one change of a list. One member is set.
type Op struct {
	Add      *cart.Addition
	Edit     *Edit         // of a line, never of a product's first one
	Remove   *cart.LineID  // "" if no line can have the requested ID; a line that is not there changes nothing
	Clear    bool          // of the lines, the coupon and the metadata
	Coupon   *CouponCode   // with the code "" to remove the coupon
	Metadata cart.Metadata // changes of the cart's
	Shared   *string       // the code of a share, whose lines are added; alone in a list that applies each

	agent *redisstore.Change // ends the list of an agent
}

// Outcomes has the result of each change of a list.
type Outcomes struct {
	Each    []Outcome
	Unknown bool // an earlier request applied the list, without a key that stores the results
}

// Outcome is the result of one change of a list. The zero value is that of a change without a line.
type Outcome struct {
	Item    cart.LineID    // the line that an addition or an edit made; after a replay, only if the cart has it
	Refusal *problem.Error // nil for a change that was applied
}

// OpFault is the data of the error that refuses a list for one of its changes.
type OpFault struct {
	Op     int               // its place in the list
	Reason cart.CouponReason // why its coupon was refused; "" for another reason
}

// Ops makes a list of changes in one step. Each one sees the results of those before it. If one is
// computed from a read, and a line has changed when the script runs, the list is computed again. Ops fails
// like Edit.
func (s *Carts) Ops(ctx context.Context, v *Visit, on Conditions, list List) (Changed, error) {
	if code := list.Ops[0].Shared; code != nil {
		return s.addShared(ctx, v, on, *code)
	}
	products, err := s.Catalog.Products(ctx, v.Store.ID, list.productIDs())
	if err != nil {
		return Changed{}, cart.Unavailable("products", err)
	}
	if err := s.priceable(ctx, v, on); err != nil {
		return Changed{}, err
	}
	return untilUnchanged(func() (Changed, error) {
		ops, err := s.changes(ctx, v, on, list, products)
		if err != nil {
			return Changed{}, err
		}
		each := make([]redisstore.Change, len(ops))
		for i, op := range ops {
			each[i] = op.Change
		}
		return s.makeChange(ctx, v, on, change{Change: redisstore.Ops(list.Each, each), ops: ops})
	})
}

// changes computes each change of a list. If one needs the cart, it gets the cart as read, after the
// changes before it, by the rules.
func (s *Carts) changes(ctx context.Context, v *Visit, on Conditions, list List, products map[int64]*cart.Product) ([]change, error) {
	var c cart.Cart
	reads := slices.ContainsFunc(list.Ops, Op.needsCart)
	if reads {
		stored, err := s.readLines(ctx, v)
		if err != nil {
			return nil, err
		}
		c = stored.Cart
	}
	other := isOther(c, on)
	ops := make([]change, len(list.Ops))
	var refusal *problem.Error // of the first change that is invalid by itself
	faults := 0                // of all
	for i, op := range list.Ops {
		switch {
		case refusal != nil && !list.Each:
			ops[i].refuse(refusal) // it is not reached
		case op.redeems():
			priced, err := s.price(ctx, v, c)
			if err == nil {
				ops[i], err = s.redemption(ctx, v, *op.Coupon, &priced, other)
			}
			if err != nil {
				return nil, err
			}
		default:
			ops[i] = s.op(op, c, products, max(problem.MaxFaults-faults, 1))
			s.limitText(v, &ops[i])
		}
		if ops[i].refusal != nil {
			refusal, faults = cmp.Or(refusal, ops[i].refusal), faults+len(ops[i].refusal.Faults)
		}
		if item := op.item(); reads && (item == "" || c.Has(item)) { // never a product's line
			c = ops[i].After(c)
		}
	}
	return ops, nil
}

// op returns an operation's change of a cart, or looks for so many faults of its fields. Only an operation that
// needs the cart uses it.
func (s *Carts) op(op Op, c cart.Cart, products map[int64]*cart.Product, faults int) change {
	switch {
	case op.Add != nil:
		op.Add.MaxFaults = faults
		return s.addition(*op.Add, products[op.Add.ProductID])
	case op.Edit != nil:
		op.Edit.MaxFaults = faults
		var line *cart.Line
		if c.Has(op.Edit.Item) {
			line = c.Line(op.Edit.Item)
		}
		return s.edit(*op.Edit, products[op.Edit.Item.Product()], line)
	case op.Remove != nil:
		return change{Change: redisstore.Remove(*op.Remove)}
	case op.Coupon != nil:
		return change{Change: redisstore.SetCoupon("")}
	case op.Clear:
		return change{Change: redisstore.Clear()}
	case op.agent != nil:
		return change{Change: *op.agent}
	}
	return change{Change: redisstore.SetMetadata(op.Metadata, s.Limits), text: op.Metadata.StoredText()}
}

func (l List) productIDs() (ids []int64) {
	for _, op := range l.Ops {
		if op.Add != nil {
			ids = append(ids, op.Add.ProductID)
		} else if op.Edit != nil && op.item() != "" {
			ids = append(ids, op.item().Product())
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (op Op) item() cart.LineID {
	switch {
	case op.Edit != nil:
		return op.Edit.Item
	case op.Remove != nil:
		return *op.Remove
	}
	return ""
}

func (op Op) redeems() bool { return op.Coupon != nil && op.Coupon.Code != "" }

func (op Op) needsCart() bool { return op.redeems() || op.Edit != nil && op.Edit.needsLine() }

// outcomes returns the results of a list that was applied, now or earlier. If ops is nil, its changes are not known.
func (s *Carts) outcomes(ops []change, o redisstore.Outcome) *Outcomes {
	if ops == nil {
		ops = make([]change, len(o.Ops))
	}
	all := &Outcomes{Each: make([]Outcome, len(ops)), Unknown: o.Ops == nil || len(o.Ops) != len(ops)} // the repeat of an agent's is another list
	if all.Unknown {
		return all
	}
	for i, op := range o.Ops {
		switch {
		case op.Refusal != nil:
			all.Each[i].Refusal = s.problem(ops[i], *op.Refusal)
		case o.Status == redisstore.Applied || o.Cart.Has(op.Line):
			all.Each[i].Item = op.Line
		}
	}
	all.limitFaults()
	return all
}

// limitFaults keeps problem.MaxFaults of all faults: the first of each refused change, then those of the first ones.
func (o *Outcomes) limitFaults() {
	more := problem.MaxFaults
	for _, outcome := range o.Each {
		if outcome.Refusal != nil {
			more--
		}
	}
	for i := range o.Each {
		if refusal := &o.Each[i].Refusal; *refusal != nil {
			*refusal = (*refusal).First(1 + max(more, 0))
			more -= len((*refusal).Faults) - 1
		}
	}
}

func (s *Carts) refusedOp(ops []change, o redisstore.Outcome) *problem.Error {
	refusal := s.problem(ops[o.Op], o.Refusal)
	reason, _ := refusal.Data.(cart.CouponReason)
	return refusal.Within(fmt.Sprintf("ops.%d", o.Op)).WithData(OpFault{o.Op, reason})
}
