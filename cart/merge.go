package cart

import (
	"cmp"
	"maps"
	"slices"
)

// Offers is what one guest's cart has offered a customer's so far, so that to merge it
// again adds nothing. The zero value is nothing.
type Offers struct {
	Lines  map[LineID]int64 // quantities
	Coupon string

	Metadata bool // the cart's own
}

// Merge adds the lines of a guest's cart, each within its bounds (see MergeBounds), and reports
// what it did now; nil for nothing. A line that was offered before stays, except that Sum adds what
// has been offered beyond that. The customer's line keeps its order, price, fields and notice, and its
// values of metadata. A coupon is taken once, if the customer has none, and so is the cart's metadata. Redis merges by
// redisstore/lua/apply.lua, which tests compare with this.
func Merge(c, guest Cart, by Strategy, bounds map[LineID]Bounds, before Offers) (Cart, Offers, *MergeReport) {
	merged, after, report := c, Offers{maps.Clone(before.Lines), before.Coupon, before.Metadata}, &MergeReport{}
	for _, l := range guest.Lines {
		at := slices.IndexFunc(merged.Lines, func(own Line) bool { return own.ID == l.ID })
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
		kept, cutBy := cut(bounds[l.ID], quantity, held, merged.held(l.ID)-held)
		line.Quantity = kept
		merged = merged.with(at, line)
		if after.Lines == nil {
			after.Lines = map[LineID]int64{}
		}
		after.Lines[l.ID] = l.Quantity
		report.Lines++
		if cutBy != "" && len(report.Adjusted) < AdjustedMax {
			report.Adjusted = append(report.Adjusted, Adjustment{Line: l.ID, Requested: quantity, Kept: kept, Code: cutBy})
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

// fill adds names that the customer's metadata lacks, in order while there is room.
func fill(own, guests Metadata) Metadata {
	for _, name := range slices.Sorted(maps.Keys(guests)) {
		if _, has := own[name]; !has && len(own) < MergeFactor*MaxMetadata {
			own = own.With(Metadata{name: guests[name]})
		}
	}
	return own
}

// wanted is the quantity that a line gets before it is cut; held is 0 for no line. ok is
// false when what was offered before is all.
func wanted(s Strategy, held, offered, before int64) (quantity int64, ok bool) {
	switch {
	case s == Sum:
		return held + offered - before, offered > before
	case before > 0:
		return 0, false
	case held == 0 || s == KeepGuest:
		return offered, true
	case s == Max:
		return max(held, offered), true
	}
	return held, true
}
