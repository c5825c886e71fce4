package cart

import (
	"strings"

	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/cart/period"
)

// Product is one product of a store's catalog. A *Product is shared between requests:
// do not change it.
type Product struct {
	ID            int64
	Name          locale.Name
	Slug          string
	Type          string // passed through: digital, subscription, course, …
	Active        bool   // sold now
	Price         money.Amount
	OriginalPrice money.Amount // before a reduction; at most Price when there is none
	Stock         *int64       // nil: unlimited
	MinQuantity   int64        // of one line; at least 1
	MaxQuantity   *int64       // of one line; nil: only the service's own limit
	Step          int64        // a line's quantity is MinQuantity plus a multiple of it; 0 and 1: any
	MaxPerCart    *int64       // of all lines of the product; nil: no limit
	TaxRate       *int64       // parts per million; nil: the store's rate
	TaxClass      string       // "" is store.StandardTax
	Image         *Image       // nil: none
	Plans         []Plan       // a product with plans is bought by choosing one
	Fields        []Field      // in the merchant's order, which gives each its position
}

// TextGone is shown instead of the name of a product that no longer exists.
var TextGone = locale.Text{locale.En: "No longer available", locale.Ar: "لم يعد متوفرًا"}

// Image is a picture of a product. Alt is its alternative text.
type Image struct {
	URL string
	Alt string
}

// Links returns the URL as the catalog has it, and absolute. A path is one of this service, which is at path
// of origin.
func (i *Image) Links(origin, path string) (shown, absolute string) {
	switch {
	case strings.HasPrefix(i.URL, "//"):
		scheme, _, _ := strings.Cut(origin, "//")
		return i.URL, scheme + i.URL
	case strings.HasPrefix(i.URL, "/"):
		return path + i.URL, origin + path + i.URL
	}
	return i.URL, i.URL
}

// Plan is a billing period of a subscription. Its price is added to the product's own.
type Plan struct {
	ID       int64
	Duration period.Duration
	Price    money.Amount
	Label    locale.Name // shown for the duration; zero: the duration's own label
	Retired  bool        // no longer sold; lines that have it keep it, with an issue
}

// Text returns what to show for the plan's duration.
func (p *Plan) Text(l locale.Locale) string {
	if p.Label.Own == "" {
		return p.Duration.Label(l)
	}
	return p.Label.In(l)
}

// Field is a question that the shopper answers when adding the product: with free text,
// or with one of Options when there are any.
type Field struct {
	Name     string
	Required bool
	Options  []Option
}

// Option is one choice of a select field; Price is its surcharge on the unit
// price, 0 for none.
type Option struct {
	Code  string
	Name  locale.Name
	Price money.Amount
}

// Plan finds a plan by ID; nil when the product does not have it.
func (p *Product) Plan(id int64) *Plan {
	return find(p.Plans, func(plan *Plan) bool { return plan.ID == id })
}

// Field finds a field by name; nil when the product does not have it.
func (p *Product) Field(name string) *Field {
	return find(p.Fields, func(f *Field) bool { return f.Name == name })
}

// Option finds an option by code, as the catalog spells it or in normal form; nil when the
// field does not have it, or is nil.
func (f *Field) Option(code string) *Option {
	if f == nil {
		return nil
	}
	if i := spelled(f.Options, func(o *Option) string { return o.Code }, code); i >= 0 {
		return &f.Options[i]
	}
	return nil
}

// Unit is the price of one piece of a line, by its parts.
type Unit struct {
	Base   money.Amount // the product's price now
	Addons money.Amount // surcharges of the chosen options
	Plan   money.Amount
}

func (u Unit) Total() money.Amount { return u.Base + u.Addons + u.Plan }

// UnitPrice prices one piece. A nil plan is no plan. Answers to fields or options that no
// longer exist cost nothing; their line has an issue.
func (p *Product) UnitPrice(plan *Plan, fields []FieldValue) Unit {
	u := Unit{Base: p.Price}
	for _, a := range fields {
		if o := p.Field(a.Name).Option(a.Value); o != nil {
			u.Addons += o.Price
		}
	}
	if plan != nil {
		u.Plan = plan.Price
	}
	return u
}

// spelled finds a text as the catalog spells it or in normal form; -1 if there is none.
func spelled[T any](all []T, text func(*T) string, given string) int {
	longest := 0
	for i := range all {
		if text(&all[i]) == given {
			return i
		}
		longest = max(longest, len(text(&all[i])))
	}
	if exceeds(given, longest) {
		return -1
	}
	normal := NormalText(given)
	for i := range all {
		if NormalText(text(&all[i])) == normal {
			return i
		}
	}
	return -1
}

func find[T any](all []T, has func(*T) bool) *T {
	for i := range all {
		if has(&all[i]) {
			return &all[i]
		}
	}
	return nil
}
