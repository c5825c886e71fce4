package price

import (
	"commerce/auth/problem"
	"commerce/cart"
)

// mend sets the fixes of issues. They are computed for one list in the order of the lines: a line gets
// what the lines before it leave after their fixes, and grows only if there is room before the fix of any
// later line. So the cart refuses none of them.
func mend(lines []Line, limits cart.Limits) {
	now := make(map[int64]int64, len(lines)) // by product, what all its lines hold
	for i := range lines {
		now[lines[i].ID.Product()] += lines[i].Quantity
	}
	before := make(map[int64]int64, len(now)) // by product, what the lines before hold
	for i := range lines {
		l, id, kept := &lines[i], lines[i].ID.Product(), lines[i].Quantity
		if l.Issue != nil {
			l.Issue.Fix, kept = l.fix(before[id], now[id]-l.Quantity, limits)
		}
		before[id] += kept
		now[id] += kept - l.Quantity
	}
}

// fix returns the fix of a line's issue, nil if only the shopper can decide, and the quantity
// that the line has afterwards. See mended for the other parameters.
func (l *Line) fix(before, others int64, limits cart.Limits) (f *cart.Fix, kept int64) {
	switch l.Issue.Code {
	case problem.PlanUnavailable, problem.FieldMissing, problem.FieldInvalid:
		return nil, l.Quantity
	}
	f = &cart.Fix{Line: l.ID}
	if cart.RaiseRefusal(l.Product) == "" {
		f.Quantity = mended(cart.BoundsOf(l.Product, limits), l.Quantity, before, others)
	}
	if f.Remove = f.Quantity == 0; !f.Remove && l.priceChanged() {
		f.Price = new(l.Unit.Total())
	}
	return f, f.Quantity
}

// mended returns the highest quantity that a line may have, but no more than it has, or the
// minimum if it has less; 0 if the line may have none. The product's lines before it hold
// before, and all others hold others.
func mended(b cart.Bounds, quantity, before, others int64) int64 {
	highest, held := max(quantity, b.Min), before
	if quantity < b.Min {
		held = others
	}
	highest = min(highest, b.Max)
	if b.PerCart > 0 {
		highest = min(highest, b.PerCart-held)
	}
	if b.Stock >= 0 {
		highest = min(highest, b.Stock-held)
	}
	if highest < b.Min {
		return 0
	}
	if b.OffStep(highest) {
		highest -= (highest - b.Min) % b.Step
	}
	return highest
}
