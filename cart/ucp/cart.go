package ucp

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/price"
	"commerce/cart/ucp/agent"
	"commerce/cart/wire"
)

func (c *call) writer() *wire.Writer { return wire.NewWriter(nil, c.language, nil) }

// writeMetadata writes the member ucp: the release, the status and the capabilities that are active.
func (c *call) writeMetadata(w *wire.Writer, status string) {
	w.Object("ucp")
	w.Text("version", c.release.version)
	w.Text("status", status)
	w.Object("capabilities")
	for _, name := range []string{cartCapability, discountCapability} {
		if active, ok := c.active[name]; ok {
			w.Array(name)
			w.BeginObject()
			w.Text("version", active.Version)
			w.EndObject()
			w.EndArray()
		}
	}
	w.EndObject()
	w.EndObject()
}

func (c *call) discounts() bool {
	_, ok := c.active[discountCapability]
	return ok
}

// show returns the result with a cart. It never shows the texts of fields, notices or metadata, which a person
// wrote for the merchant.
func (c *call) show(v *agent.Visit, shown *agent.Cart, read request, first ...message) result {
	p := &shown.Priced
	for _, i := range shown.Unknown {
		read.warnings = append(read.warnings, message{code: "line_id_unknown", path: itemPath(i) + ".id", content: textNoLineID.With()})
	}
	messages := slices.Concat(first, read.warnings, faultMessages(shown.Faults, false), c.messagesOf(p, read))
	if shown.Moved {
		messages = slices.Insert(messages, 0, message{code: "cart_moved", content: textMoved.With()})
	}
	w := c.writer()
	w.BeginObject()
	c.writeMetadata(w, "success")
	w.Text("id", shown.ID)
	w.Array("line_items")
	shownID := c.api.agents.ShownIDs(*shown)
	for i := range p.Lines {
		c.writeLine(w, shownID(p.Lines[i].ID), &p.Lines[i])
	}
	w.EndArray()
	w.Text("currency", c.caller.Store.Currency)
	c.writeTotals(w, p)
	if c.discounts() {
		writeDiscounts(w, p, read.codes)
	}
	writeMessages(w, messages)
	w.EndOfView()
	if page := c.continueURL(v, p); page != "" {
		w.Text("continue_url", page)
	}
	if !p.Cart.ExpiresAt.IsZero() && c.operation != cancel {
		w.Time("expires_at", p.Cart.ExpiresAt, wire.RFC3339)
	}
	w.EndObject()
	return result{status: http.StatusOK, tag: w.ETag(p.Cart.Tag()), body: w.Bytes()}
}

// continueURL returns where a person can go on with the cart, if it can be handed over; "" for nowhere.
func (c *call) continueURL(v *agent.Visit, p *price.Priced) string {
	if c.caller.Store.CartURL == "" || len(p.Lines) == 0 || c.operation == cancel {
		return c.caller.Store.CartURL
	}
	return c.api.agents.HandoverOf(v, p.Cart).URL
}

func (c *call) writeLine(w *wire.Writer, id string, l *price.Line) {
	w.BeginObject()
	w.Text("id", id)
	w.Object("item")
	w.Text("id", l.ID.Item())
	w.Text("title", titleOf(l, w.Language))
	w.Number("price", int64(l.Unit.Total()))
	if l.Product != nil && l.Product.Image != nil {
		if image := c.imageURL(l.Product.Image.URL); image != "" {
			w.Text("image_url", image)
		}
	}
	w.EndObject()
	w.Number("quantity", l.Quantity)
	w.Array("totals")
	writeTotal(w, "subtotal", nil, l.Total)
	writeTotal(w, "items_discount", nil, -l.Discount)
	writeTotal(w, "total", nil, l.Total-l.Discount)
	w.EndArray()
	w.EndObject()
}

func titleOf(l *price.Line, language locale.Locale) string {
	if l.Product == nil {
		return cart.TextGone.In(language)
	}
	title := l.Product.Name.In(language)
	if l.Plan != nil {
		title += " – " + l.Plan.Text(language)
	}
	return title
}

