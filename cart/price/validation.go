package price

import (
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
)

// Validation says whether a cart can be checked out now.
type Validation struct {
	Issues   []LineIssue // empty for a valid cart
	Warnings []LineIssue
}

// LineIssue is an issue or warning of a line; of the whole cart if that is nil.
type LineIssue struct {
	Line *Line
	cart.Issue
}

// Valid reports whether the cart can be checked out.
func (v *Validation) Valid() bool { return len(v.Issues) == 0 }

func Validate(p *Priced) Validation {
	v := Validation{Warnings: Warnings(p)}
	if len(p.Lines) == 0 {
		v.Issues = []LineIssue{{Issue: cart.Issue{Code: problem.CartEmpty, Sentence: cart.ErrEmpty.Faults[0].Sentence}}}
	}
	for i := range p.Lines {
		l := &p.Lines[i]
		if l.Issue != nil {
			v.Issues = append(v.Issues, LineIssue{Line: l, Issue: *l.Issue})
		}
	}
	return v
}

func Warnings(p *Priced) []LineIssue {
	var warnings []LineIssue
	for i := range p.Lines {
		l := &p.Lines[i]
		for _, w := range warningsOf(l) {
			warnings = append(warnings, LineIssue{Line: l, Issue: w})
		}
	}
	for i := range p.Coupons {
		if issue := p.Coupons[i].Issue; issue != nil {
			warnings = append(warnings, LineIssue{Issue: cart.Issue{Code: problem.CouponInvalid, Sentence: issue.Sentence}})
		}
	}
	return warnings
}

// lowStock is the highest stock at which the shopper gets a warning.
const lowStock = 5

// priceChanged reports whether the unit price has changed since the line was added. A line whose
// plan or option is gone costs less, but its price has not gone down.
func (l *Line) priceChanged() bool {
	return l.Product != nil && l.Unit.Total() != l.AddedPrice && l.LostPart(l.Product) == nil
}

// warningsOf lists the warnings of a line. A line with an issue gets no warning about low
// stock. The fix of an issue accepts a changed price too.
func warningsOf(l *Line) []cart.Issue {
	p := l.Product
	if p == nil {
		return nil
	}
	var warnings []cart.Issue
	if l.priceChanged() {
		unit, text := l.Unit.Total(), textPriceRose
		if unit < l.AddedPrice {
			text = textPriceFell
		}
		w := cart.Issue{Code: problem.PriceChanged, Requested: l.Quantity, Sentence: text.With(p.Name)}
		if l.Issue == nil || l.Issue.Fix == nil {
			w.Fix = &cart.Fix{Line: l.ID, Price: &unit}
		}
		warnings = append(warnings, w)
	}
	if l.Issue == nil && p.Stock != nil && *p.Stock <= lowStock {
		text := textLowStock
		if *p.Stock == 1 {
			text = textLastOne
		}
		warnings = append(warnings, cart.Issue{
			Code: cart.LowStock, Requested: l.Quantity, Available: p.Stock, Sentence: text.With(cart.Units.Of(*p.Stock), p.Name),
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
