package cart

// Bounds are the quantities that the catalog and the limits allow for one line.
type Bounds struct {
	Stock    int64 // of the product, shared by all its lines; -1 for unlimited
	Min, Max int64 // of the line
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
	return b
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