// imageURL returns an absolute URL in the characters that URIs have; "" for none.
func (c *call) imageURL(image string) string {
	origin := c.api.Origin(c.Request)
	switch {
	case strings.HasPrefix(image, "//"):
		scheme, _, _ := strings.Cut(origin, "//")
		image = scheme + image
	case strings.HasPrefix(image, "/"):
		image = origin + c.api.BasePath + image
	}
	parsed, err := url.Parse(image)
	if err != nil || !parsed.IsAbs() {
		return ""
	}
	return parsed.String()
}

// writeTotals writes what the cart costs. The entries before the total sum to it.
func (c *call) writeTotals(w *wire.Writer, p *price.Priced) {
	w.Array("totals")
	writeTotal(w, "subtotal", textSubtotal, p.Subtotal)
	writeTotal(w, "items_discount", textDiscount, -p.Discount)
	if !c.caller.Store.PricesIncludeTax {
		for _, t := range p.TaxLines {
			writeTotal(w, "tax", textTax, t.Amount)
		}
	}
	writeTotal(w, "total", textTotal, p.Total)
	w.EndArray()
}

// writeTotal writes one entry of totals; none for a discount or a tax of 0.
func writeTotal(w *wire.Writer, kind string, text locale.Text, amount money.Amount) {
	if amount == 0 && (kind == "items_discount" || kind == "tax") {
		return
	}
	w.BeginObject()
	w.Text("type", kind)
	if text != nil {
		w.Text("display_text", text.In(w.Language))
	}
	w.Number("amount", int64(amount))
	w.EndObject()
}

func writeDiscounts(w *wire.Writer, p *price.Priced, codes []jsontext.Value) {
	w.Object("discounts")
	w.Array("codes")
	for _, code := range codes {
		w.Value(code)
	}
	if codes == nil {
		for _, code := range p.Coupons {
			w.Element(code.Code)
		}
	}
	w.EndArray()
	w.Array("applied")
	for i := range p.Discounts {
		writeDiscount(w, &p.Discounts[i])
	}
	w.EndArray()
	w.EndObject()
}

func writeDiscount(w *wire.Writer, d *price.Discount) {
	w.BeginObject()
	title := d.Name.In(w.Language)
	if !d.Automatic {
		w.Text("code", d.Code)
		title = cmp.Or(title, textCoupon.With(d.Code).In(w.Language))
	}
	w.Text("title", cmp.Or(title, d.Code))
	w.Number("amount", int64(d.Amount))
	if d.Automatic {
		w.Bool("automatic", true)
	}
	w.Text("method", "across")
	w.Array("allocations")
	for i, part := range d.Lines {
		if part != 0 {
			w.BeginObject()
			w.Text("path", itemPath(i))
			w.Number("amount", int64(part))
			w.EndObject()
		}
	}
	w.EndArray()
	w.EndObject()
}

var (
	textSubtotal = locale.Text{locale.En: "Subtotal", locale.Ar: "المجموع الفرعي"}
	textDiscount = locale.Text{locale.En: "Discount", locale.Ar: "الخصم"}
	textTax      = locale.Text{locale.En: "Tax", locale.Ar: "الضريبة"}
	textTotal    = locale.Text{locale.En: "Total", locale.Ar: "الإجمالي"}
	textCoupon   = locale.Text{locale.En: "Coupon %s", locale.Ar: "القسيمة %s"}
	textNoLineID = locale.Text{
		locale.En: "No line of this cart has had this id, so it was ignored.",
		locale.Ar: "لم يحمل أي بند في هذه السلة هذا المعرّف، لذلك تم تجاهله.",
	}
	textMoved = locale.Text{
		locale.En: "The shopper has taken this cart over, and continues without you. What you add now goes into a new cart.",
		locale.Ar: "تسلّم المتسوق هذه السلة ويتابع من دونك. ما تضيفه الآن يدخل في سلة جديدة.",
	}
)
