package cart

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Addition is what a shopper asks to put in.
type Addition struct {
	ProductID int64
	Quantity  int64 // at least 1
	PlanID    *int64
	Fields    map[string]string // by a field's name, or its position from 0
	Notice    string

	quantityMember string // what the client called the quantity, for its errors
}

// resolve turns an addition into a line, by what the catalogue says of the product
// (nil: no such product). What depends on the rest of the cart is not judged here.
func resolve(a Addition, p *Product, limits Limits) (newLine, *Error) {
	if p == nil {
		return newLine{}, refuse(CodeProductNotFound, "product_id", sayNoProduct)
	}
	if !p.Active {
		return newLine{}, refuse(CodeProductInactive, "product_id", sayInactive, p.Name)
	}
	plan, badPlan := choosePlan(a, p)
	fields, badFields := answerFields(a, p)
	if err := together(badPlan, badFields, tooMuchText(fields, a.Notice, limits)); err != nil {
		return newLine{}, err
	}
	line := newLine{
		quantity: a.Quantity,
		price:    unitPrice(p, plan, fields).total(),
		fields:   fields,
		notice:   a.Notice,
		bounds:   boundsOf(p, limits),
	}
	if plan != nil {
		line.id = newLineID(p.ID, plan.ID, fields)
	} else {
		line.id = newLineID(p.ID, 0, fields)
	}
	return line, nil
}

// choosePlan holds a product with plans to exactly one of them, any other to none.
func choosePlan(a Addition, p *Product) (*Plan, *Error) {
	const member = "subscription_plan"
	switch {
	case a.PlanID == nil && len(p.Plans) == 0:
		return nil, nil
	case a.PlanID == nil:
		return nil, refuse(CodePlanUnavailable, member, sayPlanNeeded, p.Name)
	case len(p.Plans) == 0:
		return nil, refuse(CodePlanUnavailable, member, sayNoPlans, p.Name)
	}
	if plan := p.plan(*a.PlanID); plan != nil {
		return plan, nil
	}
	return nil, refuse(CodePlanUnavailable, member, sayPlanGone, p.Name)
}

// tooMuchText refuses a line whose text exceeds its limit.
func tooMuchText(fields []FieldValue, notice string, limits Limits) *Error {
	if textSize(fields)+int64(len(notice)) <= limits.LineText {
		return nil
	}
	member := "fields"
	if len(fields) == 0 {
		member = "notice"
	}
	return refuse(CodeValidationFailed, member, sayLineTextTooLong, limits.LineText)
}

// answerFields matches the shopper's answers to the product's fields, sorted by
// name so that the same answers give the same line. "" is no answer. A refusal names
// every field at fault in the product's order, then the keys that are no field.
func answerFields(a Addition, p *Product) ([]FieldValue, *Error) {
	if len(a.Fields) == 0 && len(p.Fields) == 0 {
		return nil, nil
	}
	answers := slices.Grow([]FieldValue(nil), min(len(a.Fields), len(p.Fields)))
	var refusals, unknown []*Error
	keys := make([][]string, len(p.Fields)) // of each field, as the shopper sent them
	for _, key := range sortedKeys(a.Fields) {
		if i := fieldIndex(p, key); i >= 0 {
			keys[i] = append(keys[i], key)
		} else {
			unknown = append(unknown, refuse(CodeFieldInvalid, "fields."+key, sayNoField, key, p.Name))
		}
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		value, refusal := answer(f, keys[i], a.Fields, p.Name)
		if refusal != nil {
			refusals = append(refusals, refusal)
		}
		if value != "" {
			answers = append(answers, FieldValue{Name: f.Name, Value: value})
		}
	}
	slices.SortFunc(answers, func(a, b FieldValue) int { return strings.Compare(a.Name, b.Name) })
	return answers, together(append(refusals, unknown...)...)
}

// answer is what the shopper answered to one field under any of its keys: text, or
// the code of an option; "" for nothing.
func answer(f *Field, keys []string, given map[string]string, product string) (string, *Error) {
	var value string
	for _, key := range keys {
		v := given[key]
		if v == "" {
			continue
		}
		if len(f.Options) > 0 {
			o := f.option(v)
			if o == nil {
				return "", refuse(CodeFieldInvalid, "fields."+key, sayNoOption, f.Name, product)
			}
			v = o.Code
		}
		if value != "" && value != v {
			return "", refuse(CodeFieldInvalid, "fields."+key, sayFieldTwice, f.Name)
		}
		value = v
	}
	if value == "" && f.Required {
		return "", refuse(CodeFieldMissing, "fields."+f.Name, sayFieldMissing, f.Name, product)
	}
	return value, nil
}

func byFieldName(f FieldValue, name string) int { return strings.Compare(f.Name, name) }

