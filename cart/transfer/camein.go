package transfer

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/money"
)

// CameIn is what a merge has brought into a customer's cart.
type CameIn struct {
	At       time.Time                `json:"-"` // of the merge, by Redis' clock
	Lines    map[cart.LineID]CameLine // that it has raised, begun, or given texts
	Coupons  []string                 `json:",omitempty"` // codes that the customer did not have
	Buyer    cart.Buyer               `json:",omitzero"`  // if the customer had none
	Metadata cart.Metadata            `json:",omitempty"` // names that the customer did not have

	UndoneAs string            `json:",omitempty"` // the name of its undo; "" while it is not undone
	UndoneAt time.Time         `json:",omitzero"`  // by Redis' clock
	Adjusted []cart.Adjustment `json:",omitempty"` // what the undo reported
}

// UndoLife is for how long a merge can be undone, and then its undo be repeated.
const UndoLife = 15 * time.Minute

// counts reports whether a merge can be undone at a time, or its undo be repeated.
func (m CameIn) counts(now time.Time) bool {
	if m.UndoneAs != "" {
		return now.Sub(m.UndoneAt) < UndoLife
	}
	return now.Sub(m.At) < UndoLife
}

// CameLine is what a merge has brought into a line.
type CameLine struct {
	Before, After int64         // its quantity; 0 before a line that began
	Price         money.Amount  // when the guest added it
	Notice        string        `json:",omitempty"` // if the line had none; "" otherwise
	Metadata      cart.Metadata `json:",omitempty"` // names that the line did not have
}

// Undone is what both carts are after an undo, and what the shopper changed since the merge.
type Undone struct {
	Customer cart.Cart
	Guest    cart.Cart // with what was taken out; without an ID
	Adjusted []cart.Adjustment
}

