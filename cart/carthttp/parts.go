package carthttp

import (
	"cmp"

	"commerce/auth/bounded"
	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/wire"
)

// lineParts is the JSON that lines have in common if they have the same product, plan, unit price and
// quantity. Only what is between these parts is written for each response.
type lineParts struct{ product, pricing, plan, details wire.Part }

// partsKey is everything that a line's parts depend on. A changed product has another address.
type partsKey struct {
	product  *cart.Product
	plan     *cart.Plan
	unit     cart.Unit
	quantity int64
	language locale.Locale
	currency string
	service  string // URL of the service's own images
}

type partsCache = bounded.Cache[partsKey, *lineParts]

// newPartsCache returns a cache of about 7,000 parts.
func newPartsCache() *partsCache {
	const overhead = 512
	return bounded.New(16<<20, func(key partsKey, l *lineParts) uint32 {
		return uint32(overhead + len(key.service) + l.product.Size() + l.pricing.Size() + l.plan.Size() + l.details.Size())
	})
}

func (w view) partsOf(l *price.Line) *lineParts {
	if l.Product == nil || w.parts == nil {
		return w.writeParts(l)
	}
	key := partsKey{l.Product, l.Plan, l.Unit, l.Quantity, w.Language, w.store.Currency, w.service}
	if parts, ok := w.parts.Get(key); ok {
		return parts
	}
	parts := w.writeParts(l)
	w.parts.Put(key, parts)
	return parts
}

func (w view) writeParts(l *price.Line) *lineParts {
	p := cmp.Or(l.Product, &gone)
	part := func(write func(view)) wire.Part {
		return w.NewPart(func(own *wire.Writer) {
			of := w
			of.Writer = own
			write(of)
		})
	}
	return &lineParts{
		product: part(func(w view) { w.product(l, p) }),
		pricing: part(func(w view) { w.pricing(l) }),
		plan:    part(func(w view) { w.plan(l.Plan) }),
		details: part(func(w view) { w.details(l.ID, p) }),
	}
}

// gone stands in for a product that no longer exists.
var gone = cart.Product{
	Name: locale.Name{Own: cart.TextGone[locale.En], Others: cart.TextGone}, Stock: new(int64), MinQuantity: 1,
}

func (w view) product(l *price.Line, p *cart.Product) {
	w.Number("product_id", l.ID.Product())
	w.Text("name", p.Name.In(w.Language))
	w.Text("slug", p.Slug)
	w.image(p)
	w.Number("quantity", l.Quantity)
	w.amount("unit_price", l.Unit.Total())
	w.amount("total_price", l.Total)
}

func (w view) pricing(l *price.Line) {
	unit := l.Unit
	w.Object("pricing")
	w.amount("base_price", unit.Base)
	w.amount("addons_price", unit.Addons)
	w.amount("subscription_price", unit.Plan)
	w.amount("unit_total", unit.Total())
	w.Object("formatted")
	w.price("base_price", unit.Base)
	w.priceOrNull("addons_price", unit.Addons)
	w.priceOrNull("subscription_price", unit.Plan)
	w.price("unit_total", unit.Total())
	w.price("total_price", l.Total)
	w.EndObject()
	w.EndObject()
}

func (w view) plan(p *cart.Plan) {
	if p == nil {
		w.Null("subscription_plan")
		return
	}
	w.Object("subscription_plan")
	w.Number("id", p.ID)
	w.Text("duration", string(p.Duration))
	w.Text("duration_text", p.Text(w.Language))
	w.Text("duration_text_en", p.Text(locale.En))
	w.amount("price", p.Price)
	w.price("formatted_price", p.Price)
	w.EndObject()
}

func (w view) details(line cart.LineID, p *cart.Product) {
	status := int64(0)
	if p.Active {
		status = 1
	}
	w.Object("product")
	w.Number("id", line.Product())
	w.Text("name", p.Name.In(w.Language))
	w.Text("slug", p.Slug)
	w.Text("type", p.Type)
	w.Number("status", status)
	w.Object("price")
	w.amount("original", max(p.OriginalPrice, p.Price))
	w.amount("actual", p.Price)
	w.price("formatted", p.Price)
	w.Text("currency", w.store.Currency)
	w.EndObject()
	w.Object("stock")
	w.NullableNumber("available", p.Stock)
	w.Bool("unlimited", p.Stock == nil)
	w.Number("min_qty", max(p.MinQuantity, 1))
	w.NullableNumber("max_qty", p.MaxQuantity)
	w.NullableNumber("max_per_cart", p.MaxPerCart)
	w.Number("step", max(p.Step, 1))
	w.EndObject()
	w.image(p)
	w.EndObject()
}
