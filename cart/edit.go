package cart

import (
	"cmp"
	"maps"
	"slices"

	"commerce/auth/locale"
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
	Metadata Metadata          // changes of the line's

	// AcceptPrice is the unit price after the edit, which the line gets as its AddedPrice. Another
	// unit price is refused.
	AcceptPrice *money.Amount

	QuantityMember string // name of the request member that held the quantity, for errors

	Malformed // what cannot be read is left out of the rest

	MaxFaults int // as in Addition
}

func (e Edit) Removes() bool { return e.Quantity != nil && *e.Quantity == 0 }

// OnlyQuantity reports whether the edit changes nothing but the quantity.
func (e Edit) OnlyQuantity() bool {
	return e.Quantity != nil && e.PlanID == nil && e.Fields == nil && e.Notice == nil && e.Metadata == nil && e.AcceptPrice == nil
}

// EditedLine is what an edit makes of a line.
type EditedLine struct {
	From Line   // the line from which the edit was computed
	ID   LineID // the ID that the line gets; another line with this ID absorbs it

	Quantity *int64       // 1 or more; nil keeps the line's
	Price    money.Amount // unit price now, for a line that gets another ID or Accepts it
	Accepts  bool         // Price becomes the line's AddedPrice
	Fields   []FieldValue // sorted by name
	Notice   string
	Metadata Metadata // changes of the line's; nil for none
	Bounds   Bounds
	Raise    problem.Code // see RaiseRefusal
}

// Resolve computes what an edit makes of a line of a product (nil if the store no longer
// has it). It checks new fields and a new plan like those of an Addition. EditLine checks
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
		From: l, ID: l.ID, Quantity: e.Quantity, Fields: l.Fields, Notice: l.Notice, Metadata: e.Metadata,
		Bounds: BoundsOf(p, limits), Raise: RaiseRefusal(p),
	}
	if e.Notice != nil {
		edited.Notice = *e.Notice
	}
	keys := newFieldKeys(p)
	newPlan, newFields := e.altersPlan(l), e.altersFields(l, keys)
	if newPlan || newFields {
		if err := e.unsold(p, newPlan, newFields); err != nil {
			return EditedLine{}, err
		}
		if err := edited.become(e, keys, newPlan, newFields); err != nil {
			return EditedLine{}, err
		}
	}
	var tooLong *problem.Error
	after := Line{Fields: edited.Fields, Notice: edited.Notice, Metadata: l.Metadata.With(e.Metadata)}
	if size := after.TextSize(); size > l.TextSize() {
		tooLong = tooMuchText(size, textMember(newFields, e.Notice != nil), limits)
	}
	return edited, problem.Join(tooLong, tooMuchMetadata(l.Metadata, after.Metadata), edited.accept(e.AcceptPrice, p))
}

// accept gives the edited line the price that the shopper accepts, if it is the unit price now.
func (l *EditedLine) accept(price *money.Amount, p *Product) *problem.Error {
	const member = "accept_price"
	switch {
	case price == nil:
		return nil
	case p == nil:
		return Refusal{Code: problem.ProductNotFound}.Problem(member, p, Limits{})
	}
	l.Accepts, l.Price = true, p.UnitPrice(p.Plan(l.ID.Plan()), l.Fields).Total()
	if l.Price != *price {
		return problem.New(problem.PriceChanged, member, textPriceMoved, p.Name)
	}
	return nil
}

func (l *EditedLine) become(e Edit, keys *fieldKeys, newPlan, newFields bool) *problem.Error {
	p, planID := keys.product, l.From.ID.Plan()
	plan := p.Plan(planID)
	var badPlan, badFields *problem.Error
	if newPlan {
		if plan, badPlan = choosePlan(e.PlanID, p); plan != nil {
			planID = plan.ID
		}
	}
	if newFields {
		l.Fields, badFields = e.answer(l.From.Fields, keys)
	}
	l.ID = NewLineID(p.ID, planID, l.Fields)
	l.Price = p.UnitPrice(plan, l.Fields).Total()
	return problem.Join(badPlan, badFields)
}

// answer returns the line's answers, of which held are those before the edit.
func (e Edit) answer(held []FieldValue, keys *fieldKeys) ([]FieldValue, *problem.Error) {
	most := cmp.Or(e.MaxFaults, problem.MaxFaults)
	if unknown := keys.unknown(e.Fields, held, most); len(unknown) == most {
		return nil, noFields(unknown, keys.product)
	}
	answers, refusal := answerFields(e.merge(held, keys), keys, e.FieldKeys, most)
	return answers, problem.Join(refusal, e.clearedAndGiven(keys))
}

func (e Edit) unsold(p *Product, newPlan, newFields bool) *problem.Error {
	raise := RaiseRefusal(p)
	if raise == "" {
		return nil
	}
	var badPlan, badFields *problem.Error
	if newPlan {
		badPlan = Refusal{Code: raise}.Problem("subscription_plan", p, Limits{})
	}
	if newFields {
		badFields = Refusal{Code: raise}.Problem("fields", p, Limits{})
	}
	return problem.Join(badPlan, badFields)
}

// altersPlan reports whether the edit changes the line's plan. No plan has the ID 0.
func (e Edit) altersPlan(l Line) bool {
	return e.PlanID != nil && (*e.PlanID == 0 || *e.PlanID != l.ID.Plan())
}

// altersFields reports whether the edit changes an answer of the line. A key that is no
// field of the product counts as a change, so that a misspelled key is refused and not
// ignored. A key with an answer that the line holds from an earlier catalog does not.
func (e Edit) altersFields(l Line, keys *fieldKeys) bool {
	for key, value := range e.Fields {
		f, name := keys.field(key)
		held, ok := answerOf(l.Fields, name)
		if o := f.Option(value); o != nil { // the line holds the code as the catalog spells it
			value = o.Code
		}
		if value != held || f == nil && !ok {
			return true
		}
	}
	return false
}

// clearedAndGiven refuses a field that is cleared under one key and given under another,
// its name and its position.
func (e Edit) clearedAndGiven(keys *fieldKeys) *problem.Error {
	var refusals []*problem.Error
	var known []string
	for key := range e.Fields {
		if keys.index(key) >= 0 {
			known = append(known, key)
		}
	}
	slices.Sort(known)
	cleared := map[string]bool{} // by the name of the field
	for _, key := range known {
		_, name := keys.field(key)
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
	case e.Notice != nil:
		return "notice"
	case e.Metadata != nil:
		return "metadata"
	}
	return "accept_price"
}

// merge returns the line's answers with those of the edit in their place, keyed as in
// Addition. An answer to a field that the product no longer has can only be cleared.
func (e Edit) merge(held []FieldValue, keys *fieldKeys) map[string]string {
	merged := maps.Clone(e.Fields)
	given := map[string]bool{}
	for key := range e.Fields {
		if f, name := keys.field(key); f != nil {
			given[name] = true
		}
	}
	for _, a := range held {
		if _, named := e.Fields[a.Name]; !named && !given[a.Name] {
			merged[a.Name] = a.Value
		} else if keys.product.Field(a.Name) == nil && merged[a.Name] == "" {
			delete(merged, a.Name)
		}
	}
	return merged
}

var textPriceMoved = locale.Text{
	locale.En: "The price of “%s” is another one now. Please check it and try again.",
	locale.Ar: "أصبح سعر المنتج «%s» مختلفًا. يُرجى مراجعته ثم المحاولة مرة أخرى.",
}
