package carthttp

import (
	"cmp"
	"maps"
	"slices"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/price"
	"commerce/cart/service"
	"commerce/cart/wire"
)

type view struct {
	*wire.Writer
	store  *store.Store
	digits int // decimals of the store's currency

	origin, path, service string // for images: the URL in front of the service's path, the path, and both

	parts *partsCache // nil: each line's are written

	textless bool // leaves out the texts of the shopper, except for coupons
}

func newView(w *wire.Writer, s *store.Store, origin, path string, parts *partsCache) view {
	digits, _ := money.Digits(s.Currency) // a store in an unknown currency is not served
	return view{w, s, digits, origin, path, origin + path, parts, false}
}

func (w view) amount(name string, a money.Amount) { w.Amount(name, a, w.digits) }

func (w view) price(name string, a money.Amount) { w.Price(name, a, w.store.Currency) }

func (w view) priceOrNull(name string, a money.Amount) {
	if a == 0 {
		w.Null(name)
		return
	}
	w.price(name, a)
}

// cart writes the object that every response with a full cart contains.
func (w view) cart(p *price.Priced, token auth.CartToken, m *cart.MergeReport) {
	w.changedCart(p, token, &service.Changed{}, m, nil)
}

// changedCart writes the response of a change: the cart, what c has beside it, and what more writes. An Item of "" is null.
func (w view) changedCart(p *price.Priced, token auth.CartToken, c *service.Changed, m *cart.MergeReport, more func(*wire.Writer)) {
	w.BeginObject()
	w.members(p, token, m)
	w.rest(p)
	if c.Item != nil {
		w.Optional("item_id", string(*c.Item))
	}
	w.replaced(c.Replaced)
	if c.Ops != nil {
		w.outcomes(c.Ops)
	}
	if more != nil {
		more(w.Writer)
	}
	w.EndObject()
}

// members writes what the cart's ETag covers.
func (w view) members(p *price.Priced, token auth.CartToken, m *cart.MergeReport) {
	w.Optional("cart_token", token.Reveal())
	w.Array("items")
	for i := range p.Lines {
		w.line(&p.Lines[i])
	}
	w.EndArray()
	w.Number("count", p.Cart.Count())
	w.amount("subtotal", p.Subtotal)
	w.amount("discount_amount", p.Discount)
	w.amount("tax_amount", p.Tax)
	w.amount("total", p.Total)
	w.coupons(p)
	w.buyer(p.Cart.Buyer)
	w.metadata(p.Cart.Metadata)
	w.Text("currency", w.store.Currency)
	w.Number("version", p.Cart.Version)
	if m == nil {
		w.Null("merge")
	}
	w.merge(m)
	w.lineIssues("warnings", price.Warnings(p))
}

// rest writes what the cart's ETag does not cover.
func (w view) rest(p *price.Priced) {
	w.EndOfView()
	if p.Cart.ExpiresAt.IsZero() {
		w.Null("expires_at")
	} else {
		w.Time("expires_at", p.Cart.ExpiresAt, wire.RFC3339)
	}
}

// coupons writes the coupons of the cart's codes, the oldest also alone, and what takes something off.
func (w view) coupons(p *price.Priced) {
	if len(p.Coupons) == 0 {
		w.Null("coupon")
	} else {
		w.Object("coupon")
		w.coupon(&p.Coupons[0])
	}
	w.Array("coupons")
	for i := range p.Coupons {
		w.BeginObject()
		w.coupon(&p.Coupons[i])
	}
	w.EndArray()
	w.Array("discounts")
	for i := range p.Discounts {
		w.discount(p, &p.Discounts[i])
	}
	w.EndArray()
	w.Array("offers")
	for _, o := range p.Offers {
		w.BeginObject()
		w.Text("name", o.Title(w.Language))
		if o.Amount > 0 {
			w.amount("missing_amount", o.Amount)
		} else {
			w.Number("missing_quantity", o.Quantity)
		}
		w.EndObject()
	}
	w.EndArray()
}

// coupon writes the members of a coupon, and ends its object.
func (w view) coupon(c *price.AppliedCoupon) {
	w.Text("code", c.Code)
	w.Optional("type", string(c.Kind))
	switch c.Kind {
	case price.Percent:
		w.Percent("value", c.Rate)
	case price.Fixed:
		w.amount("value", c.Amount)
	default:
		w.Null("value")
	}
	w.amount("discount", c.Discount)
	w.couponIssue(c.Issue)
	w.EndObject()
}

