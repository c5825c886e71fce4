package cart

import (
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/go-faster/jx"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/money"
)

// wire writes what goes to a client. It appends JSON member by member, since this
// is the hottest path of the service.
type wire struct {
	jx.Encoder
	store    *store.Store
	language locale.Locale
	digits   int
	prices   *money.Formatter
}

func newWire(store *store.Store, l locale.Locale, prices *money.Formatter) *wire {
	digits, _ := money.Digits(store.Currency)
	return &wire{store: store, language: l, digits: digits, prices: prices}
}

func (w *wire) member(name string) { w.FieldStart(name) }

func (w *wire) text(name, value string) {
	w.FieldStart(name)
	w.Str(value)
}

// optional writes null for "".
func (w *wire) optional(name, value string) {
	w.FieldStart(name)
	if value == "" {
		w.Null()
		return
	}
	w.Str(value)
}

func (w *wire) number(name string, n int64) {
	w.FieldStart(name)
	w.Int64(n)
}

func (w *wire) nullableNumber(name string, n *int64) {
	w.FieldStart(name)
	if n == nil {
		w.Null()
		return
	}
	w.Int64(*n)
}

// amount writes money as a number in major units, exact to its decimals.
func (w *wire) amount(name string, a money.Amount) {
	var b [24]byte
	w.FieldStart(name)
	w.Raw(money.AppendMajor(b[:0], a, w.digits))
}

// price writes money as a shopper reads it.
func (w *wire) price(name string, a money.Amount) {
	w.text(name, w.prices.Format(a, w.store.Currency, w.language))
}

func (w *wire) priceOrNull(name string, a money.Amount) {
	if a == 0 {
		w.member(name)
		w.Null()
		return
	}
	w.price(name, a)
}

// cart writes the object that every full-cart answer holds, and returns its ETag.
// more adds the summary's members; nil for none.
func (w *wire) cart(p *Priced, token auth.CartToken, m *MergeReport, more func()) (etag string) {
	start := len(w.Bytes())
	w.ObjStart()
	w.optional("cart_token", token.Reveal())
	w.member("items")
	w.ArrStart()
	for i := range p.Lines {
		w.line(&p.Lines[i])
	}
	w.ArrEnd()
	w.number("count", p.Cart.Count())
	w.amount("subtotal", p.Subtotal)
	w.amount("discount_amount", p.Discount)
	w.amount("total", p.Total)
	w.coupon(p)
	w.text("currency", w.store.Currency)
	w.number("version", p.Cart.Version)
	if more != nil {
		more()
	}
	etag = w.etag(&p.Cart, w.Bytes()[start:])
	if m != nil {
		etag += "-merged" // a cache must never show the report again
	}
	w.member("expires_at")
	if p.Cart.ExpiresAt.IsZero() {
		w.Null()
	} else {
		w.Str(p.Cart.ExpiresAt.UTC().Format(time.RFC3339))
	}
	w.merge(m)
	w.ObjEnd()
	return etag
}

func (w *wire) coupon(p *Priced) {
	w.member("coupon")
	if p.Coupon == nil {
		w.Null()
		return
	}
	w.ObjStart()
	w.text("code", p.Coupon.Code)
	w.optional("type", string(p.Coupon.Kind))
	switch p.Coupon.Kind {
	case Percent:
		w.percent("value", p.Coupon.Rate)
	case Fixed:
		w.amount("value", p.Coupon.Amount)
	default:
		w.nullableNumber("value", nil)
	}
	w.amount("discount", p.Discount)
	w.ObjEnd()
}

// percent writes parts per million as percent.
func (w *wire) percent(name string, rate int64) {
	w.member(name)
	w.Raw(money.AppendMajor(nil, money.Amount(rate), 4))
}

// etag names this cart at this version, as it is shown here: all that a client
// sees of it goes into the part after the "-", in every instance alike.
func (w *wire) etag(c *Cart, shown []byte) string {
	id := c.ID
	if id == "" {
		id = "0"
	}
	var d xxhash.Digest
	d.Reset()
	_, _ = d.WriteString(string(w.language))
	_, _ = d.Write(shown)
	return id + "." + strconv.FormatInt(c.Version, 10) + "-" + strconv.FormatUint(d.Sum64(), 36)
}

