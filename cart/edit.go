package cart

import (
	"cmp"
	"maps"
	"slices"

	"commerce/auth/problem"
	"commerce/cart/money"
)

// Edit is a shopper's request to edit a line. What is nil stays as it is. Each part is
// checked only if it alters the line, so a line with an issue can still be lowered, removed
// or given another notice.
type Edit struct {
	Quantity *int64            // 0 removes the line, whatever else is requested
	PlanID   *int64            // of another plan
	Fields   map[string]string // answers to change, keyed as in Addition; "" clears one
	Notice   *string           // "" clears it

	QuantityMember string // name of the request member that held the quantity, for errors

	Malformed // what cannot be read is left out of the rest
}

// Removes reports whether the edit removes the line.
func (e Edit) Removes() bool { return e.Quantity != nil && *e.Quantity == 0 }

// OnlyQuantity reports whether the edit changes nothing but the quantity.
func (e Edit) OnlyQuantity() bool {
	return e.Quantity != nil && e.PlanID == nil && e.Fields == nil && e.Notice == nil
}

// EditedLine is what an edit makes of a line.
type EditedLine struct {
	From Line   // the line from which the edit was computed
	ID   LineID // the ID that the line gets; another line with this ID absorbs it

	Quantity *int64       // 1 or more; nil keeps the line's
	Price    money.Amount // unit price now, for a line that gets another ID
	Fields   []FieldValue // sorted by name
	Notice   string
	Bounds   Bounds
	Raise    problem.Code // see RaiseRefusal
}

// Resolve computes what an edit makes of a line of a product (nil if the store no longer
// has it). It checks new fields and a new plan like those of an Addition. Cart.Edit checks
// what depends on the rest of the cart, or on the line's quantity.
func (e Edit) Resolve(l Line, p *Product, limits Limits) (EditedLine, *problem.Error) {
	edited, refusal := e.resolve(l, p, limits)
	if refusal = problem.Join(e.Err, refusal); refusal == nil {
		return edited, nil
	}
	if e.Quantity != nil && *e.Quantity > l.Quantity {
		refusal = problem.Join(refusal, aboveMaximum(*e.Quantity, e.QuantityMember, p, limits))
	}
	return EditedLine{}, refusal
}

func (e Edit) resolve(l Line, p *Product, limits Limits) (EditedLine, *problem.Error) {
	edited := EditedLine{
		From: l, ID: l.ID, Quantity: e.Quantity, Fields: l.Fields, Notice: l.Notice,
		Bounds: BoundsOf(p, limits), Raise: RaiseRefusal(p),
	}
	if e.Notice != nil {
		edited.Notice = *e.Notice
	}
	newPlan, newFields := e.altersPlan(l), e.altersFields(l, p)
	if newPlan || newFields {
		if err := e.unsold(p, newPlan, newFields); err != nil {
			return EditedLine{}, err
		}
		if err := edited.become(e, p, newPlan, newFields); err != nil {
			return EditedLine{}, err
		}
	}
	if size := TextSize(edited.Fields) + int64(len(edited.Notice)); size > l.TextSize() {
		return edited, tooMuchText(size, newFields, limits)
	}
	return edited, nil
}

// become gives the edited line its new fields and plan.
func (l *EditedLine) become(e Edit, p *Product, newPlan, newFields bool) *problem.Error {
	planID := l.From.ID.Plan()
	plan := p.Plan(planID)
	var badPlan, badFields *problem.Error
	if newPlan {
		if plan, badPlan = choosePlan(e.PlanID, p); plan != nil {
			planID = plan.ID
		}
	}
	if newFields {
		l.Fields, badFields = answerFields(e.merge(l.From.Fields, p), p, e.FieldKeys)
		badFields = problem.Join(badFields, e.clearedAndGiven(p))
	}
	l.ID = NewLineID(p.ID, planID, l.Fields)
	l.Price = unitPrice(p, plan, l.Fields).Total()
	return problem.Join(badPlan, badFields)
}

// unsold refuses a new plan or new fields of a product that is not sold now.
func (e Edit) unsold(p *Product, newPlan, newFields bool) *problem.Error {
	raise := RaiseRefusal(p)
	if raise == "" {
		return nil
	}
	var refusals []*problem.Error
	if newPlan {
		refusals = append(refusals, Refusal{Code: raise}.Problem("subscription_plan", p, Limits{}))
	}
	if newFields {
		refusals = append(refusals, Refusal{Code: raise}.Problem("fields", p, Limits{}))
	}
	return problem.Join(refusals...)
}

// altersPlan reports whether the edit changes the line's plan. No plan has the ID 0.
func (e Edit) altersPlan(l Line) bool {
	return e.PlanID != nil && (*e.PlanID == 0 || *e.PlanID != l.ID.Plan())
}

