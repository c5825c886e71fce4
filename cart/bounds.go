package cart

// Bounds are what the catalog and the limits say about the quantity of one line.
type Bounds struct {
	Stock    int64 // of the product, over all its lines; -1 for unlimited
	Min, Max int64 // of the line
}

// BoundsOf is how much of one line of a product a cart may hold. A product that is gone
// (nil) has no bounds of its own.
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
	return b
}

// MergeBounds is how far each line of a guest's cart may grow in a merge. A line that
// could not be bought at all moves as it is and carries its issue: only the service's
// own limit bounds it.
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