func (w *wire) line(l *PricedLine) {
	w.ObjStart()
	w.text("id", string(l.ID))
	w.number("product_id", l.ID.Product())
	w.text("name", w.productName(l.Product))
	slug := ""
	if l.Product != nil {
		slug = l.Product.Slug
	}
	w.text("slug", slug)
	w.image(l.Product)
	w.number("quantity", l.Quantity)
	w.amount("unit_price", l.Unit.total())
	w.amount("total_price", l.Total)
	w.pricing(l)
	w.customFields(l)
	w.plan(l.Plan)
	w.optional("notice", l.Notice)
	w.product(l)
	w.member("issue")
	w.issue(l.Issue)
	w.ObjEnd()
}

func (w *wire) productName(p *Product) string {
	if p == nil {
		return goneName.In(w.language)
	}
	return p.Name
}

func (w *wire) image(p *Product) {
	w.member("image")
	if p == nil || p.Image == nil {
		w.Null()
		return
	}
	w.ObjStart()
	w.text("url", p.Image.URL)
	w.text("full_link", p.Image.URL)
	w.text("alt", p.Image.Alt)
	w.text("alt_text", p.Image.Alt)
	w.ObjEnd()
}

func (w *wire) pricing(l *PricedLine) {
	w.member("pricing")
	w.ObjStart()
	w.amount("base_price", l.Unit.Base)
	w.amount("addons_price", l.Unit.Addons)
	w.amount("subscription_price", l.Unit.Plan)
	w.amount("unit_total", l.Unit.total())
	w.member("formatted")
	w.ObjStart()
	w.price("base_price", l.Unit.Base)
	w.priceOrNull("addons_price", l.Unit.Addons)
	w.priceOrNull("subscription_price", l.Unit.Plan)
	w.price("unit_total", l.Unit.total())
	w.price("total_price", l.Total)
	w.ObjEnd()
	w.ObjEnd()
}

// customFields writes the shopper's answers in the merchant's order; those that
// the product no longer asks for come last.
func (w *wire) customFields(l *PricedLine) {
	w.member("custom_fields")
	w.ArrStart()
	if l.Product != nil {
		for i := range l.Product.Fields {
			for _, a := range l.Fields {
				if a.Name == l.Product.Fields[i].Name {
					w.customField(a, l.Product.Fields[i].option(a.Value))
				}
			}
		}
	}
	for _, a := range l.Fields {
		if l.Product == nil || l.Product.field(a.Name) == nil {
			w.customField(a, nil)
		}
	}
	w.ArrEnd()
}

func (w *wire) customField(a FieldValue, o *Option) {
	w.ObjStart()
	w.text("name", a.Name)
	if o == nil {
		w.text("value", a.Value)
		w.optional("option", "")
		w.member("price")
		w.Null()
	} else {
		w.text("value", o.Name)
		w.text("option", o.Code)
		if o.Price == 0 {
			w.member("price")
			w.Null()
		} else {
			w.amount("price", o.Price)
		}
	}
	w.ObjEnd()
}

func (w *wire) plan(p *Plan) {
	w.member("subscription_plan")
	if p == nil {
		w.Null()
		return
	}
	w.ObjStart()
	w.number("id", p.ID)
	w.text("duration", string(p.Duration))
	w.text("duration_text", p.Duration.Label(w.language))
	w.text("duration_text_en", p.Duration.Label(locale.En))
	w.amount("price", p.Price)
	w.price("formatted_price", p.Price)
	w.ObjEnd()
}

// gone stands in for a product that no longer exists.
var gone = Product{Stock: new(int64), MinQuantity: 1}

