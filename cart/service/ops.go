package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/redisstore"
)

// List is a shopper's request to make several changes in one step.
type List struct {
	Ops  []Op
	Each bool // apply what can be applied; otherwise all or nothing

	Agent, Shown string // see cart.Change
}

// Op is one change of a list. One member is set.
type Op struct {
	Add      *cart.Addition
	Edit     *Edit         // of a line, by its own ID; a product's ID names nothing
	Remove   *cart.LineID  // "" if no line can have the requested ID; a line that is not there changes nothing
	Clear    bool          // of the lines, the coupon and the metadata
	Coupon   *CouponCode   // to add a code; with the code "" to remove all
	Uncode   *string       // to remove this code, as the shopper spells it
	Buyer    *cart.Buyer   // the country of the buyer; the zero value to forget it
	Metadata cart.Metadata // changes of the cart's

	// Load returns what the operation adds. It is alone in a list that applies each. Its errors are those of Ops; a refusal is
	// that of the operation.
	Load func(context.Context, *Visit) ([]cart.Addition, error)
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

	Replaced *[]string // as in Changed
}

// OpFault is the data of the error that refuses a list for one of its changes.
type OpFault struct {
	Op     int                // its place in the list
	Reason price.CouponReason // why its coupon was refused; "" for another reason
}

// Ops makes a list of changes in one step. Each one sees the results of those before it. It fails like Edit.
func (s *Carts) Ops(ctx context.Context, v *Visit, on Conditions, list List) (Changed, error) {
	if len(list.Ops) == 1 && list.Ops[0].Load != nil {
		return s.addLoaded(ctx, v, on, list.Ops[0])
	}
	products, err := s.Catalog.Products(ctx, v.Store.ID, list.productIDs())
	if err != nil {
		return Changed{}, cart.Unavailable("products", err)
	}
	if err := s.priceable(ctx, v, on); err != nil {
		return Changed{}, err
	}
	c := change{ops: make([]change, len(list.Ops)), needs: newNeeded()}
	rules, faults := make([]cart.Rule, len(list.Ops)), 0
	for i, op := range list.Ops {
		if op.redeems() {
			c.ops[i] = s.redemption(v, *op.Coupon, c.needs)
		} else {
			c.ops[i] = s.op(op, products, max(problem.MaxFaults-faults, 1), true)
		}
		if refusal := c.ops[i].refusal; refusal != nil {
			faults += len(refusal.Faults)
		}
		rules[i] = s.withinText(v, c.ops[i].Rule)
	}
	c.Change = cart.Change{Rule: cart.List(list.Each, rules), List: true, Agent: list.Agent, Shown: list.Shown}
	return s.makeChange(ctx, v, on, c)
}

// addLoaded makes a list of what an operation loads.
func (s *Carts) addLoaded(ctx context.Context, v *Visit, on Conditions, op Op) (Changed, error) {
	additions, err := op.Load(ctx, v)
	if refusal, ok := errors.AsType[*problem.Error](err); ok && refusal.Code != problem.Unavailable {
		c := change{Change: cart.Change{List: true}}
		c.refuse(refusal.Within("ops.0").WithData(OpFault{}))
		return s.makeChange(ctx, v, on, c)
	}
	if err != nil {
		return Changed{}, err
	}
	list := List{Each: true}
	for i := range additions {
		list.Ops = append(list.Ops, Op{Add: &additions[i]})
	}
	return s.Ops(ctx, v, on, list)
}

// op returns an operation's change, except for that of a code. It looks for so many faults of its fields.
func (s *Carts) op(op Op, products map[int64]*cart.Product, faults int, listed bool) (c change) {
	switch {
	case op.Add != nil:
		op.Add.MaxFaults = faults
		return s.addition(*op.Add, products[op.Add.ProductID])
	case op.Edit != nil:
		op.Edit.MaxFaults = faults
		return s.edit(*op.Edit, products[op.Edit.Item.Product()], listed)
	case op.Remove != nil:
		c.Rule = cart.Remove(cart.Item{ID: *op.Remove, OnlyIDs: listed})
	case op.Coupon != nil:
		c.Rule = cart.SetCodes()
	case op.Uncode != nil:
		c.Rule = cart.RemoveCode(*op.Uncode)
	case op.Clear:
		c.Rule = cart.Clear()
	case op.Buyer != nil:
		c.Rule = cart.SetBuyer(*op.Buyer)
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
		if ops[i].redeems && op.Refusal == nil {
			all.Each[i].Replaced = new([]string)
			if o.Status != cart.Replayed {
				*all.Each[i].Replaced = o.Effect.Ops[i].Replaced
			}
		}
	}
	all.limitFaults()
	return all
}

// explained returns the refusal of an operation with the sentences of now, if it would still be refused in the same way.
func explained(r cart.Refusal, now []cart.Effect, i int) cart.Effect {
	if i < len(now) && now[i].Problem != nil && now[i].Problem.Code == r.Code {
		return now[i]
	}
	return cart.Effect{Refusal: &r}
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
			first.Reason, _ = refusal.Data.(price.CouponReason)
		}
		inOp := fmt.Sprintf("ops.%d", i)
		refusal = refusal.Within(inOp)
		for n := range refusal.Faults {
			switch f := &refusal.Faults[n]; {
			case f.Member != "":
			case refusal.Code == problem.ItemNotFound: // in a single call, the path names the line
				f.Member = inOp + ".item"
			default: // such as a full cart
				f.Member = inOp
			}
		}
		all = problem.Join(all, refusal)
	}
	return all.WithData(first)
}
