package redisstore_test

import (
	"cmp"
	"slices"
	"strings"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/transfer"
)

// Lines of the model. Products 1 to 3 each have a plain line. Product 3 has a second line, with
// an engraving. Products are numbered from 1, so the plain line of product p is line p-1.
const (
	modelProducts = 3
	engravedLine  = modelProducts
	modelLines    = modelProducts + 1

	engravable  = modelProducts // the product with two lines
	engraving   = "engraving"   // its field
	engravedFor = "Sara"        // the value of that field
)

func engravedID(product int64) cart.LineID {
	return cart.NewLineID(product, 0, []cart.FieldValue{{Name: engraving, Value: engravedFor}})
}

type contents struct {
	lines [modelLines]modelLine
	codes codeSet
	buyer byte              // who says in which country the buyer is: a digit for the shopper, a letter for an agent; 0 for nobody
	meta  [modelLabels]byte // the last character of each value of the cart's metadata; 0 for none
}

const modelLabels = 2 // names of a cart's metadata

// codeSet is a set of codes of coupons that combine, a bit for each.
type codeSet uint8

// codesOf returns the set of the code that ends with a digit; none for 0.
func codesOf(digit byte) codeSet {
	if digit == 0 {
		return 0
	}
	return 1 << (digit - '0')
}

type modelLine struct {
	quantity uint8 // 0: there is no line
	notice   byte  // the notice's last character; 0 for no notice
	label    byte  // likewise, of the line's metadata
}

func contentsOf(c cart.Cart) contents {
	all := contents{buyer: lastByte(c.Buyer.Country)}
	for name, value := range c.Metadata {
		all.meta[lastByte(name)-'1'] = lastByte(value)
	}
	for _, code := range c.Coupons {
		all.codes |= codesOf(lastByte(code))
	}
	for _, l := range c.Lines {
		all.lines[placeOf(l.ID)] = modelLine{uint8(l.Quantity), lastByte(l.Notice), lastByte(l.Metadata[labelName(0)])}
	}
	return all
}

func lastByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}

func placeOf(id cart.LineID) int {
	if strings.Contains(string(id), ".f") {
		return engravedLine
	}
	return int(id.Product()) - 1
}

func (c *contents) count() (n int64) {
	for _, l := range c.lines {
		if l.quantity > 0 {
			n++
		}
	}
	return n
}

// named returns the line that the operation's product names: its plain line or, without that, its only one, unless the
// plain one was removed beside that a short time ago.
func (o *operation) named(c *contents) int {
	if o.product == engravable && c.lines[o.product-1].quantity == 0 && !o.namesNoOther {
		return engravedLine
	}
	return int(o.product) - 1
}

// loses reports whether the plain line of the product with two lines was removed beside the other one.
func (c *contents) loses(after *contents) bool {
	plain := engravable - 1
	return c.lines[plain].quantity > 0 && after.lines[plain].quantity == 0 &&
		c.lines[engravedLine].quantity > 0 && after.lines[engravedLine].quantity > 0
}

func (c contents) merged(guest contents, by transfer.Strategy) contents {
	for i, offered := range guest.lines {
		own := &c.lines[i]
		switch {
		case offered.quantity == 0:
			continue
		case own.quantity == 0 || by == transfer.KeepGuest:
			own.quantity = offered.quantity
		case by == transfer.Sum:
			own.quantity += offered.quantity
		case by == transfer.Max:
			own.quantity = max(own.quantity, offered.quantity)
		}
		if own.notice == 0 {
			own.notice = offered.notice
		}
		own.label = cmp.Or(own.label, offered.label)
	}
	c.codes |= guest.codes
	c.buyer = cmp.Or(c.buyer, guest.buyer)
	for i, value := range guest.meta {
		c.meta[i] = cmp.Or(c.meta[i], value)
	}
	return c
}

func (o *operation) effect(c contents) contents {
	switch o.verb {
	case adds:
		l := &c.lines[o.line()]
		l.quantity += uint8(o.quantity)
		if o.notice != 0 {
			l.notice = o.notice
		}
		l.label = o.labeled(l.label)
	case sets:
		if l := &c.lines[o.named(&c)]; l.quantity > 0 {
			l.quantity = uint8(o.quantity)
			if o.quantity == 0 {
				*l = modelLine{}
			}
		}
	case edits:
		return o.edit(c)
	case removes:
		c.lines[o.named(&c)] = modelLine{}
	case clears:
		return contents{buyer: c.buyer}
	case labels:
		l := &c.meta[o.product-1]
		*l = o.labeled(*l)
	case locates:
		if o.country < 'a' || c.count() > 0 && (c.buyer == 0 || c.buyer >= 'a') {
			c.buyer = o.country
		}
	case redeems:
		if c.codes |= codesOf(o.coupon); o.coupon == 0 {
			c.codes = 0
		}
	case orders:
		kept := c.lines[o.product-1]
		kept.quantity = uint8(o.quantity)
		c.lines = [modelLines]modelLine{}
		c.lines[o.product-1] = kept
	case lists:
		c, _ = o.listed(c)
	}
	return c
}

// labeled returns what the operation makes of a label.
func (o *operation) labeled(before byte) byte {
	switch o.label {
	case 0:
		return before
	case unlabels:
		return 0
	}
	return o.label
}

// listed returns the contents after a list, and the refusals of its operations, or "".
func (o *operation) listed(c contents) (contents, []problem.Code) {
	after, outcomes := c, make([]problem.Code, len(o.list))
	for i, one := range o.list {
		l := &after.lines[one.line()]
		switch {
		case one.needsLine() && l.quantity == 0:
			outcomes[i] = problem.ItemNotFound
		case one.verb == removes || one.verb == sets && one.quantity == 0:
			*l = modelLine{}
		case one.verb == sets:
			l.quantity = uint8(one.quantity)
		case one.verb == edits:
			l.notice = one.notice
		default:
			after = one.effect(after)
		}
	}
	if !o.each && refusesAny(outcomes) {
		return c, outcomes
	}
	return after, outcomes
}

func refusesAny(outcomes []problem.Code) bool {
	return slices.ContainsFunc(outcomes, func(code problem.Code) bool { return code != "" })
}

// edit returns the contents of a cart after an edit. An edit adds an engraving to the line that
// the product names, or removes the engraving from the engraved line. If the line is then equal
// to another one, they become one line.
func (o *operation) edit(c contents) contents {
	from, to := o.edited(&c), o.line()
	l := c.lines[from]
	if l.quantity == 0 {
		return c
	}
	if o.quantity > 0 {
		l.quantity = uint8(o.quantity)
	}
	if o.renotes {
		l.notice = o.notice
	}
	l.label = o.labeled(l.label)
	if from != to {
		c.lines[from] = modelLine{}
		l.quantity += c.lines[to].quantity
		if l.notice == 0 {
			l.notice = c.lines[to].notice
		}
		l.label = cmp.Or(l.label, c.lines[to].label)
	}
	c.lines[to] = l
	return c
}

// line returns the line that an add adds to, or that an edit results in.
func (o *operation) line() int {
	if o.engraved {
		return engravedLine
	}
	return int(o.product) - 1
}

func (o *operation) edited(c *contents) int {
	if o.engraved || o.product != engravable {
		return o.named(c)
	}
	return engravedLine
}
