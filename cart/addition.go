package cart

import (
	"time"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/money"
)

// Addition is a shopper's request to add a product to the cart.
type Addition struct {
	ProductID int64
	Quantity  int64             // 1 or more
	PlanID    *int64            // nil for none
	Fields    map[string]string // keyed by field name, or by position from 0
	Notice    string
	Metadata  Metadata // changes of the line's; nil for none

	QuantityMember string // name of the request member that held the quantity, for errors

	Malformed // what cannot be read is left out of the rest

	MaxFaults int // at which Resolve stops to look for faults of fields; 0: problem.MaxFaults
}

// Malformed is what is wrong with a request by itself. Resolve adds what the product and its
// limits refuse, so that an error names every member at fault.
type Malformed struct {
	Err       *problem.Error  // nil: nothing
	FieldKeys map[string]bool // the keys of fields whose values cannot be read
}

// Rule returns the rule of a malformed request, which is refused always: by what rule, which has its faults, refuses, or if the
// cart does not have what the request names, by the faults alone.
func (m Malformed) Rule(rule Rule) Rule {
	return func(c *Cell, limits Limits, now time.Time) Effect {
		effect := rule(c, limits, now)
		if effect.Problem == nil {
			return Effect{Problem: m.Err}
		}
		return effect
	}
}

// NewLine is a line that is ready to be added.
type NewLine struct {
	ID       LineID
	Quantity int64
	Price    money.Amount // unit price now
	Fields   []FieldValue // sorted by name
	Notice   string
	Metadata Metadata // changes of the line's; nil for none
	Bounds   Bounds
}

// LineID returns the ID of the line that the addition makes of its product (nil if the store does
// not have it), without invalid answers. A replay of a change that is now refused names it.
func (a Addition) LineID(p *Product) LineID {
	var planID int64
	if a.PlanID != nil {
		planID = *a.PlanID
	}
	if p == nil {
		p = &Product{ID: a.ProductID}
	}
	fields, _ := answerFields(a.Fields, newFieldKeys(p), a.FieldKeys, 0)
	return NewLineID(p.ID, planID, fields)
}

// Resolve checks an addition against its product (nil if the store does not have it) and
// returns the line to add. It does not check what depends on the rest of the cart. A refusal names
// every member at fault, and has the code of the first: those that are malformed, then the
// product, the plan, the fields, their size, and the quantity.
func Resolve(a Addition, p *Product, limits Limits) (NewLine, *problem.Error) {
	if code := RaiseRefusal(p); code != "" {
		return NewLine{}, problem.Join(a.Err, Refusal{Code: code}.Problem("product_id", p, limits))
	}
	var plan *Plan
	var fields []FieldValue
	var badPlan, badFields *problem.Error
	if !a.Err.Names("subscription_plan") {
		plan, badPlan = choosePlan(a.PlanID, p)
	}
	if !a.Err.Names("fields") {
		fields, badFields = answerFields(a.Fields, newFieldKeys(p), a.FieldKeys, a.MaxFaults)
	}
	metadata := Metadata(nil).With(a.Metadata)
	added := Line{Fields: fields, Notice: a.Notice, Metadata: metadata}
	text := problem.Join(tooMuchText(added.TextSize(), textMember(len(fields) > 0, a.Notice != ""), limits), tooMuchMetadata(nil, metadata))
	if err := problem.Join(a.Err, badPlan, badFields, text); err != nil {
		return NewLine{}, problem.Join(err, aboveMaximum(a.Quantity, a.QuantityMember, p, limits))
	}
	var planID int64
	if plan != nil {
		planID = plan.ID
	}
	return NewLine{
		ID:       NewLineID(p.ID, planID, fields),
		Quantity: a.Quantity,
		Price:    p.UnitPrice(plan, fields).Total(),
		Fields:   fields,
		Notice:   a.Notice,
		Metadata: a.Metadata,
		Bounds:   BoundsOf(p, limits),
	}, nil
}

func aboveMaximum(quantity int64, member string, p *Product, limits Limits) *problem.Error {
	if quantity <= BoundsOf(p, limits).Max {
		return nil
	}
	return Refusal{Code: problem.QuantityOutOfRange}.Problem(member, p, limits)
}

// choosePlan requires a plan of a product that has plans, and refuses one of any other.
func choosePlan(id *int64, p *Product) (*Plan, *problem.Error) {
	const member = "subscription_plan"
	switch {
	case id == nil && len(p.Plans) == 0:
		return nil, nil
	case id == nil:
		return nil, problem.New(problem.PlanUnavailable, member, textPlanNeeded, p.Name)
	case len(p.Plans) == 0:
		return nil, problem.New(problem.PlanUnavailable, member, textNoPlans, p.Name)
	}
	if plan := p.Plan(*id); plan != nil && !plan.Retired {
		return plan, nil
	}
	return nil, problem.New(problem.PlanUnavailable, member, textPlanGone, p.Name)
}

func tooMuchText(size int64, member string, limits Limits) *problem.Error {
	if size <= limits.LineText {
		return nil
	}
	return textTooLong(member, limits)
}

func textTooLong(member string, limits Limits) *problem.Error {
	return problem.New(problem.ValidationFailed, member, textLineTextTooLong, limits.LineText)
}

// textMember names the member at fault when a line's text is too long: the fields or the notice if
// the request has them, otherwise the metadata.
func textMember(fields, notice bool) string {
	switch {
	case fields:
		return "fields"
	case notice:
		return "notice"
	}
	return "metadata"
}

var (
	textLineTextTooLong = locale.Text{
		locale.En: "The texts of this item are too long. Please shorten them. The limit is %d bytes.",
		locale.Ar: "نصوص هذا العنصر أطول من المسموح به. يُرجى اختصارها. الحد الأقصى %d بايت.",
	}
	textPlanNeeded = locale.Text{
		locale.En: "Choose a subscription plan for “%s”.",
		locale.Ar: "اختر خطة اشتراك للمنتج «%s».",
	}
	textNoPlans = locale.Text{
		locale.En: "“%s” is not sold with a subscription plan.",
		locale.Ar: "المنتج «%s» لا يُباع بخطة اشتراك.",
	}
	textPlanGone = locale.Text{
		locale.En: "This subscription plan is not available for “%s”.",
		locale.Ar: "خطة الاشتراك هذه غير متوفرة للمنتج «%s».",
	}
)
