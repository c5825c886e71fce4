// Package cart holds the shopping cart and its rules: what may be added, what it costs,
// and how a guest's cart is merged into a customer's. It is pure: no Redis, no HTTP, no
// SQL, no clock.
//
// Money is in minor units (money.Amount). Prices, stock and status come from the
// catalog at each read. A cart holds only what the shopper chose.
package cart

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"commerce/cart/money"
)

// Cart is one cart. The zero value is a cart that was never used.
type Cart struct {
	ID        string    // random, new each time the cart is created; "" when nothing is stored
	Version   int64     // grows by one with every change; 0 when nothing is stored
	Mark      string    // random, drawn for each version; "" when nothing is stored
	Lines     []Line    // in the order in which they were first added
	Coupons   []string  // codes of coupons, the oldest first; at most MaxCodes
	Buyer     Buyer     // as the shopper or an agent said
	Metadata  Metadata  // nil for none
	ExpiresAt time.Time // when an unchanged cart expires; zero when nothing is stored
}

// Line is one line of a cart: a product with its plan and fields, and a quantity.
type Line struct {
	ID         LineID
	Quantity   int64
	AddedPrice money.Amount // unit price when the line was first added, for the price_changed warning
	Fields     []FieldValue // the shopper's answers, sorted by field name; nil when there are none
	Notice     string       // "" when none was given
	Metadata   Metadata     // nil for none
}

// FieldValue is a shopper's answer to one field: free text, or the code of a select's option.
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

// InUse reports whether a cart has a line, a coupon, metadata or a buyer's country.
func (c *Cart) InUse() bool { return c.hasContents() || c.Buyer != Buyer{} }

// hasContents reports whether Clear removes anything.
func (c *Cart) hasContents() bool { return len(c.Lines) > 0 || len(c.Coupons) > 0 || c.Metadata != nil }

// holds reports whether a cart has all that another one has, and nothing else.
func (c *Cart) holds(other *Cart) bool {
	return slices.EqualFunc(c.Lines, other.Lines, Line.same) && slices.Equal(c.Coupons, other.Coupons) && c.Buyer == other.Buyer && maps.Equal(c.Metadata, other.Metadata)
}

func (c *Cart) Has(line LineID) bool { return c.place(line) >= 0 }

// Tag is what If-Match names a cart by: its id, version and mark. With the mark, a version that
// a failover or a backup has taken back is never taken for the later one of the same number.
func (c Cart) Tag() string {
	if c.ID == "" {
		return "0.0.0"
	}
	return c.ID + "." + strconv.FormatInt(c.Version, 10) + "." + c.Mark
}

// Line returns the line with an ID; nil for none.
func (c *Cart) Line(id LineID) *Line {
	if i := c.place(id); i >= 0 {
		return &c.Lines[i]
	}
	return nil
}

// ProductIDs lists each product of the cart once, in ascending order.
func (c *Cart) ProductIDs() []int64 {
	ids := make([]int64, len(c.Lines))
	for i := range c.Lines {
		ids[i] = c.Lines[i].ID.Product()
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// TextSize returns the bytes of all texts of the cart and its lines.
func (c *Cart) TextSize() int64 {
	n := c.Metadata.TextSize()
	for i := range c.Lines {
		n += c.Lines[i].TextSize()
	}
	return n
}

// TextSize returns the size in bytes of the line's text.
func (l *Line) TextSize() int64 {
	return TextSize(l.Fields) + int64(len(l.Notice)) + l.Metadata.TextSize()
}

// StoredText returns the bytes that the cart's texts take in Redis, with the names in its metadata.
func (c *Cart) StoredText() int64 { return StoredText(c.Lines) + c.Metadata.StoredText() }

// StoredText returns the bytes that the texts of lines take in Redis.
func StoredText(lines []Line) (size int64) {
	for i := range lines {
		size += lines[i].StoredText()
	}
	return size
}

// StoredText returns the bytes that the line's text takes in Redis, with the names in its metadata.
func (l *Line) StoredText() int64 {
	return TextSize(l.Fields) + int64(len(l.Notice)) + l.Metadata.StoredText()
}

// TextSize returns the bytes of the answers, without the names, which the merchant chose.
func TextSize(fields []FieldValue) int64 {
	var n int64
	for _, f := range fields {
		n += int64(len(f.Value))
	}
	return n
}

// Moment is the version and its mark, by which a cart's states are told apart.
func (c Cart) Moment() string {
	if c.ID == "" {
		return "0.0"
	}
	return strconv.FormatInt(c.Version, 10) + "." + c.Mark
}
