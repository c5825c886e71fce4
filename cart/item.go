package cart

import (
	"strings"
	"time"

	"commerce/auth/problem"
)

// Item is how a request names a line: by its ID, or by that of a product of which the cart holds exactly one line.
type Item struct {
	ID      LineID // "" if no line can have the requested ID
	OnlyIDs bool   // in lists, a product's ID names nothing
}

// in returns the index of the line that an item names, or -1 and why there is none: item_not_found, or ambiguous_item
// if the product has several.
func (i Item) in(c *Cell, now time.Time) (at int, none *Refusal) {
	notFound := &Refusal{Code: problem.ItemNotFound}
	if at = c.place(i.ID); at >= 0 {
		return at, nil
	}
	if i.OnlyIDs || !i.ID.isBare() || c.Removed.Has(i.ID, now) {
		return -1, notFound
	}
	switch lines := c.ofProduct(i.ID); len(lines) {
	case 0:
		return -1, notFound
	case 1:
		return c.place(lines[0].ID), nil
	}
	return -1, &Refusal{Code: AmbiguousItem}
}

// isBare reports whether the ID is that of its product.
func (id LineID) isBare() bool { return id != "" && strings.IndexByte(string(id), '.') < 0 }

// ofProduct returns the lines of a line's product.
func (c *Cart) ofProduct(id LineID) (lines []Line) {
	product := id.productText()
	for _, l := range c.Lines {
		if l.ID.productText() == product {
			lines = append(lines, l)
		}
	}
	return lines
}

func (id LineID) productText() string {
	product, _, _ := strings.Cut(string(id), ".")
	return product
}