func (w view) discount(p *price.Priced, d *price.Discount) {
	w.BeginObject()
	w.Text("id", d.Code)
	if d.Automatic {
		w.Null("code")
	} else {
		w.Text("code", d.Code)
	}
	w.Text("name", d.Title(w.Language))
	w.Bool("automatic", d.Automatic)
	w.amount("amount", d.Amount)
	w.Array("lines")
	for i, part := range d.Lines {
		if part > 0 {
			w.BeginObject()
			w.Text("item_id", string(p.Lines[i].ID))
			w.amount("amount", part)
			w.EndObject()
		}
	}
	w.EndArray()
	w.EndObject()
}

// replaced writes the codes that left for another one; nothing for a change that adds none.
func (w view) replaced(codes *[]string) {
	if codes == nil {
		return
	}
	w.Array("replaced")
	for _, code := range *codes {
		w.Element(code)
	}
	w.EndArray()
}

func (w view) buyer(b cart.Buyer) {
	w.Object("buyer")
	w.Optional("country", b.Country)
	w.Optional("source", string(b.Source))
	w.EndObject()
}

func (w view) couponIssue(i *price.CouponIssue) {
	if i == nil {
		w.Null("issue")
		return
	}
	w.Object("issue")
	w.Text("code", string(i.Code()))
	w.Text("reason", string(i.Reason))
	w.Text("message", i.Sentence.In(w.Language))
	w.EndObject()
}

func (w view) line(l *price.Line) {
	parts := w.partsOf(l)
	w.BeginObject()
	w.Text("id", string(l.ID))
	w.Part(&parts.product)
	w.amount("added_price", l.AddedPrice)
	w.amount("discount", l.Discount)
	w.Part(&parts.pricing)
	answers, notice := l.Fields, l.Notice
	if w.textless {
		answers, notice = nil, ""
	}
	w.customFields(answers, cmp.Or(l.Product, &gone))
	w.Part(&parts.plan)
	w.Optional("notice", notice)
	w.metadata(l.Metadata)
	w.Part(&parts.details)
	w.issue(l.Issue)
	w.EndObject()
}

// image writes a product's image. The ETag does not cover full_link, which follows from url and the
// host that the client calls.
func (w view) image(p *cart.Product) {
	if p.Image == nil {
		w.Null("image")
		return
	}
	w.Object("image")
	url, link := p.Image.Links(w.origin, w.path)
	w.Text("url", url)
	since := len(w.Bytes())
	w.Text("full_link", link)
	w.LeaveOut(since)
	w.Text("alt", p.Image.Alt)
	w.Text("alt_text", p.Image.Alt)
	w.EndObject()
}

// customFields writes the shopper's answers in the merchant's order. Answers to fields that
// the product no longer has come last.
func (w view) customFields(answers []cart.FieldValue, p *cart.Product) {
	w.Array("custom_fields")
	for i := range p.Fields {
		for _, a := range answers {
			if a.Name == p.Fields[i].Name {
				w.customField(a, p.Fields[i].Option(a.Value))
			}
		}
	}
	for _, a := range answers {
		if p.Field(a.Name) == nil {
			w.customField(a, nil)
		}
	}
	w.EndArray()
}

func (w view) customField(a cart.FieldValue, o *cart.Option) {
	w.BeginObject()
	w.Text("name", a.Name)
	if o == nil {
		o = &cart.Option{Name: locale.Named(a.Value)}
	}
	w.Text("value", o.Name.In(w.Language))
	w.Optional("option", o.Code)
	if o.Price == 0 {
		w.Null("price")
	} else {
		w.amount("price", o.Price)
	}
	w.EndObject()
}

func (w view) issue(i *cart.Issue) {
	if i == nil {
		w.Null("issue")
		return
	}
	w.Object("issue")
	w.Text("code", string(i.Code))
	w.Text("message", i.Sentence.In(w.Language))
	if i.Available != nil {
		w.Number("available", *i.Available)
	}
	w.fix(i.Fix)
	w.EndObject()
}

func (w view) fix(f *cart.Fix) {
	if f == nil {
		w.Null("fix")
		return
	}
	op := "edit"
	if f.Remove {
		op = "remove"
	}
	w.Object("fix")
	w.Text("op", op)
	w.Text("item", string(f.Line))
	if f.Quantity > 0 {
		w.Number("quantity", f.Quantity)
	}
	if f.Price != nil {
		w.Number("accept_price", int64(*f.Price))
	}
	w.EndObject()
}

