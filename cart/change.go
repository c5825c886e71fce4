package cart

import (
	"slices"
	"strings"

	"commerce/auth/problem"
)

// The rules of each change of a cart. They return a new Cart, whose version is one
// higher if anything changed, and leave their own untouched. The scripts in redisstore/lua
// decide by the same rules; TestTwin_Changes in redisstore holds the two equal.

// Add adds to a line, or begins it at the end of the cart. A line keeps its order and the
// price when it was first added. Refusals: cart_full, quantity_out_of_range, off_step,
// above_max_per_cart, out_of_stock, insufficient_stock; their numbers are the Refusal's.
func (c Cart) Add(l NewLine, limits Limits) (Cart, *Refusal) {
	line, at := Line{ID: l.ID, AddedPrice: l.Price}, slices.IndexFunc(c.Lines, func(held Line) bool { return held.ID == l.ID })
	if at >= 0 {
		line = c.Lines[at]
	} else if lines := int64(len(c.Lines)); lines >= limits.Lines {
		return c, &Refusal{Code: problem.CartFull, A: lines, B: 0}
	}
	if refusal := l.Bounds.refuse(line.Quantity+l.Quantity, l.Quantity, c.quantityOf(l.ID)); refusal != nil {
		return c, refusal
	}
	before := line.TextSize()
	line.Quantity += l.Quantity
	if len(l.Fields) > 0 {
		line.Fields = l.Fields
	}
	if l.Notice != "" {
		line.Notice = l.Notice
	}
	if refusal := c.refuseText(before, line.TextSize(), limits); refusal != nil {
		return c, refusal
	}
	return c.with(at, line), nil
}

// refuseText checks a change of the size of one line's text.
func (c Cart) refuseText(before, after int64, limits Limits) *Refusal {
	if text := c.TextSize(); after > before && text-before+after > limits.CartText {
		return &Refusal{Code: problem.CartFull, A: text, B: 1}
	}
	return nil
}

// SetQuantity sets the quantity of a line; 0 removes it. A line can always be removed, or
// lowered to the product's minimum, in steps. raise is RaiseRefusal of its product.
// moved is the line's ID, if item is not that ID. Refusals: item_not_found, raise,
// quantity_out_of_range, off_step, above_max_per_cart, out_of_stock, insufficient_stock.
func (c Cart) SetQuantity(item LineID, quantity int64, b Bounds, raise problem.Code) (changed Cart, moved LineID, refusal *Refusal) {
	at := c.find(item)
	if at < 0 {
		return c, "", &Refusal{Code: problem.ItemNotFound}
	}
	line := c.Lines[at]
	if quantity == 0 {
		return c.without(at), "", nil
	}
	if refusal := b.refuseNew(quantity, line.Quantity, c.quantityOf(line.ID)-line.Quantity, raise); refusal != nil {
		return c, "", refusal
	}
	if quantity != line.Quantity {
		line.Quantity = quantity
		c = c.with(at, line)
	}
	return c, movedTo(line.ID, item), nil
}

// Remove removes a line. Removing a line that is not there changes nothing.
func (c Cart) Remove(item LineID) Cart {
	if at := c.find(item); at >= 0 {
		return c.without(at)
	}
	return c
}

// Clear removes all lines and the coupon. The cart keeps its id.
func (c Cart) Clear() Cart {
	if len(c.Lines) == 0 && c.Coupon == "" {
		return c
	}
	c.Lines, c.Coupon = nil, ""
	c.Version++
	return c
}

// SetCoupon gives the cart a coupon; "" removes it.
func (c Cart) SetCoupon(code string) Cart {
	if c.Coupon != code {
		c.Coupon = code
		c.Version++
	}
	return c
}

// find returns the index of the line that a client names: by the line's own id, or by a
// product's, which is the first line in cart order that has the product. -1 for none.
func (c Cart) find(item LineID) int {
	if at := slices.IndexFunc(c.Lines, func(l Line) bool { return l.ID == item }); at >= 0 {
		return at
	}
	return slices.IndexFunc(c.Lines, func(l Line) bool {
		product, _, _ := strings.Cut(string(l.ID), ".")
		return product == string(item)
	})
}

// Line returns the line that a client names, as Edit finds it; nil for none.
func (c *Cart) Line(item LineID) *Line {
	if at := c.find(item); at >= 0 {
		return &c.Lines[at]
	}
	return nil
}

// quantityOf is what all lines of a line's product hold.
func (c Cart) quantityOf(id LineID) (sum int64) {
	for _, l := range c.Lines {
		if l.ID.Product() == id.Product() {
			sum += l.Quantity
		}
	}
	return sum
}

// with returns the changed cart with a line at an index; -1 appends it.
func (c Cart) with(at int, line Line) Cart {
	c.Lines = slices.Clone(c.Lines)
	if at < 0 {
		c.Lines = append(c.Lines, line)
	} else {
		c.Lines[at] = line
	}
	c.Version++
	return c
}

// without returns the changed cart without the line at an index.
func (c Cart) without(at int) Cart {
	c.Lines = slices.Delete(slices.Clone(c.Lines), at, at+1)
	c.Version++
	return c
}
