package cart

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"commerce/auth/problem"
)

// Rule is what one change makes of a cart. limits are without the room that merges under way reserve. A Rule changes
// nothing that it is given.
type Rule func(c *Cell, limits Limits, now time.Time) Effect

// Effect is what a Rule has made of a cart.
type Effect struct {
	Cart    Cart
	Altered bool   // whether Cart is another one
	Line    LineID // the line that it changed, if one remains; "" for none
	Named   bool   // whether the request names that line by its ID

	// Why the cart refuses the change, or why the request is refused by itself. One at most is set, and then the rest
	// is zero, except for Ops.
	Refusal *Refusal
	Problem *problem.Error

	Ops []Effect // of a list

	Replaced []string // codes that left for another one

	// Needs is what must be known before the change can be decided; nil if it is decided. The rest is then zero.
	Needs *Needs
}

// Needs is what a rule depends on beside the cart.
type Needs struct {
	Products []int64
	Code     string   // of a coupon, as the shopper entered it; "" for none
	Held     []string // codes of coupons that the cart holds
}

// Refused reports whether the change is refused.
func (s *Effect) Refused() bool { return s.Refusal != nil || s.Problem != nil }

func refused(r *Refusal) Effect { return Effect{Refusal: r} }

// RefusedBy is the rule of a request that is refused by itself, whatever the cart holds.
func RefusedBy(err *problem.Error) Rule {
	return func(*Cell, Limits, time.Time) Effect { return Effect{Problem: err} }
}

// Add is the rule that adds to a line, or begins it at the end of the cart. A line keeps its place and the price when it
// was first added. Refusals: cart_full, quantity_out_of_range, off_step, above_max_per_cart, out_of_stock,
// insufficient_stock, metadata_full, line_text_full, notice_too_long, text_full.
func Add(l NewLine) Rule {
	return func(cell *Cell, limits Limits, _ time.Time) Effect {
		c := cell.Cart
		line, at := Line{ID: l.ID, AddedPrice: l.Price}, c.place(l.ID)
		if at >= 0 {
			line = c.Lines[at]
		} else if int64(len(c.Lines)) >= limits.Lines {
			return refused(&Refusal{Code: problem.CartFull})
		}
		if refusal := refuseSum(l.Bounds, line.Quantity+l.Quantity, l.Quantity, c.Held(l.ID)); refusal != nil {
			return refused(refusal)
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
			refuseMetadata(before.Metadata, line.Metadata),
			refuseLineText(before.TextSize(), line, l.Metadata, limits),
			refuseText(&c, before.TextSize(), line.TextSize(), limits),
		)
		if refusal != nil {
			return refused(refusal)
		}
		// A repeat may come when the catalog gives the request's fields another meaning, so only without any does the
		// request name its line.
		return Effect{Cart: c.with(at, line), Altered: true, Line: l.ID, Named: len(l.Fields) == 0}
	}
}

// refuseLineText checks a change of the size of the text of a line that has metadata. Without, the
// text is checked before.
func refuseLineText(before int64, line Line, changes Metadata, limits Limits) *Refusal {
	switch after := line.TextSize(); {
	case line.Metadata == nil || after <= before || after <= limits.LineText:
		return nil
	case changes != nil:
		return &Refusal{Code: LineTextFull}
	}
	return &Refusal{Code: NoticeTooLong}
}

func refuseText(c *Cart, before, after int64, limits Limits) *Refusal {
	if after > before && c.TextSize()-before+after > limits.CartText {
		return &Refusal{Code: TextFull}
	}
	return nil
}

// SetQuantity is the rule that sets the quantity of a line; 0 removes it. raise is RaiseRefusal of its product. Refusals:
// item_not_found, ambiguous_item, raise, quantity_out_of_range, off_step, above_max_per_cart, out_of_stock, insufficient_stock.
func SetQuantity(item Item, quantity int64, b Bounds, raise problem.Code) Rule {
	return func(c *Cell, _ Limits, now time.Time) Effect {
		at, refusal := item.in(c, now)
		switch {
		case refusal != nil:
			return refused(refusal)
		case quantity == 0:
			return Effect{Cart: c.without(at), Altered: true}
		}
		line := c.Lines[at]
		if refusal := refuseNew(b, quantity, line.Quantity, c.Held(line.ID)-line.Quantity, raise); refusal != nil {
			return refused(refusal)
		}
		altered := quantity != line.Quantity
		line.Quantity = quantity
		return Effect{Cart: c.with(at, line), Altered: altered, Line: line.ID, Named: line.ID == item.ID}
	}
}

// EditLine is the rule that edits the line that item names, as resolve computes it from the line. The line keeps its place.
// If another line has its new ID, that line absorbs it: it keeps its own place, the quantities add, the edited line's notice
// replaces its own unless it is empty, and so do the values of its metadata. The bounds of a line then apply to the sum
// alone. Refusals: what resolve refuses, those of SetQuantity, and those of Add about text.
func EditLine(item Item, resolve func(Line) (EditedLine, *problem.Error)) Rule {
	return func(c *Cell, limits Limits, now time.Time) Effect {
		at, refusal := item.in(c, now)
		if refusal != nil {
			return refused(refusal)
		}
		e, err := resolve(c.Lines[at])
		if err != nil {
			return Effect{Problem: err}
		}
		changed, altered, refusal := c.edited(at, e, limits)
		if refusal != nil {
			return refused(refusal)
		}
		return Effect{Cart: changed, Altered: altered, Line: e.ID, Named: c.Lines[at].ID == item.ID && e.ID == item.ID}
	}
}

