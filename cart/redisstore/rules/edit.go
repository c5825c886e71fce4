package rules

import (
	"cmp"
	"slices"

	"commerce/auth/problem"
	"commerce/cart"
)

// Edit edits the line that item names, as cart.Edit.Resolve has computed it. The line keeps its place.
// If another line has its new ID, that line absorbs it: it keeps its own place, the quantities add,
// and the edited line's notice replaces its own unless it is empty. The bounds of a line then apply
// to the sum alone. moved is the ID of the line after the edit, if item is not that ID. Refusals:
// item_not_found, line_changed, text_full, and those of SetQuantity.
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
	edited := cart.Line{ID: e.ID, Quantity: quantity, AddedPrice: line.AddedPrice, Fields: e.Fields, Notice: e.Notice}
	if e.ID != line.ID {
		edited.AddedPrice = e.Price
	}
	text := line.TextSize()
	if other < 0 {
		refusal = refuseNew(e.Bounds, quantity, line.Quantity, inCart, e.Raise)
	} else {
		edited = c.Lines[other]
		text += edited.TextSize()
		edited.Quantity += quantity
		edited.Notice = cmp.Or(e.Notice, edited.Notice)
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

// movedTo returns the line's ID if item is another one, such as the product's; else "".
func movedTo(line, item cart.LineID) cart.LineID {
	if line == item {
		return ""
	}
	return line
}