func (w view) merge(m *cart.MergeReport) {
	if m == nil {
		return
	}
	w.Object("merge")
	w.Text("id", m.ID)
	w.Time("at", m.At, wire.RFC3339)
	w.Number("lines", m.Lines)
	w.adjusted(m.Adjusted)
	w.Optional("code", string(m.Code))
	w.EndObject()
}

func (w view) adjusted(all []cart.Adjustment) {
	w.Array("adjusted")
	for _, a := range all {
		w.BeginObject()
		w.Text("item_id", string(a.Line))
		w.Number("requested", a.Requested)
		w.Number("kept", a.Kept)
		w.Text("code", string(a.Code))
		w.EndObject()
	}
	w.EndArray()
}

func (w view) metadata(m cart.Metadata) {
	w.Object("metadata")
	if len(m) > 0 && !w.textless {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			w.Text(name, m[name])
		}
	}
	w.EndObject()
}

// refusal writes the data of an error response: which operation of a list was refused, nil for none,
// why a coupon was refused, "" for another error, and the report of a merge.
func (w view) refusal(op *int64, reason price.CouponReason, m *cart.MergeReport) {
	w.BeginObject()
	if op != nil {
		w.Number("op", *op)
	}
	if reason != "" {
		w.Text("reason", string(reason))
	}
	w.merge(m)
	w.EndObject()
}

// summary writes the cart and more. shipping is always free, since goods are digital.
func (w view) summary(p *price.Priced, token auth.CartToken, m *cart.MergeReport) {
	w.BeginObject()
	w.members(p, token, m)
	w.paymentMethods()
	w.Object("shipping")
	w.Bool("required", false)
	w.Number("cost", 0)
	w.EndObject()
	w.amount("discount", p.Discount)
	w.tax(p)
	w.Bool("payment_required", p.Total > 0)
	w.rest(p)
	w.EndObject()
}

// tax writes the tax, also by rate, and whose it is. A cart without lines has the standard rate.
func (w view) tax(p *price.Priced) {
	w.Object("tax")
	country := p.Cart.Buyer.Country
	switch len(p.TaxLines) {
	case 0:
		w.Percent("rate", w.store.StandardRate(country))
	case 1:
		w.Percent("rate", p.TaxLines[0].Rate)
	default:
		w.Null("rate")
	}
	w.amount("amount", p.Tax)
	w.Bool("included", w.store.PricesIncludeTax)
	if !w.store.Abroad(country) {
		country = w.store.Country
	}
	w.Optional("country", country)
	w.Array("lines")
	for _, line := range p.TaxLines {
		w.BeginObject()
		w.Percent("rate", line.Rate)
		w.amount("base", line.Base)
		w.amount("amount", line.Amount)
		w.EndObject()
	}
	w.EndArray()
	w.EndObject()
}

func (w view) paymentMethods() {
	w.Array("payment_methods")
	for _, m := range w.store.PaymentMethods {
		w.BeginObject()
		w.Text("id", m.ID)
		w.Text("name", m.Name.In(w.Language))
		w.Optional("icon", m.Icon)
		w.Bool("enabled", m.Enabled)
		w.EndObject()
	}
	w.EndArray()
}

func (w view) count(quantity, lines int64, token auth.CartToken, m *cart.MergeReport) {
	w.BeginObject()
	w.Number("count", quantity)
	w.Number("lines", lines)
	w.Optional("cart_token", token.Reveal())
	w.merge(m)
	w.EndObject()
}

func (w view) validation(v *price.Validation, m *cart.MergeReport) {
	w.BeginObject()
	w.Bool("valid", v.Valid())
	w.Array("errors")
	for _, i := range v.Issues {
		w.Element(i.Sentence.In(w.Language))
	}
	w.EndArray()
	w.lineIssues("issues", v.Issues)
	w.lineIssues("warnings", v.Warnings)
	w.merge(m)
	w.EndObject()
}

func (w view) lineIssues(name string, issues []price.LineIssue) {
	w.Array(name)
	for _, i := range issues {
		w.BeginObject()
		if i.Line == nil {
			w.Null("item_id")
			w.Null("product_id")
		} else {
			w.Text("item_id", string(i.Line.ID))
			w.Number("product_id", i.Line.ID.Product())
		}
		w.Text("code", string(i.Code))
		w.Text("message", i.Sentence.In(w.Language))
		w.Number("requested", i.Requested)
		w.NullableNumber("available", i.Available)
		w.fix(i.Fix)
		w.EndObject()
	}
	w.EndArray()
}