func (w *wire) product(l *PricedLine) {
	p := l.Product
	if p == nil {
		p = &gone
	}
	status := int64(0)
	if p.Active {
		status = 1
	}
	w.member("product")
	w.ObjStart()
	w.number("id", l.ID.Product())
	w.text("name", w.productName(l.Product))
	w.text("slug", p.Slug)
	w.text("type", p.Type)
	w.number("status", status)
	w.member("price")
	w.ObjStart()
	w.amount("original", p.OriginalPrice)
	w.amount("actual", p.Price)
	w.price("formatted", p.Price)
	w.text("currency", w.store.Currency)
	w.ObjEnd()
	w.member("stock")
	w.ObjStart()
	w.nullableNumber("available", p.Stock)
	w.member("unlimited")
	w.Bool(p.Stock == nil)
	w.number("min_qty", max(p.MinQuantity, 1))
	w.nullableNumber("max_qty", p.MaxQuantity)
	w.ObjEnd()
	w.image(l.Product)
	w.ObjEnd()
}

// issue writes what stands in a line's way; null for nothing.
func (w *wire) issue(i *Issue) {
	if i == nil {
		w.Null()
		return
	}
	w.ObjStart()
	w.text("code", string(i.Code))
	w.text("message", i.fault.text(w.language))
	if i.Available != nil {
		w.number("available", *i.Available)
	}
	w.ObjEnd()
}

// merge writes the report of a merge; nothing when there was none.
func (w *wire) merge(m *MergeReport) {
	if m == nil {
		return
	}
	w.member("merge")
	w.ObjStart()
	w.number("lines", m.Lines)
	w.member("adjusted")
	w.ArrStart()
	for _, a := range m.Adjusted {
		w.ObjStart()
		w.text("item_id", string(a.Line))
		w.number("requested", a.Requested)
		w.number("kept", a.Kept)
		w.text("code", string(a.Code))
		w.ObjEnd()
	}
	w.ArrEnd()
	w.optional("code", string(m.Code))
	w.ObjEnd()
}

// summary writes what the summary shows beyond the cart. Digital goods: nothing is
// ever shipped.
func (w *wire) summary(p *Priced) {
	w.member("payment_methods")
	w.ArrStart()
	for _, m := range w.store.PaymentMethods {
		w.ObjStart()
		w.text("id", m.ID)
		w.text("name", m.Name.In(w.language))
		w.optional("icon", m.Icon)
		w.member("enabled")
		w.Bool(m.Enabled)
		w.ObjEnd()
	}
	w.ArrEnd()
	w.member("shipping")
	w.ObjStart()
	w.member("required")
	w.Bool(false)
	w.number("cost", 0)
	w.ObjEnd()
	w.amount("discount", p.Discount)
	w.member("tax")
	w.ObjStart()
	w.percent("rate", w.store.TaxRate)
	w.amount("amount", p.Tax)
	w.member("included")
	w.Bool(w.store.PricesIncludeTax)
	w.ObjEnd()
}

// count writes the answer of GET /cart/count.
func (w *wire) count(quantity, lines int64, token auth.CartToken, m *MergeReport) {
	w.ObjStart()
	w.number("count", quantity)
	w.number("lines", lines)
	w.optional("cart_token", token.Reveal())
	w.merge(m)
	w.ObjEnd()
}

// validation writes the answer of GET /cart/validate, valid or not.
func (w *wire) validation(v *Validation, m *MergeReport) {
	w.ObjStart()
	w.member("valid")
	w.Bool(v.Valid())
	w.member("errors")
	w.ArrStart()
	for _, i := range v.Issues {
		w.Str(i.fault.text(w.language))
	}
	w.ArrEnd()
	w.lineIssues("issues", v.Issues)
	w.lineIssues("warnings", v.Warnings)
	w.merge(m)
	w.ObjEnd()
}

func (w *wire) lineIssues(name string, issues []LineIssue) {
	w.member(name)
	w.ArrStart()
	for _, i := range issues {
		w.ObjStart()
		if i.Line == nil {
			w.optional("item_id", "")
			w.nullableNumber("product_id", nil)
		} else {
			w.text("item_id", string(i.Line.ID))
			w.number("product_id", i.Line.ID.Product())
		}
		w.text("code", string(i.Code))
		w.text("message", i.fault.text(w.language))
		w.number("requested", i.Requested)
		w.nullableNumber("available", i.Available)
		w.ObjEnd()
	}
	w.ArrEnd()
}