func (c Cart) edited(at int, e EditedLine, limits Limits) (_ Cart, altered bool, refusal *Refusal) {
	line := c.Lines[at]
	quantity := line.Quantity
	if e.Quantity != nil {
		quantity = *e.Quantity
	}
	other := -1
	if e.ID != line.ID {
		other = c.place(e.ID)
	}
	inCart := c.Held(line.ID) - line.Quantity
	edited := Line{ID: e.ID, Quantity: quantity, AddedPrice: line.AddedPrice, Fields: e.Fields, Notice: e.Notice}
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
		refuseMetadata(names, edited.Metadata),
		refuseLineText(text, edited, e.Metadata, limits),
		refuseText(&c, text, edited.TextSize(), limits),
	)
	switch {
	case refusal != nil:
		return c, false, refusal
	case other >= 0:
		c = c.with(other, edited)
		c.Lines = slices.Delete(c.Lines, at, at+1)
		return c, true, nil
	case edited.same(line):
		return c, false, nil
	}
	return c.with(at, edited), true, nil
}

// same reports whether a line is as it was, except for fields, for which its ID stands.
func (l Line) same(as Line) bool {
	return l.ID == as.ID && l.Quantity == as.Quantity && l.AddedPrice == as.AddedPrice && l.Notice == as.Notice && maps.Equal(l.Metadata, as.Metadata)
}

// Remove is the rule that removes a line. Removing a line that is not there changes nothing. Refusal: ambiguous_item.
func Remove(item Item) Rule {
	return func(c *Cell, _ Limits, now time.Time) Effect {
		at, refusal := item.in(c, now)
		switch {
		case at >= 0:
			return Effect{Cart: c.without(at), Altered: true}
		case refusal.Code == problem.ItemNotFound:
			return Effect{Cart: c.Cart}
		}
		return refused(refusal)
	}
}

// Clear is the rule that removes all lines, codes and the metadata. The cart keeps its ID, the buyer's country, and the notes
// of merges.
func Clear() Rule {
	return func(cell *Cell, _ Limits, _ time.Time) Effect {
		c := cell.Cart
		altered := c.hasContents()
		c.Lines, c.Coupons, c.Metadata = nil, nil, nil
		return Effect{Cart: c, Altered: altered}
	}
}

// SetCodes is the rule that gives the cart codes of coupons instead of those that it has.
func SetCodes(codes ...string) Rule {
	return func(cell *Cell, _ Limits, _ time.Time) Effect {
		c := cell.Cart
		c.Coupons = codes
		return Effect{Cart: c, Altered: !slices.Equal(codes, cell.Coupons)}
	}
}

// RemoveCode is the rule that removes a code that is named as a shopper may spell it. One that is not held changes nothing.
func RemoveCode(code string) Rule {
	return func(cell *Cell, _ Limits, _ time.Time) Effect {
		c := cell.Cart
		if i := heldCode(c.Coupons, code); i >= 0 {
			c.Coupons = slices.Delete(slices.Clone(c.Coupons), i, i+1)
		}
		return Effect{Cart: c, Altered: len(c.Coupons) < len(cell.Coupons)}
	}
}

// SetMetadata is the rule that changes the cart's metadata by name; "" removes a name. Refusals: metadata_full, text_full.
func SetMetadata(changes Metadata) Rule {
	return func(cell *Cell, limits Limits, _ time.Time) Effect {
		c := cell.Cart
		c.Metadata = c.Metadata.With(changes)
		refusal := cmp.Or(
			refuseMetadata(cell.Metadata, c.Metadata),
			refuseText(&cell.Cart, cell.Metadata.TextSize(), c.Metadata.TextSize(), limits),
		)
		if refusal != nil {
			return refused(refusal)
		}
		return Effect{Cart: c, Altered: !maps.Equal(c.Metadata, cell.Metadata)}
	}
}

// List is the rule of a list: its changes in order, each of which sees what those before it have left. A refused change
// leaves nothing. With each, those that are not refused are made; otherwise all or none. The Effect has that of each
// change, also if the list is refused, which it is by the first that is.
func List(each bool, rules []Rule) Rule {
	return func(c *Cell, limits Limits, now time.Time) Effect {
		cell, all := *c, Effect{Ops: make([]Effect, len(rules))}
		for i, rule := range rules {
			effect := rule(&cell, limits, now)
			if effect.Needs != nil {
				return effect
			}
			all.Ops[i] = effect
			if !effect.Refused() {
				cell.Cart, all.Altered = effect.Cart, all.Altered || effect.Altered
			}
		}
		if i := slices.IndexFunc(all.Ops, func(op Effect) bool { return op.Refused() }); i >= 0 && !each {
			return Effect{Refusal: all.Ops[i].Refusal, Problem: all.Ops[i].Problem, Ops: all.Ops}
		}
		all.Cart = cell.Cart
		return all
	}
}

// Held is what all lines of a line's product hold.
func (c *Cart) Held(id LineID) (sum int64) {
	product := id.productText()
	for i := range c.Lines {
		if c.Lines[i].ID.productText() == product {
			sum += c.Lines[i].Quantity
		}
	}
	return sum
}

// with returns the cart with a line at an index; -1 appends it.
func (c Cart) with(at int, line Line) Cart {
	c.Lines = slices.Clone(c.Lines)
	if at < 0 {
		c.Lines = append(c.Lines, line)
	} else {
		c.Lines[at] = line
	}
	return c
}

func (c Cart) without(at int) Cart {
	c.Lines = slices.Delete(slices.Clone(c.Lines), at, at+1)
	return c
}

// place is the index of a line; -1 for none.
func (c *Cart) place(id LineID) int {
	for i := range c.Lines { // no copy of a line
		if c.Lines[i].ID == id {
			return i
		}
	}
	return -1
}
