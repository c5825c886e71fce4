package rules

import (
	"cmp"
	"slices"

	"commerce/auth/problem"
	"commerce/cart"
)

// Edit is edit.lua. It edits the line that item names, as cart.Edit.Resolve has computed it. The line keeps its
// place. If another line has its new ID, that line absorbs it: it keeps its own place, the
// quantities add, and the edited line's notice wins unless it is empty. The bounds of a line
// then apply to the sum alone. moved is the ID of the line after the edit, if item is not
// that ID. Refusals: item_not_found, line_changed, text_full, and those of
// SetQuantity.
func Edit(c cart.Cart, item cart.LineID, e cart.EditedLine, limits cart.Limits) (changed cart.Cart, moved cart.LineID, refusal *cart.Refusal) {
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
	edited, text := lineOf(e, line, quantity), line.TextSize()
	if other < 0 {
		refusal = refuseNew(e.Bounds, quantity, line.Quantity, inCart, e.Raise)
	} else {
		text += c.Lines[other].TextSize()
		edited = absorb(c.Lines[other], edited)
		refusal = cmp.Or(refuseGrowth(e.Bounds, quantity, line.Quantity, inCart, e.Raise), refuseLine(e.Bounds, edited.Quantity))
	}
	if refusal = cmp.Or(refusal, refuseText(c, text, edited.TextSize(), limits)); refusal != nil {
		return c, "", refusal
	}
	switch {
	case other >= 0:
		c = with(c, other, edited)
		c.Lines = slices.Delete(c.Lines, at, at+1)
	case e.ID != line.ID || quantity != line.Quantity || e.Notice != line.Notice:
		c = with(c, at, edited)
	}
	return c, movedTo(e.ID, item), nil
}

// lineOf returns what the line becomes with a quantity.
func lineOf(l cart.EditedLine, from cart.Line, quantity int64) cart.Line {
	edited := cart.Line{ID: l.ID, Quantity: quantity, AddedPrice: from.AddedPrice, Fields: l.Fields, Notice: l.Notice}
	if l.ID != from.ID {
		edited.AddedPrice = l.Price
	}
	return edited
}

// absorb returns the line with an equal one added to it.
func absorb(l, equal cart.Line) cart.Line {
	l.Quantity += equal.Quantity
	l.Notice = cmp.Or(equal.Notice, l.Notice)
	return l
}

// movedTo returns the line's ID if item is another one, such as the product's; else "".
func movedTo(line, item cart.LineID) cart.LineID {
	if line == item {
		return ""
	}
	return line
}
