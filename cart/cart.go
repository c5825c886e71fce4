// Package cart keeps shopping carts: what may be put in, what it costs, how a
// guest's cart joins a customer's, and how all of that lies in Redis and goes
// over the wire.
//
// Money is in minor units (money.Amount). Prices, stock and status come from the
// catalogue at each read and are never stored as truth; a cart holds only what
// the shopper chose.
package cart

import (
	"context"
	"time"

	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/cart/period"
)

// Cart is one cart as it lies in Redis. The zero value is a cart never used.
type Cart struct {
	ID        string // random, new for each life of the cart; "" when nothing is stored
	Version   int64  // grows by one with every change; 0 when nothing is stored
	Lines     []Line // in the order in which they were first added
	Coupon    string // its code; "" for none
	ExpiresAt time.Time

	// unfinished are the merges under way into this customer's cart (see merge.go).
	unfinished notes
}

// Line is one line of a cart: a product, with its plan and fields, and how many.
type Line struct {
	ID         LineID
	Quantity   int64
	AddedPrice money.Amount // unit price when the line was first added, for the price_changed warning
	Fields     []FieldValue // the shopper's answers, sorted by field name; nil when there are none
	Notice     string       // "" when none was given
}

// FieldValue is a shopper's answer to one field of a product: free text, or the
// code of a select's option.
type FieldValue struct {
	Name  string
	Value string
}

// Count is the sum of all quantities.
func (c *Cart) Count() int64 {
	var n int64
	for i := range c.Lines {
		n += c.Lines[i].Quantity
	}
	return n
}

// ProductIDs lists each product of the cart once, in cart order.
func (c *Cart) ProductIDs() []int64 {
	ids := make([]int64, 0, len(c.Lines))
	seen := make(map[int64]bool, len(c.Lines))
	for i := range c.Lines {
		if id := c.Lines[i].ID.Product(); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// Product is one product of a store's catalogue. A *Product is shared between
// requests: nobody changes one.
type Product struct {
	ID            int64
	Name          string
	Slug          string
	Type          string // passed through: digital, subscription, course, …
	Active        bool   // sold now
	Price         money.Amount
	OriginalPrice money.Amount // before a reduction; equal to Price when there is none
	Stock         *int64       // nil: unlimited
	MinQuantity   int64        // of one line; at least 1
	MaxQuantity   *int64       // of one line; nil: only the service's own limit
	Image         *Image       // nil: none
	Plans         []Plan       // a product with plans is bought by choosing one
	Fields        []Field      // in the merchant's order, which gives each its position
}

// Image is a picture of a product; Alt describes it for those who cannot see it.
type Image struct {
	URL string
	Alt string
}

// Plan is a period for which a subscription product is sold (its variant); its
// price comes on top of the product's own.
type Plan struct {
	ID       int64
	Duration period.Duration
	Price    money.Amount
}

// Field is something the shopper is asked when adding the product: a text, or a
// choice when Options is not empty.
type Field struct {
	Name     string
	Required bool
	Options  []Option
}

// Option is one choice of a select field; Price is its surcharge on the unit
// price, 0 for none.
type Option struct {
	Code  string
	Name  string
	Price money.Amount
}

// Catalog answers what a store sells.
type Catalog interface {
	// Products returns the store's products of the given ids; an id without an
	// entry is no product of that store. An error means that the catalogue is out
	// of reach, never that a product is unknown.
	Products(ctx context.Context, store int64, ids []int64) (map[int64]*Product, error)

	// Reachable reports whether a product that was never asked for could be found
	// now. It asks nobody, and may be wrong for a moment.
	Reachable() bool
}

// plan finds a plan by its id; nil when the product has none such.
func (p *Product) plan(id int64) *Plan {
	for i := range p.Plans {
		if p.Plans[i].ID == id {
			return &p.Plans[i]
		}
	}
	return nil
}

// field finds a field by its name; nil when the product has none such.
func (p *Product) field(name string) *Field {
	for i := range p.Fields {
		if p.Fields[i].Name == name {
			return &p.Fields[i]
		}
	}
	return nil
}

// option finds an option by its code, in the spelling of the catalogue or in normal
// form; nil when the field has none such.
func (f *Field) option(code string) *Option {
	for i := range f.Options {
		if f.Options[i].Code == code {
			return &f.Options[i]
		}
	}
	normal := normalText(code)
	for i := range f.Options {
		if normalText(f.Options[i].Code) == normal {
			return &f.Options[i]
		}
	}
	return nil
}

// goneName stands for the name of a product that no longer exists.
var goneName = locale.Text{locale.En: "No longer available", locale.Ar: "لم يعد متوفرًا"}
