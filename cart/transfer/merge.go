package transfer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"commerce/auth/problem"
	"commerce/cart"
)

// Strategy says what becomes of a line that both carts hold.
type Strategy string

const (
	Sum          Strategy = "sum"
	Max          Strategy = "max"
	KeepGuest    Strategy = "guest"
	KeepCustomer Strategy = "customer"
)

func ParseStrategy(s string) (Strategy, error) {
	switch st := Strategy(s); st {
	case Sum, Max, KeepGuest, KeepCustomer:
		return st, nil
	}
	return "", fmt.Errorf("%q is none of sum, max, guest, customer", s)
}

// Offers is what one guest's cart has offered an owner's so far, so that to merge it
// again adds nothing. The zero value is nothing.
type Offers struct {
	Lines   map[cart.LineID]int64 // quantities
	Coupons []string
	Buyer   cart.Buyer

	Metadata bool // the cart's own

	Note string // name of the hand-over's note under which it came first; "" for a login
}

// MergeRules say what becomes of what both carts hold.
type MergeRules struct {
	Strategy Strategy
	Bounds   map[cart.LineID]cart.Bounds // of the guest's lines: see MergeBounds
	Combine  map[string]bool             // codes whose coupons combine with others; nil: none does
}

// Merged is what a merge makes of an owner's cart. Without a Report, it has merged nothing now.
type Merged struct {
	cart.Cart
	Offers Offers
	Report *cart.MergeReport // without an ID and a time
	Came   CameIn            // for its undo
}

// Merge adds the lines of a guest's cart, each within its bounds (see MergeBounds). What was offered before stays: only a line
// of which more is offered now, because a failover has brought the guest's cart back, is merged again. The owner's line keeps
// its order, price, fields and notice, and its values of metadata. Codes are taken once, while all combine, the
// buyer's country once, if the owner has none, and so is the cart's metadata.
func Merge(c, guest cart.Cart, rules MergeRules, before Offers) Merged {
	m := Merged{Cart: c, Offers: before, Came: CameIn{Lines: map[cart.LineID]CameLine{}}}
	m.Lines, m.Offers.Lines = slices.Clone(c.Lines), maps.Clone(before.Lines)
	var report cart.MergeReport
	for i := range guest.Lines {
		m.line(&guest.Lines[i], rules.Strategy, rules.Bounds[guest.Lines[i].ID], &report)
	}
	m.codes(guest.Coupons, rules.Combine)
	if before.Buyer == (cart.Buyer{}) && c.Buyer == (cart.Buyer{}) {
		m.Buyer, m.Came.Buyer = guest.Buyer, guest.Buyer
	}
	m.Offers.Buyer = cmp.Or(before.Buyer, guest.Buyer)
	if guest.Metadata != nil && !before.Metadata {
		m.Metadata, m.Came.Metadata = fill(c.Metadata, guest.Metadata)
		m.Offers.Metadata = true
	}
	if report.Lines > 0 || m.Came.Coupons != nil || m.Came.Buyer != (cart.Buyer{}) || m.Came.Metadata != nil {
		m.Report, m.Version = &report, c.Version+1
	}
	return m
}

// codes takes the guest's codes that were not offered before, in their order, while all of the cart combine.
func (m *Merged) codes(guests []string, combine map[string]bool) {
	held, offered := slices.Clone(m.Coupons), slices.Clone(m.Offers.Coupons)
	apart := func(code string) bool { return !combine[code] }
	joins := true
	for _, code := range guests {
		if slices.Contains(offered, code) {
			continue
		}
		offered = append(offered, code)
		if !joins || slices.Contains(held, code) {
			continue
		}
		joins = len(held) == 0 || len(held) < cart.MaxCodes && combine[code] && !slices.ContainsFunc(held, apart)
		if joins {
			held, m.Came.Coupons = append(held, code), append(m.Came.Coupons, code)
		}
	}
	m.Coupons, m.Offers.Coupons = held, offered
}

