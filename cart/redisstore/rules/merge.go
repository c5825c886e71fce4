package rules

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"commerce/cart"
)

// Offers is what one guest's cart has offered a customer's so far, so that to merge it
// again adds nothing. The zero value is nothing.
type Offers struct {
	Lines  map[cart.LineID]int64 // quantities
	Coupon string

	Metadata bool // the cart's own
}

// Merge adds the lines of a guest's cart, each within its bounds (see cart.MergeBounds), and reports
// what it did now; nil for nothing. A line that was offered before stays, except that Sum adds what
// has been offered beyond that. The customer's line keeps its order, price, fields and notice, and its
// values of metadata. A coupon is taken once, if the customer has none, and so is the cart's metadata.
func Merge(c, guest cart.Cart, by cart.Strategy, bounds map[cart.LineID]cart.Bounds, before Offers) (cart.Cart, Offers, *cart.MergeReport) {
	merged, after, report := c, Offers{maps.Clone(before.Lines), before.Coupon, before.Metadata}, &cart.MergeReport{}
	for _, l := range guest.Lines {
		at := slices.IndexFunc(merged.Lines, func(own cart.Line) bool { return own.ID == l.ID })
		line, held := l, int64(0)
		if at >= 0 {
			line = merged.Lines[at]
			held = line.Quantity
			line.Notice = cmp.Or(line.Notice, l.Notice)
			line.Metadata = fill(line.Metadata, l.Metadata)
			if len(line.Fields) == 0 {
				line.Fields = l.Fields
			}
		}
		quantity, ok := wanted(by, held, l.Quantity, before.Lines[l.ID])
		if !ok {
			continue
		}
		kept, cutBy := cut(bounds[l.ID], quantity, held, quantityOf(merged, l.ID)-held)
		line.Quantity = kept
		merged = with(merged, at, line)
		if after.Lines == nil {
			after.Lines = map[cart.LineID]int64{}
		}
		after.Lines[l.ID] = l.Quantity
		report.Lines++
		if cutBy != "" && len(report.Adjusted) < cart.AdjustedMax {
			report.Adjusted = append(report.Adjusted, cart.Adjustment{Line: l.ID, Requested: quantity, Kept: kept, Code: cutBy})
		}
	}
	redeemed := guest.Coupon != "" && before.Coupon == "" && c.Coupon == ""
	if redeemed {
		merged.Coupon = guest.Coupon
	}
	after.Coupon = cmp.Or(before.Coupon, guest.Coupon)
	if guest.Metadata != nil && !before.Metadata {
		merged.Metadata, after.Metadata = fill(c.Metadata, guest.Metadata), true
	}
	if report.Lines == 0 && !redeemed && len(merged.Metadata) == len(c.Metadata) {
		return c, after, nil
	}
	merged.Version = c.Version + 1
	return merged, after, report
}

// fill adds the guest's names that the customer's metadata does not have, in their order while there
// is room.
func fill(own, guests cart.Metadata) cart.Metadata {
	filled := maps.Clone(own)
	for _, name := range slices.Sorted(maps.Keys(guests)) {
		if _, has := own[name]; !has && len(filled) < cart.MergeFactor*cart.MaxMetadata {
			filled = put(filled, name, guests[name])
		}
	}
	return filled
}

// wanted is the quantity that a line gets before it is cut; held is 0 for no line. ok is
// false when what was offered before is all.
func wanted(s cart.Strategy, held, offered, before int64) (quantity int64, ok bool) {
	switch {
	case s == cart.Sum:
		return held + offered - before, offered > before
	case before > 0:
		return 0, false
	case held == 0 || s == cart.KeepGuest:
		return offered, true
	case s == cart.Max:
		return max(held, offered), true
	}
	return held, true
}

// Merge merges a guest's record: its cart (see the function Merge), and what it remembers, by a clock
// that is behind by the given duration. The room reserved for the guest's cart is free again. name is
// that of the report, and newID is for a cart that begins with this merge.
func (r Record) Merge(guest Record, by cart.Strategy, bounds map[cart.LineID]cart.Bounds, before Offers, name, newID string, behind time.Duration, now time.Time) (Record, Offers, *cart.MergeReport) {
	merged, after, report := Merge(r.Cart, guest.Cart, by, bounds, before)
	r = r.become(merged, newID)
	if report != nil {
		report.ID, report.At = name, now
		r.Merged = report
	}
	r.Memory = r.Memory.Join(guest.Memory, behind, now)
	r.Merges = maps.Clone(r.Merges)
	for name, m := range r.Merges {
		if m.CartID == guest.Cart.ID {
			r.Merges[name] = cart.Reservation{CartID: m.CartID, Applied: true}
		}
	}
	return r, after, report
}

// Merging reports whether a merge into a guest's cart must be finished before the cart is claimed itself.
func (r Record) Merging() bool {
	for _, m := range r.Merges {
		if m.Applied {
			return true
		}
	}
	return false
}

// Claimed is what a guest's token keeps when its cart is claimed: what it remembers, so that a
// retry with the token alone is still recognized, and the merges into its cart.
func (r Record) Claimed() Record { return Record{Memory: r.Memory, Merges: r.Merges} }
