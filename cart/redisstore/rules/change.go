// Package rules says what the scripts in redisstore/lua make of carts, as pure functions. By those of changes,
// the service computes what the operations of a list do before Redis makes the list (Change.After).
// TestTwin_Changes and TestTwin_Merges compare their results with those of the scripts.
//
// Changes return a new cart, whose version is one higher if anything changed.
package rules

import (
	"cmp"
	"maps"
	"slices"

	"commerce/auth/problem"
	"commerce/cart"
)

// Add adds to a line, or begins it at the end of the cart. A line keeps its order and the
// price when it was first added. Refusals: cart_full, quantity_out_of_range, off_step,
// above_max_per_cart, out_of_stock, insufficient_stock, metadata_full, line_text_full,
// notice_too_long, text_full.
func Add(c cart.Cart, l cart.NewLine, limits cart.Limits) (cart.Cart, *cart.Refusal) {
	line, at := cart.Line{ID: l.ID, AddedPrice: l.Price}, slices.IndexFunc(c.Lines, func(held cart.Line) bool { return held.ID == l.ID })
	if at >= 0 {
		line = c.Lines[at]
	} else if int64(len(c.Lines)) >= limits.Lines {
		return c, &cart.Refusal{Code: problem.CartFull}
	}
	if refusal := refuse(l.Bounds, line.Quantity+l.Quantity, l.Quantity, quantityOf(c, l.ID)); refusal != nil {
		return c, refusal
	}
	before := line
	line.Quantity += l.Quantity
	if len(l.Fields) > 0 {
		line.Fields = l.Fields
	}
	if l.Notice != "" {
		line.Notice = l.Notice
	}
	line.Metadata = line.Metadata.With(l.Metadata)
	refusal := cmp.Or(
		cart.RefuseMetadata(before.Metadata, line.Metadata),
		refuseLineText(before.TextSize(), line, l.Metadata, limits),
		refuseText(c, before.TextSize(), line.TextSize(), limits),
	)
	if refusal != nil {
		return c, refusal
	}
	return with(c, at, line), nil
}

// refuseLineText checks a change of the size of the text of a line that has metadata. Without, the
// text is checked before.
func refuseLineText(before int64, line cart.Line, changes cart.Metadata, limits cart.Limits) *cart.Refusal {
	switch after := line.TextSize(); {
	case line.Metadata == nil || after <= before || after <= limits.LineText:
		return nil
	case changes != nil:
		return &cart.Refusal{Code: cart.LineTextFull}
	}
	return &cart.Refusal{Code: cart.NoticeTooLong}
}

func refuseText(c cart.Cart, before, after int64, limits cart.Limits) *cart.Refusal {
	if text := c.TextSize(); after > before && text-before+after > limits.CartText {
		return &cart.Refusal{Code: cart.TextFull}
	}
	return nil
}

// SetQuantity sets the quantity of a line; 0 removes it. raise is RaiseRefusal of its product.
// id is that of the line; "" if it was removed. Refusals: item_not_found, raise,
// quantity_out_of_range, off_step, above_max_per_cart, out_of_stock, insufficient_stock.
func SetQuantity(c cart.Cart, item cart.LineID, quantity int64, b cart.Bounds, raise problem.Code) (changed cart.Cart, id cart.LineID, refusal *cart.Refusal) {
	at := find(c, item)
	if at < 0 {
		return c, "", &cart.Refusal{Code: problem.ItemNotFound}
	}
	line := c.Lines[at]
	if quantity == 0 {
		return without(c, at), "", nil
	}
	if refusal := refuseNew(b, quantity, line.Quantity, quantityOf(c, line.ID)-line.Quantity, raise); refusal != nil {
		return c, "", refusal
	}
	if quantity != line.Quantity {
		line.Quantity = quantity
		c = with(c, at, line)
	}
	return c, line.ID, nil
}

