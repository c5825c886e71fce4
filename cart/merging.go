package cart

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"commerce/auth/problem"
)

// Strategy says what becomes of a line that both carts hold.
type Strategy string

// The strategies.
const (
	Sum          Strategy = "sum"
	Max          Strategy = "max"
	KeepGuest    Strategy = "guest"
	KeepCustomer Strategy = "customer"
)

// ParseStrategy reads a setting.
func ParseStrategy(s string) (Strategy, error) {
	switch st := Strategy(s); st {
	case Sum, Max, KeepGuest, KeepCustomer:
		return st, nil
	}
	return "", fmt.Errorf("%q is none of sum, max, guest, customer", s)
}

// MergeReport tells a shopper what a merge did.
type MergeReport struct {
	ID       string    // names the merge, so that a client shows it once
	At       time.Time // of the merge
	Lines    int64     // lines that came from the guest's cart
	Adjusted []Adjustment
	Code     problem.Code // cart_full when a guest's cart waits until there is room for it; "" for none
}

const (
	ReportLife  = time.Minute // how long a report is kept
	AdjustedMax = 100         // adjustments of a report
)

// Adjustment is a line whose quantity was cut to what may be bought.
type Adjustment struct {
	Line      LineID
	Requested int64
	Kept      int64
	Code      problem.Code
}

// With adds to a report that another guest's cart waits for room; waits is nil if none does,
// and m is nil if nothing was merged.
func (m *MergeReport) With(waits *MergeReport) *MergeReport {
	if m == nil || waits == nil {
		return cmp.Or(m, waits)
	}
	both := *m
	both.Code = waits.Code
	return &both
}

// Offers is what one guest's cart has offered a customer's so far, so that to merge it
// again adds nothing. The zero value is nothing. Methods leave it untouched.
type Offers struct {
	Lines  map[LineID]int64 // quantities
	Coupon string
}

// Merge adds the lines of a guest's cart, each within its bounds (see MergeBounds), and
// reports what it did now; nil for nothing. The version grows by one when it did anything.
//
// A line that was offered before is left alone, except that Sum adds what has been offered
// beyond that. The customer's line keeps its order, price, fields and notice. A coupon is
// taken once, if the customer has none.
//
// redisstore/lua/apply.lua decides by the same rules; TestTwin_Merges in redisstore holds
// the two equal.
func (c Cart) Merge(guest Cart, by Strategy, bounds map[LineID]Bounds, before Offers) (Cart, Offers, *MergeReport) {
	merged, after, report := c, Offers{maps.Clone(before.Lines), before.Coupon}, &MergeReport{}
	for _, l := range guest.Lines {
		at := slices.IndexFunc(merged.Lines, func(own Line) bool { return own.ID == l.ID })
		var held int64
		if at >= 0 {
			held = merged.Lines[at].Quantity
		}
		wanted, ok := by.wanted(held, l.Quantity, before.Lines[l.ID])
		if !ok {
			continue
		}
		kept, cutBy := bounds[l.ID].cut(wanted, held, merged.quantityOf(l.ID)-held)
		merged = merged.with(at, merged.joined(at, l, kept))
		if after.Lines == nil {
			after.Lines = map[LineID]int64{}
		}
		after.Lines[l.ID] = l.Quantity
		report.Lines++
		if cutBy != "" && len(report.Adjusted) < AdjustedMax {
			report.Adjusted = append(report.Adjusted, Adjustment{Line: l.ID, Requested: wanted, Kept: kept, Code: cutBy})
		}
	}
	redeemed := guest.Coupon != "" && before.Coupon == "" && c.Coupon == ""
	if redeemed {
		merged.Coupon = guest.Coupon
	}
	after.Coupon = cmp.Or(before.Coupon, guest.Coupon)
	if report.Lines == 0 && !redeemed {
		return c, after, nil
	}
	merged.Version = c.Version + 1
	return merged, after, report
}

// wanted is the quantity that a line gets before it is cut; held is 0 for no line. ok is
// false when what was offered before is all.
func (s Strategy) wanted(held, offered, before int64) (quantity int64, ok bool) {
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

// joined is a guest's line as it joins the line at an index; -1 for none.
func (c Cart) joined(at int, guest Line, quantity int64) Line {
	if at >= 0 {
		own := c.Lines[at]
		if len(own.Fields) > 0 {
			guest.Fields = own.Fields
		}
		guest.Notice = cmp.Or(own.Notice, guest.Notice)
		guest.AddedPrice = own.AddedPrice
	}
	guest.Quantity = quantity
	return guest
}

// Merge merges a guest's record: its cart (see Cart.Merge), and what it remembers, by a
// clock that is behind by the given duration. The room reserved for the guest's cart is
// free again. name is that of the merge's report, and newID is for a cart that begins with this
// merge.
func (r Record) Merge(guest Record, by Strategy, bounds map[LineID]Bounds, before Offers, name, newID string, behind time.Duration, now time.Time) (Record, Offers, *MergeReport) {
	merged, after, report := r.Cart.Merge(guest.Cart, by, bounds, before)
	r = r.become(merged, newID)
	if report != nil {
		report.ID, report.At = name, now
		r.Merged = report
	}
	r.Memory = r.Memory.Join(guest.Memory, behind, now)
	r.Merges = maps.Clone(r.Merges)
	for name, m := range r.Merges {
		if m.CartID == guest.Cart.ID {
			r.Merges[name] = Reservation{CartID: m.CartID, Applied: true}
		}
	}
	return r, after, report
}

// Claimed is what a guest's token keeps when a customer claims its cart: what it
// remembers, so that a retry with the token alone is still recognized.
func (r Record) Claimed() Record { return Record{Memory: r.Memory} }
