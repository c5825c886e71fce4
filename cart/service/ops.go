package service

import (
	"cmp"
	"context"
	"errors"
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

	agent string // see cart.Change
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

// Ops makes a list of changes in one step. Each one sees the results of those before it. It fails like Edit.
func (s *Carts) Ops(ctx context.Context, v *Visit, on Conditions, list List) (Changed, error) {
	if len(list.Ops) == 1 && list.Ops[0].Shared != nil {
		return s.addShared(ctx, v, on, *list.Ops[0].Shared)
	}
	products, err := s.Catalog.Products(ctx, v.Store.ID, list.productIDs())
	if err != nil {
		return Changed{}, cart.Unavailable("products", err)
	}
	if err := s.priceable(ctx, v, on); err != nil {
		return Changed{}, err
	}
	ops := make([]change, len(list.Ops))
	for i, op := range list.Ops {
		if !op.redeems() {
			ops[i] = s.op(op, products, true)
		}
	}
	redeems := slices.IndexFunc(list.Ops, Op.redeems)
	if redeems < 0 {
		return s.makeList(ctx, v, on, list, ops)
	}
	forget, tooMany := s.Guesses.begin(ctx, v.client, v.name())
	for i, op := range list.Ops {
		switch {
		case op.redeems() && tooMany != nil:
			ops[i].refuse(tooMany)
		case op.redeems():
			if ops[i], err = s.redemption(ctx, v, *op.Coupon); err != nil {
				forget()
				return Changed{}, err
			}
		}
	}
	changed, err := s.makeList(ctx, v, on, list, ops)
	if tooMany == nil && !tellsOf(redeems, changed, err) {
		forget()
	}
	return changed, err
}

func (s *Carts) makeList(ctx context.Context, v *Visit, on Conditions, list List, ops []change) (Changed, error) {
	rules := make([]cart.Rule, len(ops))
	c := change{ops: ops}
	for i := range ops {
		rules[i] = ops[i].Rule
		c.needs = cmp.Or(c.needs, ops[i].needs)
	}
	c.Change = cart.Change{Rule: cart.List(list.Each, rules), List: true, Agent: list.agent}
	return s.makeChange(ctx, v, on, c)
}

// op returns an operation's change, except for that of a code.
func (s *Carts) op(op Op, products map[int64]*cart.Product, listed bool) (c change) {
	switch {
	case op.Add != nil:
		return s.addition(*op.Add, products[op.Add.ProductID])
	case op.Edit != nil:
		return s.edit(*op.Edit, products[op.Edit.Item.Product()], listed)
	case op.Remove != nil:
		c.Rule = cart.Remove(cart.Item{ID: *op.Remove, OnlyIDs: listed})
	case op.Coupon != nil:
		c.Rule = cart.SetCoupon("")
	case op.Clear:
		c.Rule = cart.Clear()
	default:
		c.Rule = cart.SetMetadata(op.Metadata)
	}
	return c
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
			all.Each[i].Refusal = s.problem(ops[i], explained(*op.Refusal, o.Effect.Ops, i))
		case o.Status == cart.Applied || o.Cart.Has(op.Line):
			all.Each[i].Item = op.Line
		}
	}
	return all
}

// explained returns the refusal of an operation with the sentences of now, if it would still be refused in the same way.
func explained(r cart.Refusal, now []cart.Effect, i int) cart.Effect {
	if i < len(now) && now[i].Problem != nil && now[i].Problem.Code == r.Code {
		return now[i]
	}
	return cart.Effect{Refusal: &r}
}

// refusedOps is the error of a list that is refused as a whole. It names the faults of every operation, and has the code of
// the first.
func (s *Carts) refusedOps(ops []change, effects []cart.Effect) *problem.Error {
	var all *problem.Error
	var first OpFault
	for i, effect := range effects {
		if !effect.Refused() {
			continue
		}
		refusal := s.problem(ops[i], effect)
		if all == nil {
			first.Op = i
			first.Reason, _ = refusal.Data.(cart.CouponReason)
		}
		all = problem.Join(all, refusal.Within(fmt.Sprintf("ops.%d", i)))
	}
	return all.WithData(first)
}

// tellsOf reports whether the response shows that an operation is refused now, not by an earlier request.
func tellsOf(op int, changed Changed, err error) bool {
	if refusal, ok := errors.AsType[*problem.Error](err); ok {
		fault, ok := refusal.Data.(OpFault)
		return ok && fault.Op == op
	}
	return err == nil && !changed.Replayed && changed.Ops.Each[op].Refusal != nil
}