// line merges a guest's line.
func (m *Merged) line(l *cart.Line, by Strategy, bounds cart.Bounds, report *cart.MergeReport) {
	own, held := m.Line(l.ID), int64(0)
	if own != nil {
		held = own.Quantity
	}
	quantity, ok := wanted(by, held, l.Quantity, m.Offers.Lines[l.ID])
	if !ok {
		return
	}
	kept, cutBy := cut(bounds, quantity, held, m.Held(l.ID)-held)
	line, came := *l, CameLine{Before: held, After: kept, Price: l.AddedPrice, Notice: l.Notice, Metadata: l.Metadata}
	if own != nil {
		line = *own
		if line.Notice != "" {
			came.Notice = ""
		}
		line.Notice = cmp.Or(line.Notice, l.Notice)
		line.Metadata, came.Metadata = fill(line.Metadata, l.Metadata)
		if len(line.Fields) == 0 {
			line.Fields = l.Fields
		}
	}
	line.Quantity = kept
	if own != nil {
		*own = line
	} else {
		m.Lines = append(m.Lines, line)
	}
	if came.After > came.Before || came.Notice != "" || came.Metadata != nil {
		m.Came.Lines[l.ID] = came
	}
	if m.Offers.Lines == nil {
		m.Offers.Lines = map[cart.LineID]int64{}
	}
	m.Offers.Lines[l.ID] = l.Quantity
	report.Lines++
	if cutBy != "" && len(report.Adjusted) < adjustedMax {
		report.Adjusted = append(report.Adjusted, cart.Adjustment{Line: l.ID, Requested: quantity, Kept: kept, Code: cutBy})
	}
}

// adjustedMax is how many adjustments a report has.
const adjustedMax = 100

// fill adds names that the owner's metadata lacks, in order while there is room, and returns those that it has added.
func fill(own, guests cart.Metadata) (filled, added cart.Metadata) {
	for _, name := range slices.Sorted(maps.Keys(guests)) {
		if _, has := own[name]; !has && len(own) < cart.MergeFactor*cart.MaxMetadata {
			one := cart.Metadata{name: guests[name]}
			own, added = own.With(one), added.With(one)
		}
	}
	return own, added
}

// wanted is the quantity that a line gets before it is cut; held is 0 for no line. ok is
// false when what was offered before is all. What is offered beyond that is gained since: it is added, whatever the strategy
// has made of the rest, unless the owner's quantity always counts.
func wanted(s Strategy, held, offered, before int64) (quantity int64, ok bool) {
	switch {
	case offered <= before:
		return 0, false
	case s == Sum, before > 0 && (held == 0 || s != KeepCustomer):
		return held + offered - before, true
	case held == 0 || s == KeepGuest:
		return offered, true
	case s == Max:
		return max(held, offered), true
	}
	return held, true
}

// cut limits the quantity that a merge would give a line. The result is at least 1, and never below
// what the customer had. by is the code of the bound that cut the quantity; "" if none did.
func cut(b cart.Bounds, wanted, held, inCart int64) (kept int64, by problem.Code) {
	most, by := b.Max, cart.AboveMaxQuantity
	if b.PerCart > 0 {
		most = min(most, b.PerCart-inCart)
	}
	if b.Stock > 0 && b.Stock-inCart < most {
		most, by = b.Stock-inCart, problem.InsufficientStock
	}
	kept = wanted
	if kept > most {
		kept = most
	} else {
		by = cart.OffStep
	}
	if b.OffStep(kept) {
		kept -= (kept - b.Min) % b.Step
	}
	if kept = max(kept, min(wanted, held), 1); kept == wanted {
		by = ""
	}
	return kept, by
}

// MergeBounds returns the bounds for each line of a guest's cart in a merge. A line that
// cannot be bought at all moves unchanged and keeps its issue: only the service's own
// limit applies to it.
func MergeBounds(guest cart.Cart, products map[int64]*cart.Product, limits cart.Limits) map[cart.LineID]cart.Bounds {
	bounds := make(map[cart.LineID]cart.Bounds, len(guest.Lines))
	for _, l := range guest.Lines {
		p := products[l.ID.Product()]
		b := cart.BoundsOf(p, limits)
		if p == nil || !p.Active || b.Stock == 0 {
			b = cart.Bounds{Stock: -1, Max: limits.Quantity}
		}
		bounds[l.ID] = b
	}
	return bounds
}