// UndoMerge takes out of a customer's cart what a merge has brought, as far as it is still there. later are the merges since
// then that are not undone: what they have brought is no change of the shopper's. A line that
// began with the merge stays if the shopper has changed its texts. Texts that it brought to another line, the
// codes, the buyer's country and the cart's metadata leave unless the shopper has changed them. If nothing of the quantity leaves,
// such texts have no line in the guest's cart: they are dropped, since they are not the customer's. No quantity
// is lost or added.
func UndoMerge(c cart.Cart, came CameIn, later ...CameIn) Undone {
	u := Undone{Customer: c, Guest: cart.Cart{}}
	u.Customer.Lines = nil
	gone, changed := maps.Clone(came.Lines), false
	for _, l := range c.Lines {
		in, brought := came.Lines[l.ID]
		delete(gone, l.ID)
		left, taken := l, cart.Line{}
		if brought {
			rest, since := beforeMerges(l, later)
			left, taken = in.takenFrom(l, rest)
			changed = changed || taken.Quantity > 0 || taken.Notice != "" || taken.Metadata != nil
			u.tell(l.ID, in, taken.Quantity, l.Quantity == in.After+since && in.hasTexts(rest))
		}
		if taken.Quantity > 0 {
			u.Guest.Lines = append(u.Guest.Lines, taken)
		}
		if left.Quantity > 0 {
			u.Customer.Lines = append(u.Customer.Lines, left)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		u.tell(id, gone[id], 0, false)
	}
	u.Customer.Coupons = nil
	for _, code := range c.Coupons {
		if slices.Contains(came.Coupons, code) {
			u.Guest.Coupons = append(u.Guest.Coupons, code)
		} else {
			u.Customer.Coupons = append(u.Customer.Coupons, code)
		}
	}
	if c.Buyer == came.Buyer {
		u.Customer.Buyer, u.Guest.Buyer = cart.Buyer{}, c.Buyer
	}
	u.Customer.Metadata, u.Guest.Metadata = split(c.Metadata, came.Metadata)
	if changed || u.Guest.InUse() {
		u.Customer.Version++
	}
	return u
}

// beforeMerges returns a line without the texts that merges have brought to it, and by how much they have raised it.
func beforeMerges(l cart.Line, merges []CameIn) (rest cart.Line, raised int64) {
	for _, m := range merges {
		in, ok := m.Lines[l.ID]
		if !ok {
			continue
		}
		raised += in.After - in.Before
		if in.Notice != "" && in.Notice == l.Notice {
			l.Notice = ""
		}
		l.Metadata, _ = split(l.Metadata, in.Metadata)
	}
	return l, raised
}

func (in CameLine) raised() int64 { return max(0, in.After-in.Before) }

// Below returns what a merge has brought, after lines of an earlier one have left the cart: its quantities before and after are lower.
func (m CameIn) Below(gone []cart.Line) CameIn {
	m.Lines = maps.Clone(m.Lines)
	for _, l := range gone {
		if in, ok := m.Lines[l.ID]; ok {
			n := min(l.Quantity, in.Before)
			in.Before, in.After = in.Before-n, in.After-n
			m.Lines[l.ID] = in
		}
	}
	return m
}

// Above returns what a merge has brought, as if it had come after another one, which in fact came later.
func (m CameIn) Above(other CameIn) CameIn {
	m.Lines = maps.Clone(m.Lines)
	for id, in := range m.Lines {
		n := other.Lines[id].raised()
		in.Before, in.After = in.Before+n, in.After+n
		m.Lines[id] = in
	}
	return m
}

// Again joins what one merge has brought at two times, of which this is the first. A failover has lost the claim in between, and
// the guest's cart has grown since. Call Above first, for each other merge in between.
func (m CameIn) Again(more CameIn) CameIn {
	all := more
	all.Lines, all.Metadata = maps.Clone(m.Lines), m.Metadata.With(more.Metadata)
	all.Coupons, all.Buyer = slices.Concat(m.Coupons, more.Coupons), cmp.Or(more.Buyer, m.Buyer)
	for id, in := range more.Lines {
		first := m.Lines[id]
		in.Before = max(in.Before-first.raised(), min(first.Before, in.Before))
		in.Notice = cmp.Or(in.Notice, first.Notice)
		in.Metadata = first.Metadata.With(in.Metadata)
		all.Lines[id] = in
	}
	return all
}

// brought are the lines with the quantities that a merge has brought.
func (m CameIn) brought() (lines []cart.Line) {
	for _, id := range slices.Sorted(maps.Keys(m.Lines)) {
		if n := m.Lines[id].raised(); n > 0 {
			lines = append(lines, cart.Line{ID: id, Quantity: n})
		}
	}
	return lines
}

// tell adds a line that the merge has raised, and the shopper has changed since, to the adjusted ones.
func (u *Undone) tell(id cart.LineID, in CameLine, taken int64, unchanged bool) {
	if in.After > in.Before && !unchanged && len(u.Adjusted) < adjustedMax {
		u.Adjusted = append(u.Adjusted, cart.Adjustment{Line: id, Requested: in.After - in.Before, Kept: taken, Code: AdjustedChanged})
	}
}

// AdjustedChanged is the code of an Adjustment of a line that the shopper has changed since its merge.
const AdjustedChanged problem.Code = "changed"

// takenFrom splits a line into what stays and what is taken out, of which the quantity may be 0. rest is the line without the
// texts of later merges.
func (in CameLine) takenFrom(l, rest cart.Line) (left, taken cart.Line) {
	n := max(0, min(in.After-in.Before, l.Quantity-in.Before))
	if in.Before == 0 && !in.hasTexts(rest) {
		return l, cart.Line{}
	}
	left, taken = l, cart.Line{ID: l.ID, Quantity: n, AddedPrice: in.Price, Fields: l.Fields}
	left.Quantity -= n
	if in.Notice == l.Notice {
		left.Notice, taken.Notice = "", l.Notice
	}
	left.Metadata, taken.Metadata = split(l.Metadata, in.Metadata)
	return left, taken
}

// hasTexts reports whether a line has the texts that the merge has left there. What a line that had been there
// has besides is the customer's.
func (in CameLine) hasTexts(l cart.Line) bool {
	if in.Before == 0 {
		return l.Notice == in.Notice && maps.Equal(l.Metadata, in.Metadata)
	}
	_, taken := split(l.Metadata, in.Metadata)
	return (in.Notice == "" || l.Notice == in.Notice) && len(taken) == len(in.Metadata)
}

// split takes those names out of metadata that have the same value in out.
func split(m, out cart.Metadata) (left, taken cart.Metadata) {
	for name, value := range m {
		to := &left
		if other, is := out[name]; is && other == value {
			to = &taken
		}
		if *to == nil {
			*to = cart.Metadata{}
		}
		(*to)[name] = value
	}
	return left, taken
}