// Edit edits the line that item names, as cart.Edit.Resolve has computed it. The line keeps its place.
// If another line has its new ID, that line absorbs it: it keeps its own place, the quantities add,
// the edited line's notice replaces its own unless it is empty, and so do the values of its metadata.
// The bounds of a line then apply to the sum alone. id is that of the line after the edit. Refusals:
// item_not_found, line_changed, those of SetQuantity, and those of Add about text.
func Edit(c cart.Cart, item cart.LineID, e cart.EditedLine, limits cart.Limits) (changed cart.Cart, id cart.LineID, refusal *cart.Refusal) {
	at := find(c, item)
	if at < 0 {
		return c, "", &cart.Refusal{Code: problem.ItemNotFound}
	}
	line := c.Lines[at]
	if line.ID != e.From.ID || line.Notice != e.From.Notice {
		return c, "", &cart.Refusal{Code: cart.LineChanged}
	}
	quantity := line.Quantity
	if e.Quantity != nil {
		quantity = *e.Quantity
	}
	other := -1
	if e.ID != line.ID {
		other = slices.IndexFunc(c.Lines, func(l cart.Line) bool { return l.ID == e.ID })
	}
	inCart := quantityOf(c, line.ID) - line.Quantity
	edited := cart.Line{ID: e.ID, Quantity: quantity, AddedPrice: line.AddedPrice, Fields: e.Fields, Notice: e.Notice}
	if e.ID != line.ID {
		edited.AddedPrice = e.Price
	}
	text, names := line.TextSize(), line.Metadata
	edited.Metadata = line.Metadata.With(e.Metadata)
	if other < 0 {
		refusal = refuseNew(e.Bounds, quantity, line.Quantity, inCart, e.Raise)
	} else {
		metadata := edited.Metadata
		edited = c.Lines[other]
		text, names = text+edited.TextSize(), edited.Metadata
		edited.Quantity += quantity
		edited.Notice = cmp.Or(e.Notice, edited.Notice)
		edited.Metadata = edited.Metadata.With(metadata)
		refusal = cmp.Or(refuseGrowth(e.Bounds, quantity, line.Quantity, inCart, e.Raise), refuseLine(e.Bounds, edited.Quantity))
	}
	if e.Accepts {
		edited.AddedPrice = e.Price
	}
	refusal = cmp.Or(refusal,
		cart.RefuseMetadata(names, edited.Metadata),
		refuseLineText(text, edited, e.Metadata, limits),
		refuseText(c, text, edited.TextSize(), limits),
	)
	switch {
	case refusal != nil:
		return c, "", refusal
	case other >= 0:
		c = with(c, other, edited)
		c.Lines = slices.Delete(c.Lines, at, at+1)
	case !same(edited, line):
		c = with(c, at, edited)
	}
	return c, e.ID, nil
}

// same reports whether a line is as it was, except for fields, for which its ID stands.
func same(a, b cart.Line) bool {
	return a.ID == b.ID && a.Quantity == b.Quantity && a.AddedPrice == b.AddedPrice && a.Notice == b.Notice && maps.Equal(a.Metadata, b.Metadata)
}

// Remove removes a line. Removing a line that is not there changes nothing.
func Remove(c cart.Cart, item cart.LineID) cart.Cart {
	if at := find(c, item); at >= 0 {
		return without(c, at)
	}
	return c
}

// Clear removes all lines, the coupon and the metadata. The cart keeps its id.
func Clear(c cart.Cart) cart.Cart {
	if len(c.Lines) == 0 && c.Coupon == "" && c.Metadata == nil {
		return c
	}
	c.Lines, c.Coupon, c.Metadata = nil, "", nil
	c.Version++
	return c
}

// SetCoupon gives the cart a coupon; "" removes it.
func SetCoupon(c cart.Cart, code string) cart.Cart {
	if c.Coupon != code {
		c.Coupon = code
		c.Version++
	}
	return c
}

// SetMetadata changes the cart's metadata by name. Refusals: metadata_full, text_full.
func SetMetadata(c cart.Cart, changes cart.Metadata, limits cart.Limits) (cart.Cart, *cart.Refusal) {
	merged := c.Metadata.With(changes)
	refusal := cmp.Or(cart.RefuseMetadata(c.Metadata, merged), refuseText(c, c.Metadata.TextSize(), merged.TextSize(), limits))
	if refusal != nil || maps.Equal(merged, c.Metadata) {
		return c, refusal
	}
	c.Metadata = merged
	c.Version++
	return c, nil
}

// quantityOf is what all lines of a line's product hold.
func quantityOf(c cart.Cart, id cart.LineID) (sum int64) {
	for _, l := range c.Lines {
		if l.ID.Product() == id.Product() {
			sum += l.Quantity
		}
	}
	return sum
}

// with returns the changed cart with a line at an index; -1 appends it.
func with(c cart.Cart, at int, line cart.Line) cart.Cart {
	c.Lines = slices.Clone(c.Lines)
	if at < 0 {
		c.Lines = append(c.Lines, line)
	} else {
		c.Lines[at] = line
	}
	c.Version++
	return c
}

func without(c cart.Cart, at int) cart.Cart {
	c.Lines = slices.Delete(slices.Clone(c.Lines), at, at+1)
	c.Version++
	return c
}

// find returns the index of the line that a client names (see cart.Cart.Line); -1 for none.
func find(c cart.Cart, item cart.LineID) int {
	named := c.Line(item)
	return slices.IndexFunc(c.Lines, func(l cart.Line) bool { return named != nil && l.ID == named.ID })
}
