package cart

// Shared returns what a share has of a cart's lines: products, plans, quantities and chosen options. It leaves out
// what the shopper wrote, and so every answer that is no option now. Lines that become equal are summed, up to most.
func Shared(lines []Line, products map[int64]*Product, most int64) (shared []Line) {
	for _, l := range lines {
		var options []FieldValue
		if p := products[l.ID.Product()]; p != nil {
			for _, a := range l.Fields {
				if o := p.Field(a.Name).Option(a.Value); o != nil {
					options = append(options, FieldValue{a.Name, o.Code})
				}
			}
		}
		id := NewLineID(l.ID.Product(), l.ID.Plan(), options)
		if equal := find(shared, func(s *Line) bool { return s.ID == id }); equal != nil {
			equal.Quantity = max(equal.Quantity, min(equal.Quantity+l.Quantity, most))
			continue
		}
		shared = append(shared, Line{ID: id, Quantity: l.Quantity, Fields: options})
	}
	return shared
}

// Addition is the request to add the line of a share.
func (l *Line) Addition() Addition {
	a := Addition{ProductID: l.ID.Product(), Quantity: l.Quantity, QuantityMember: "qty", Fields: map[string]string{}}
	if plan := l.ID.Plan(); plan != 0 {
		a.PlanID = &plan
	}
	for _, option := range l.Fields {
		a.Fields[option.Name] = option.Value
	}
	return a
}
