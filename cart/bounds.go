package cart

import (
	"cmp"

	"commerce/auth/problem"
)

// Bounds are the quantities that the catalog and the limits allow for one line.
type Bounds struct {
	Stock    int64 // of the product, shared by all its lines; -1 for unlimited
	PerCart  int64 // maximum of all lines of the product; 0 for none
	Min, Max int64 // of the line
	Step     int64 // the line's quantity is Min plus a multiple of it; 0 and 1: any
}

// BoundsOf returns the bounds for one line of a product. A product that no longer exists
// (nil) has only the service's own limit.
func BoundsOf(p *Product, limits Limits) Bounds {
	b := Bounds{Stock: -1, Min: 1, Max: limits.Quantity}
	if p == nil {
		return b
	}
	if p.Stock != nil {
		b.Stock = max(*p.Stock, 0)
	}
	b.Min = max(p.MinQuantity, 1)
	if p.MaxQuantity != nil {
		b.Max = min(b.Max, *p.MaxQuantity)
	}
	if p.MaxPerCart != nil {
		b.PerCart = *p.MaxPerCart
	}
	b.Step = p.Step
	return b
}

// RaiseRefusal returns the code with which any higher quantity of a product's line is
// refused; "" if the line may grow. A nil product no longer exists.
func RaiseRefusal(p *Product) problem.Code {
	switch {
	case p == nil:
		return problem.ProductNotFound
	case !p.Active:
		return problem.ProductInactive
	}
	return ""
}

// offStep reports whether a quantity is between two steps. Below the minimum there are no
// steps.
func (b Bounds) offStep(quantity int64) bool {
	return b.Step > 1 && quantity > b.Min && (quantity-b.Min)%b.Step != 0
}

// refuseLine checks the quantity of a line by the bounds of a line.
func (b Bounds) refuseLine(quantity int64) *Refusal {
	switch {
	case quantity < b.Min || quantity > b.Max:
		return &Refusal{Code: problem.QuantityOutOfRange, A: b.Min, B: b.Max}
	case b.offStep(quantity):
		return &Refusal{Code: OffStep, A: b.Min, B: b.Step}
	}
	return nil
}

// refuseShared checks what the product's lines share: stock and the maximum per cart must
// cover added as well as inCart, the quantity that they hold apart from it.
func (b Bounds) refuseShared(added, inCart int64) *Refusal {
	switch {
	case b.PerCart > 0 && inCart+added > b.PerCart:
		return &Refusal{Code: AboveMaxPerCart, A: b.PerCart, B: inCart}
	case b.Stock == 0:
		return &Refusal{Code: problem.OutOfStock}
	case b.Stock > 0 && inCart+added > b.Stock:
		return &Refusal{Code: problem.InsufficientStock, A: b.Stock, B: inCart}
	}
	return nil
}

// refuse checks the quantity that a line would have, of which added is new to the cart.
// See refuseShared.
func (b Bounds) refuse(quantity, added, inCart int64) *Refusal {
	return cmp.Or(b.refuseLine(quantity), b.refuseShared(added, inCart))
}

// refuseGrowth checks a new quantity of a line that has held, except for the bounds of the
// line. raise is the code for which it may not grow at all; "" when it may. inCart is what
// other lines of the product hold.
func (b Bounds) refuseGrowth(quantity, held, inCart int64, raise problem.Code) *Refusal {
	switch {
	case quantity <= held:
		return nil
	case raise != "":
		return &Refusal{Code: raise}
	}
	return b.refuseShared(quantity, inCart)
}

// refuseNew checks a new quantity of a line that has held. It can always be lowered to the
// product's minimum, in steps. raise and inCart are those of refuseGrowth.
func (b Bounds) refuseNew(quantity, held, inCart int64, raise problem.Code) *Refusal {
	switch {
	case quantity == held:
		return nil
	case quantity > held && raise != "":
		return &Refusal{Code: raise}
	case quantity > held:
		return b.refuse(quantity, quantity, inCart)
	case quantity < b.Min:
		return &Refusal{Code: problem.QuantityOutOfRange, A: b.Min, B: b.Max}
	case b.offStep(quantity):
		return &Refusal{Code: OffStep, A: b.Min, B: b.Step}
	}
	return nil
}

// cut limits the quantity that a merge would give a line. The result is at least 1, and
// never below what the customer had. inCart is what other lines of the product hold. by is
// the code of the bound that cut the quantity; "" if none did.
func (b Bounds) cut(wanted, held, inCart int64) (kept int64, by problem.Code) {
	most, by := b.Max, AboveMaxQuantity
	if b.PerCart > 0 {
		most = min(most, b.PerCart-inCart)
	}
	if b.Stock > 0 && b.Stock-inCart < most {
		most, by = b.Stock-inCart, problem.InsufficientStock
	}
	kept = wanted
	if kept > most {
		kept = most
	} else {
		by = OffStep
	}
	if b.offStep(kept) {
		kept -= (kept - b.Min) % b.Step
	}
	if kept = max(kept, min(wanted, held), 1); kept == wanted {
		by = ""
	}
	return kept, by
}

// MergeBounds returns the bounds for each line of a guest's cart in a merge. A line that
// cannot be bought at all moves unchanged and keeps its issue: only the service's own
// limit applies to it.
func MergeBounds(guest Cart, products map[int64]*Product, limits Limits) map[LineID]Bounds {
	bounds := make(map[LineID]Bounds, len(guest.Lines))
	for _, l := range guest.Lines {
		p := products[l.ID.Product()]
		b := BoundsOf(p, limits)
		if p == nil || !p.Active || b.Stock == 0 {
			b = Bounds{Stock: -1, Max: limits.Quantity}
		}
		bounds[l.ID] = b
	}
	return bounds
}
