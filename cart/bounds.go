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

// BoundsOf returns the bounds of a line. A nil product has only the service's own limit.
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

// OffStep reports whether a quantity is between two steps. There are none below the minimum.
func (b Bounds) OffStep(quantity int64) bool {
	return b.Step > 1 && quantity > b.Min && (quantity-b.Min)%b.Step != 0
}

func refuseLine(b Bounds, quantity int64) *Refusal {
	switch {
	case quantity < b.Min || quantity > b.Max:
		return &Refusal{Code: problem.QuantityOutOfRange}
	case b.OffStep(quantity):
		return &Refusal{Code: OffStep}
	}
	return nil
}

// refuseShared checks what the product's lines share: stock and the maximum per cart must
// cover added as well as inCart, the quantity that they hold apart from it.
func refuseShared(b Bounds, added, inCart int64) *Refusal {
	switch {
	case b.PerCart > 0 && inCart+added > b.PerCart:
		return &Refusal{Code: AboveMaxPerCart, Held: inCart}
	case b.Stock == 0:
		return &Refusal{Code: problem.OutOfStock}
	case b.Stock > 0 && inCart+added > b.Stock:
		return &Refusal{Code: problem.InsufficientStock, Held: inCart}
	}
	return nil
}

// refuseSum checks a line's new quantity, of which added is new to the cart. See refuseShared.
func refuseSum(b Bounds, quantity, added, inCart int64) *Refusal {
	return cmp.Or(refuseLine(b, quantity), refuseShared(b, added, inCart))
}

// refuseGrowth checks a new quantity of a line that has held, except for the bounds of the
// line. raise is the code for which it may not grow at all; "" when it may. inCart is what
// other lines of the product hold.
func refuseGrowth(b Bounds, quantity, held, inCart int64, raise problem.Code) *Refusal {
	switch {
	case quantity <= held:
		return nil
	case raise != "":
		return &Refusal{Code: raise}
	}
	return refuseShared(b, quantity, inCart)
}

// refuseNew checks a new quantity of a line that has held. It can always be lowered to the
// product's minimum, in steps. raise and inCart are those of refuseGrowth.
func refuseNew(b Bounds, quantity, held, inCart int64, raise problem.Code) *Refusal {
	switch {
	case quantity == held:
		return nil
	case quantity > held && raise != "":
		return &Refusal{Code: raise}
	case quantity > held:
		return refuseSum(b, quantity, quantity, inCart)
	case quantity < b.Min:
		return &Refusal{Code: problem.QuantityOutOfRange}
	case b.OffStep(quantity):
		return &Refusal{Code: OffStep}
	}
	return nil
}
