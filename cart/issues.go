package cart

import (
	"strings"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/money"
)

// Issue is why a line or the cart does not pass validation now. As a warning, it is
// something that the shopper should know and may ignore.
type Issue struct {
	Code      problem.Code
	Requested int64
	Available *int64 // stock left for this line; nil unless the issue is about stock
	Sentence  locale.Sentence
	Fix       *Fix // nil if only the shopper can decide, or if another issue of the line has it
}

// Fix removes a line, or sets its quantity, accepts its unit price, or both.
type Fix struct {
	Line     LineID
	Remove   bool
	Quantity int64         // 0 keeps the line's quantity
	Price    *money.Amount // the unit price now, which the shopper accepts; nil if it has not changed
}

// Codes of issues and warnings that no error response uses.
const (
	BelowMinQuantity problem.Code = "below_min_quantity"
	AboveMaxQuantity problem.Code = "above_max_quantity"
	OffStep          problem.Code = "off_step"
	LowStock         problem.Code = "low_stock"
)

func (l *Line) issue(code problem.Code, sentence locale.Sentence) *Issue {
	return &Issue{Code: code, Requested: l.Quantity, Sentence: sentence}
}

// IssueOf returns what is wrong with a line, or nil. taken is what the lines before it hold.
func IssueOf(l *Line, p *Product, taken int64, limits Limits) *Issue {
	if code := RaiseRefusal(p); code != "" {
		return l.issue(code, Refusal{Code: code}.sentence(p, Bounds{}))
	}
	if i := l.LostPart(p); i != nil {
		return i
	}
	for _, f := range p.Fields {
		if value, _ := answerOf(l.Fields, f.Name); f.Required && !strings.ContainsFunc(value, visible) {
			return l.issue(problem.FieldMissing, textFieldMissing.With(f.Name, p.Name))
		}
	}
	if p.Stock != nil && taken+l.Quantity > *p.Stock {
		i := l.issue(problem.InsufficientStock, onlyLeft(*p.Stock, taken, p.Name))
		if *p.Stock <= 0 {
			i = l.issue(problem.OutOfStock, textOutOfStock.With(p.Name))
		}
		i.Available = new(max(*p.Stock-taken, 0))
		return i
	}
	switch b := BoundsOf(p, limits); {
	case l.Quantity < b.Min:
		return l.issue(BelowMinQuantity, textAtLeast.With(Units.Of(b.Min), p.Name))
	case l.Quantity > b.Max:
		return l.issue(AboveMaxQuantity, textAtMost.With(Units.Of(b.Max), p.Name))
	case b.PerCart > 0 && taken+l.Quantity > b.PerCart:
		return l.issue(AboveMaxQuantity, textAtMostPerCart.With(Units.Of(b.PerCart), p.Name))
	case b.OffStep(l.Quantity):
		return l.issue(OffStep, textOffStep.With(p.Name, Units.Of(b.Step), Units.Of(b.Min)))
	}
	return nil
}

// LostPart returns the issue of a plan, field or option that is no longer offered; nil for none.
func (l *Line) LostPart(p *Product) *Issue {
	plan := l.ID.Plan()
	if chosen := p.Plan(plan); plan != 0 && (chosen == nil || chosen.Retired) {
		return l.issue(problem.PlanUnavailable, textPlanGone.With(p.Name))
	} else if plan == 0 && len(p.Plans) > 0 {
		return l.issue(problem.PlanUnavailable, textPlanNeeded.With(p.Name))
	}
	for _, a := range l.Fields {
		f := p.Field(a.Name)
		if f == nil {
			return l.issue(problem.FieldInvalid, textNoField.With(a.Name, p.Name))
		}
		if len(f.Options) > 0 && f.Option(a.Value) == nil {
			return l.issue(problem.FieldInvalid, textNoOption.With(a.Name, p.Name))
		}
	}
	return nil
}
