package cart

import (
	"cmp"

	"commerce/auth/problem"
)

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

// cut limits the quantity that a merge would give a line. The result is at least 1, and never below
// what the customer had. by is the code of the bound that cut the quantity; "" if none did.
func cut(b Bounds, wanted, held, inCart int64) (kept int64, by problem.Code) {
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
	if b.OffStep(kept) {
		kept -= (kept - b.Min) % b.Step
	}
	if kept = max(kept, min(wanted, held), 1); kept == wanted {
		by = ""
	}
	return kept, by
}
