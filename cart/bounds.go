package cart

import "commerce/auth/problem"

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