// fieldIndex finds a field by its name or else by its position; -1 for neither.
func fieldIndex(p *Product, key string) int {
	for i := range p.Fields {
		if p.Fields[i].Name == key {
			return i
		}
	}
	i, err := strconv.Atoi(key)
	if err != nil || i < 0 || i >= len(p.Fields) || strconv.Itoa(i) != key {
		return -1
	}
	return i
}

func sortedKeys[M ~map[string]V, V any](m M) []string {
	keys := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}

// boundsOf says how much of one line of a product a cart may hold. A product that
// is gone (nil) bounds nothing.
func boundsOf(p *Product, limits Limits) bounds {
	b := bounds{stock: -1, least: 1, most: limits.Quantity}
	if p == nil {
		return b
	}
	if p.Stock != nil {
		b.stock = max(*p.Stock, 0)
	}
	b.least = max(p.MinQuantity, 1)
	if p.MaxQuantity != nil {
		b.most = min(b.most, *p.MaxQuantity)
	}
	return b
}

// Issue is why a line, or the cart, would not pass validation now; or, as a
// warning, what the shopper should know and may ignore.
type Issue struct {
	Code      Code
	Requested int64
	Available *int64 // of the product, for this line; nil where stock is not the matter
	fault     fault
}

// issueOf judges one line. left is the stock that the lines before it leave; nil
// for unlimited.
func issueOf(l *Line, p *Product, left *int64, limits Limits) *Issue {
	issue := func(code Code, say phrase, args ...any) *Issue {
		return &Issue{Code: code, Requested: l.Quantity, fault: fault{phrase: say, args: args}}
	}
	if p == nil {
		return issue(CodeProductNotFound, sayNoProduct)
	}
	if !p.Active {
		return issue(CodeProductInactive, sayInactive, p.Name)
	}
	if plan := l.ID.Plan(); plan != 0 && p.plan(plan) == nil {
		return issue(CodePlanUnavailable, sayPlanGone, p.Name)
	} else if plan == 0 && len(p.Plans) > 0 {
		return issue(CodePlanUnavailable, sayPlanNeeded, p.Name)
	}
	if i := fieldIssue(l, p, issue); i != nil {
		return i
	}
	if left != nil && l.Quantity > *left {
		i := issue(CodeInsufficientStock, sayOnlySome, *p.Stock, p.Name)
		if *p.Stock <= 0 {
			i = issue(CodeOutOfStock, sayOutOfStock, p.Name)
		}
		i.Available = left
		return i
	}
	switch b := boundsOf(p, limits); {
	case l.Quantity < b.least:
		return issue(CodeBelowMinQuantity, sayAtLeast, b.least, p.Name)
	case l.Quantity > b.most:
		return issue(CodeAboveMaxQuantity, sayAtMost, b.most, p.Name)
	}
	return nil
}

// fieldIssue compares the answers of a line with what the product asks now.
func fieldIssue(l *Line, p *Product, issue func(Code, phrase, ...any) *Issue) *Issue {
	for _, a := range l.Fields {
		f := p.field(a.Name)
		if f == nil {
			return issue(CodeFieldInvalid, sayNoField, a.Name, p.Name)
		}
		if len(f.Options) > 0 && f.option(a.Value) == nil {
			return issue(CodeFieldInvalid, sayNoOption, a.Name, p.Name)
		}
	}
	for _, f := range p.Fields {
		i, given := slices.BinarySearchFunc(l.Fields, f.Name, byFieldName)
		if f.Required && !(given && strings.ContainsFunc(l.Fields[i].Value, visible)) {
			return issue(CodeFieldMissing, sayFieldMissing, f.Name, p.Name)
		}
	}
	return nil
}

// lowStock is the stock at or under which a shopper is warned that few are left.
const lowStock = 5

// warningsOf lists what a shopper should know of a line. That few are left is no news
// beside an issue.
func warningsOf(l *PricedLine) []Issue {
	p := l.Product
	if p == nil {
		return nil
	}
	var warnings []Issue
	if unit := l.Unit.total(); unit != l.AddedPrice && l.intact() {
		say := sayPriceRose
		if unit < l.AddedPrice {
			say = sayPriceFell
		}
		warnings = append(warnings, Issue{
			Code: CodePriceChanged, Requested: l.Quantity, fault: fault{phrase: say, args: []any{p.Name}},
		})
	}
	if l.Issue == nil && p.Stock != nil && *p.Stock <= lowStock {
		warnings = append(warnings, Issue{
			Code: CodeLowStock, Requested: l.Quantity, Available: p.Stock,
			fault: fault{phrase: sayLowStock, args: []any{*p.Stock, p.Name}},
		})
	}
	return warnings
}
