package share

import (
	"slices"

	"commerce/cart"
)

// Copy returns what a share has of a cart's lines: products, plans, quantities and chosen options. It leaves out
// what the shopper wrote, and so every answer that is no option now. Lines that become equal are summed, up to most.
func Copy(lines []cart.Line, products map[int64]*cart.Product, most int64) (copied []cart.Line) {
	for _, l := range lines {
		var options []cart.FieldValue
		if p := products[l.ID.Product()]; p != nil {
			for _, a := range l.Fields {
				if o := p.Field(a.Name).Option(a.Value); o != nil {
					options = append(options, cart.FieldValue{Name: a.Name, Value: o.Code})
				}
			}
		}
		id := cart.NewLineID(l.ID.Product(), l.ID.Plan(), options)
		if i := slices.IndexFunc(copied, func(c cart.Line) bool { return c.ID == id }); i >= 0 {
			copied[i].Quantity = max(copied[i].Quantity, min(copied[i].Quantity+l.Quantity, most))
			continue
		}
		copied = append(copied, cart.Line{ID: id, Quantity: l.Quantity, Fields: options})
	}
	return copied
}

// Addition is the request to add a line of a share.
func Addition(l cart.Line) cart.Addition {
	a := cart.Addition{ProductID: l.ID.Product(), Quantity: l.Quantity, QuantityMember: "qty", Fields: map[string]string{}}
	if plan := l.ID.Plan(); plan != 0 {
		a.PlanID = &plan
	}
	for _, option := range l.Fields {
		a.Fields[option.Name] = option.Value
	}
	return a
}
