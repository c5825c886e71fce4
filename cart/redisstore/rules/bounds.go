package rules

import (
	"cmp"

	"commerce/auth/problem"
	"commerce/cart"
)

func refuseLine(b cart.Bounds, quantity int64) *cart.Refusal {
	switch {
	case quantity < b.Min || quantity > b.Max:
		return &cart.Refusal{Code: problem.QuantityOutOfRange}
	case b.OffStep(quantity):
		return &cart.Refusal{Code: cart.OffStep}
	}
	return nil
}

// refuseShared checks what the product's lines share: stock and the maximum per cart must
// cover added as well as inCart, the quantity that they hold apart from it.
func refuseShared(b cart.Bounds, added, inCart int64) *cart.Refusal {
	switch {
	case b.PerCart > 0 && inCart+added > b.PerCart:
		return &cart.Refusal{Code: cart.AboveMaxPerCart, Held: inCart}
	case b.Stock == 0:
		return &cart.Refusal{Code: problem.OutOfStock}
	case b.Stock > 0 && inCart+added > b.Stock:
		return &cart.Refusal{Code: problem.InsufficientStock, Held: inCart}
	}
	return nil
}

// refuse checks a line's new quantity, of which added is new to the cart. See refuseShared.
func refuse(b cart.Bounds, quantity, added, inCart int64) *cart.Refusal {
	return cmp.Or(refuseLine(b, quantity), refuseShared(b, added, inCart))
}

// refuseGrowth checks a new quantity of a line that has held, except for the bounds of the
// line. raise is the code for which it may not grow at all; "" when it may. inCart is what
// other lines of the product hold.
func refuseGrowth(b cart.Bounds, quantity, held, inCart int64, raise problem.Code) *cart.Refusal {
	switch {
	case quantity <= held:
		return nil
	case raise != "":
		return &cart.Refusal{Code: raise}
	}
	return refuseShared(b, quantity, inCart)
}

// refuseNew checks a new quantity of a line that has held. It can always be lowered to the
// product's minimum, in steps. raise and inCart are those of refuseGrowth.
func refuseNew(b cart.Bounds, quantity, held, inCart int64, raise problem.Code) *cart.Refusal {
	switch {
	case quantity == held:
		return nil
	case quantity > held && raise != "":
		return &cart.Refusal{Code: raise}
	case quantity > held:
		return refuse(b, quantity, quantity, inCart)
	case quantity < b.Min:
		return &cart.Refusal{Code: problem.QuantityOutOfRange}
	case b.OffStep(quantity):
		return &cart.Refusal{Code: cart.OffStep}
	}
	return nil
}

// cut limits the quantity that a merge would give a line. The result is at least 1, and never below
// what the customer had. by is the code of the bound that cut the quantity; "" if none did.
func cut(b cart.Bounds, wanted, held, inCart int64) (kept int64, by problem.Code) {
	most, by := b.Max, cart.AboveMaxQuantity
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
		by = cart.OffStep
	}
	if b.OffStep(kept) {
		kept -= (kept - b.Min) % b.Step
	}
	if kept = max(kept, min(wanted, held), 1); kept == wanted {
		by = ""
	}
	return kept, by
}
