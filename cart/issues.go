package cart

import (
	"strings"

	"commerce/auth/locale"
	"commerce/auth/problem"
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

// issueOf returns what is wrong with a line, or nil. taken is what the lines before it hold.
func issueOf(l *Line, p *Product, taken int64, limits Limits) *Issue {
	if code := RaiseRefusal(p); code != "" {
		return l.issue(code, Refusal{Code: code}.sentence(p, Bounds{}))
	}
	if i := l.lostPart(p); i != nil {
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
		return l.issue(BelowMinQuantity, textAtLeast.With(units.Of(b.Min), p.Name))
	case l.Quantity > b.Max:
		return l.issue(AboveMaxQuantity, textAtMost.With(units.Of(b.Max), p.Name))
	case b.PerCart > 0 && taken+l.Quantity > b.PerCart:
		return l.issue(AboveMaxQuantity, textAtMostPerCart.With(units.Of(b.PerCart), p.Name))
	case b.OffStep(l.Quantity):
		return l.issue(OffStep, textOffStep.With(p.Name, units.Of(b.Step), units.Of(b.Min)))
	}
	return nil
}

// lostPart returns the issue of a plan, field or option that is no longer offered; nil for none.
func (l *Line) lostPart(p *Product) *Issue {
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

// lowStock is the highest stock at which the shopper gets a warning.
const lowStock = 5

// priceChanged reports whether the unit price has changed since the line was added. A line whose
// plan or option is gone costs less, but its price has not gone down.
func (l *PricedLine) priceChanged() bool {
	return l.Product != nil && l.Unit.Total() != l.AddedPrice && l.lostPart(l.Product) == nil
}

// warningsOf lists the warnings of a line. A line with an issue gets no warning about low
// stock. The fix of an issue accepts a changed price too.
func warningsOf(l *PricedLine) []Issue {
	p := l.Product
	if p == nil {
		return nil
	}
	var warnings []Issue
	if l.priceChanged() {
		unit, text := l.Unit.Total(), textPriceRose
		if unit < l.AddedPrice {
			text = textPriceFell
		}
		w := l.issue(problem.PriceChanged, text.With(p.Name))
		if l.Issue == nil || l.Issue.Fix == nil {
			w.Fix = &Fix{Line: l.ID, Price: &unit}
		}
		warnings = append(warnings, *w)
	}
	if l.Issue == nil && p.Stock != nil && *p.Stock <= lowStock {
		text := textLowStock
		if *p.Stock == 1 {
			text = textLastOne
		}
		warnings = append(warnings, Issue{
			Code: LowStock, Requested: l.Quantity, Available: p.Stock, Sentence: text.With(units.Of(*p.Stock), p.Name),
		})
	}
	return warnings
}

var (
	textPriceRose = locale.Text{
		locale.En: "The price of “%s” has gone up since you added it.",
		locale.Ar: "ارتفع سعر المنتج «%s» منذ إضافته إلى السلة.",
	}
	textPriceFell = locale.Text{
		locale.En: "The price of “%s” has gone down since you added it.",
		locale.Ar: "انخفض سعر المنتج «%s» منذ إضافته إلى السلة.",
	}
	textLowStock = locale.Text{
		locale.En: "Only %s of “%s” are left.",
		locale.Ar: "لم يتبقَّ سوى %s من «%s».",
	}
	textLastOne = locale.Text{
		locale.En: "Only %s of “%s” is left.",
		locale.Ar: "لم يتبقَّ سوى %s من «%s».",
	}
)
