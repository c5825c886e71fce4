package cart

import (
	"commerce/auth/locale"
	"commerce/auth/problem"
)

// Validation says whether a cart can be checked out now.
type Validation struct {
	Issues   []LineIssue // empty for a valid cart
	Warnings []LineIssue
}

// LineIssue is an issue or warning of a line; of the whole cart if that is nil.
type LineIssue struct {
	Line *PricedLine
	Issue
}

// Valid reports whether the cart can be checked out.
func (v *Validation) Valid() bool { return len(v.Issues) == 0 }

func Validate(p *Priced) Validation {
	v := Validation{Warnings: Warnings(p)}
	if len(p.Lines) == 0 {
		v.Issues = []LineIssue{{Issue: Issue{Code: problem.CartEmpty, Sentence: textCartEmpty.With()}}}
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
			warnings = append(warnings, LineIssue{Issue: Issue{Code: problem.CouponInvalid, Sentence: issue.Sentence}})
		}
	}
	return warnings
}

var textCartEmpty = locale.Text{
	locale.En: "The cart is empty.",
	locale.Ar: "السلة فارغة.",
}

// Why a cart is not given away, and why a code opens nothing. ErrNoCode does not tell whether a code is used
// up, expired, deleted, of another store, or no code at all.
var (
	ErrEmpty  = problem.New(problem.CartEmpty, "", textCartEmpty)
	ErrNoCode = problem.New(problem.NotFound, "code", locale.Text{
		locale.En: "This link is no longer valid. Please ask for a new one.",
		locale.Ar: "لم يعد هذا الرابط صالحًا. يُرجى طلب رابط جديد.",
	})
)