// altersFields reports whether the edit changes an answer of the line. A key that is no
// field of the product counts as a change, so that a misspelled key is refused and not
// ignored. A key with an answer that the line holds from an earlier catalog does not.
func (e Edit) altersFields(l Line, p *Product) bool {
	for key, value := range e.Fields {
		f, name := p.fieldOf(key)
		held, ok := answerOf(l.Fields, name)
		if f != nil {
			value = f.normal(value)
		} else if !ok {
			return true
		}
		if value != held {
			return true
		}
	}
	return false
}

// clearedAndGiven refuses a field that is cleared under one key and given under another,
// its name and its position.
func (e Edit) clearedAndGiven(p *Product) *problem.Error {
	var refusals []*problem.Error
	cleared := map[string]bool{} // by the name of the field
	for _, key := range slices.Sorted(maps.Keys(e.Fields)) {
		_, name := p.fieldOf(key)
		clears := e.Fields[key] == ""
		if before, twice := cleared[name]; twice && before != clears {
			refusals = append(refusals, problem.New(problem.FieldInvalid, "fields."+name, textFieldTwice, name))
		}
		cleared[name] = clears
	}
	return problem.Join(refusals...)
}

// Member names the request member at fault when the cart refuses the edit as a whole.
func (e Edit) Member() string {
	switch {
	case e.Quantity != nil:
		return e.QuantityMember
	case e.Fields != nil:
		return "fields"
	case e.PlanID != nil:
		return "subscription_plan"
	}
	return "notice"
}

// merge returns the line's answers with those of the edit in their place, keyed as in
// Addition. An answer to a field that the product no longer has can only be cleared.
func (e Edit) merge(held []FieldValue, p *Product) map[string]string {
	merged := maps.Clone(e.Fields)
	given := map[string]bool{}
	for key := range e.Fields {
		_, name := p.fieldOf(key)
		given[name] = true
	}
	for _, a := range held {
		if !given[a.Name] {
			merged[a.Name] = a.Value
		} else if p.Field(a.Name) == nil && merged[a.Name] == "" {
			delete(merged, a.Name)
		}
	}
	return merged
}

// answerOf returns the answer to a field.
func answerOf(fields []FieldValue, name string) (value string, ok bool) {
	i, ok := slices.BinarySearchFunc(fields, name, byFieldName)
	if !ok {
		return "", false
	}
	return fields[i].Value, true
}

// Edit edits the line that item names, as Resolve has computed it. The line keeps its
// place. If another line has its new ID, that line absorbs it: it keeps its own place, the
// quantities add, and the edited line's notice wins unless it is empty. The bounds of a line
// then apply to the sum alone. moved is the ID of the line after the edit, if item is not
// that ID. Refusals: item_not_found, line_changed, cart_full for too much text, and those of
// SetQuantity.
func (c Cart) Edit(item LineID, e EditedLine, limits Limits) (changed Cart, moved LineID, refusal *Refusal) {
	at := c.find(item)
	if at < 0 {
		return c, "", &Refusal{Code: problem.ItemNotFound}
	}
	line := c.Lines[at]
	if line.ID != e.From.ID || line.Notice != e.From.Notice {
		return c, "", &Refusal{Code: LineChanged}
	}
	quantity := line.Quantity
	if e.Quantity != nil {
		quantity = *e.Quantity
	}
	other := -1
	if e.ID != line.ID {
		other = slices.IndexFunc(c.Lines, func(l Line) bool { return l.ID == e.ID })
	}
	inCart := c.quantityOf(line.ID) - line.Quantity
	edited, text := e.line(line, quantity), line.TextSize()
	if other < 0 {
		refusal = e.Bounds.refuseNew(quantity, line.Quantity, inCart, e.Raise)
	} else {
		text += c.Lines[other].TextSize()
		edited = c.Lines[other].absorb(edited)
		refusal = cmp.Or(e.Bounds.refuseGrowth(quantity, line.Quantity, inCart, e.Raise), e.Bounds.refuseLine(edited.Quantity))
	}
	if refusal = cmp.Or(refusal, c.refuseText(text, edited.TextSize(), limits)); refusal != nil {
		return c, "", refusal
	}
	switch {
	case other >= 0:
		c = c.with(other, edited)
		c.Lines = slices.Delete(c.Lines, at, at+1)
	case e.ID != line.ID || quantity != line.Quantity || e.Notice != line.Notice:
		c = c.with(at, edited)
	}
	return c, movedTo(e.ID, item), nil
}

// line returns what the line becomes with a quantity.
func (l EditedLine) line(from Line, quantity int64) Line {
	edited := Line{ID: l.ID, Quantity: quantity, AddedPrice: from.AddedPrice, Fields: l.Fields, Notice: l.Notice}
	if l.ID != from.ID {
		edited.AddedPrice = l.Price
	}
	return edited
}

// absorb returns the line with an equal one added to it.
func (l Line) absorb(equal Line) Line {
	l.Quantity += equal.Quantity
	l.Notice = cmp.Or(equal.Notice, l.Notice)
	return l
}

// movedTo returns the line's ID if item is another one, such as the product's; else "".
func movedTo(line, item LineID) LineID {
	if line == item {
		return ""
	}
	return line
}
