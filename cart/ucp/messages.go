package ucp

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/money"
	"commerce/cart/price"
	"commerce/cart/ucp/agent"
	"commerce/cart/wire"
)

type severity string

const (
	recoverable   severity = "recoverable"
	needsBuyer    severity = "requires_buyer_input"
	unrecoverable severity = "unrecoverable"
)

// message is one message of a response: an error if it has a severity.
type message struct {
	kind     string // without a severity; "" for a warning
	code     problem.Code
	severity severity
	path     string // JSONPath (RFC 9535); "" for the cart as a whole
	content  locale.Sentence
}

func (m *message) write(w *wire.Writer) {
	kind := cmp.Or(m.kind, "warning")
	if m.severity != "" {
		kind = "error"
	}
	w.BeginObject()
	w.Text("type", kind)
	w.Text("code", string(m.code))
	if m.path != "" {
		w.Text("path", m.path)
	}
	w.Text("content", m.content.In(w.Language))
	if m.severity != "" {
		w.Text("severity", string(m.severity))
	}
	w.EndObject()
}

func writeMessages(w *wire.Writer, all []message) {
	if len(all) == 0 {
		return
	}
	w.Array("messages")
	for i := range all {
		all[i].write(w)
	}
	w.EndArray()
}

func itemPath(i int) string { return fmt.Sprintf("$.line_items[%d]", i) }

// codeOf returns the protocol's code for one of ours, or ours if the protocol has none.
func codeOf(code problem.Code) problem.Code {
	if code == problem.ProductNotFound || code == problem.ProductInactive {
		return "item_unavailable"
	}
	return code
}

func severityOf(code problem.Code) severity {
	if code == problem.FieldMissing || code == problem.FieldInvalid {
		return needsBuyer
	}
	return recoverable
}

// faultMessages returns the messages about what could not be applied of a request. Their paths are those of the
// request. nothing reports whether there is no cart to act on.
func faultMessages(faults []agent.Fault, nothing bool) (all []message) {
	for _, f := range faults {
		m := message{code: codeOf(f.Problem.Code), severity: severityOf(f.Problem.Code), content: f.Problem.Faults[0].Sentence}
		switch {
		case f.Code >= 0:
			reason, _ := f.Problem.Data.(price.CouponReason)
			m.code, m.severity, m.path = couponCode(f.Problem.Code, reason), "", codePath(f.Code)
		case f.Element >= 0:
			m.path = itemPath(f.Element)
			if member := f.Problem.Faults[0].Member; member == "quantity" {
				m.path += "." + member
			}
		}
		if nothing && m.severity == recoverable {
			m.severity = unrecoverable
		}
		all = append(all, m)
	}
	return all
}

func codePath(i int) string { return fmt.Sprintf("$.discounts.codes[%d]", i) }

// couponCode returns the protocol's code for a coupon that takes nothing off, or ours if it has none.
func couponCode(code problem.Code, reason price.CouponReason) problem.Code {
	switch reason {
	case price.CouponExpired:
		return "discount_code_expired"
	case price.CouponGone, price.CouponNotStarted, price.CouponTooMany:
		return "discount_code_invalid"
	case price.CouponNotCombined:
		return "discount_code_combination_disallowed"
	}
	return code
}

func (c *call) messagesOf(p *price.Priced, read request) (all []message) {
	for i := range p.Lines {
		if issue := p.Lines[i].Issue; issue != nil {
			all = append(all, message{code: codeOf(issue.Code), severity: severityOf(issue.Code), path: itemPath(i), content: issue.Sentence})
		}
	}
	for _, w := range price.Warnings(p) {
		if w.Line != nil {
			at := slices.IndexFunc(p.Lines, func(l price.Line) bool { return l.ID == w.Line.ID })
			all = append(all, message{code: w.Code, path: itemPath(at), content: w.Sentence})
		}
	}
	for i := range p.Coupons {
		if issue := p.Coupons[i].Issue; issue != nil && c.discounts() {
			all = append(all, message{code: couponCode(issue.Code(), issue.Reason), path: codePath(read.placeOf(i, p.Coupons[i].Code)), content: issue.Sentence})
		}
	}
	if store := c.caller.Store; store.PricesIncludeTax && p.Tax > 0 {
		all = append(all, message{kind: "info", code: "tax_included", path: "$.totals", content: textTaxIncluded.With(money.Price{Amount: p.Tax, Currency: store.Currency})})
	}
	return all
}

// refused returns the result of a call that found or made no cart.
func (c *call) refused(messages ...message) result {
	w := c.writer()
	w.BeginObject()
	c.writeMetadata(w, "error")
	writeMessages(w, messages)
	if url := c.caller.Store.CartURL; url != "" {
		w.Text("continue_url", url)
	}
	w.EndObject()
	return result{status: http.StatusOK, body: w.Bytes()}
}

func (c *call) notFound() result {
	return c.refused(message{code: problem.NotFound, severity: unrecoverable, content: agent.ErrNoCart.Faults[0].Sentence})
}

var textTaxIncluded = locale.Text{
	locale.En: "The prices include %s of tax.",
	locale.Ar: "تشمل الأسعار ضريبة قدرها %s.",
}
