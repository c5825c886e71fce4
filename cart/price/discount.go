package price

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/money"
)

const (
	maxAutomatic = 25 // live automatic coupons that count, those with the lowest codes
	maxOffers    = 3
)

// Offered is a coupon that may take something off a cart: that of one of its codes, or an automatic one.
type Offered struct {
	Code   string  // that the cart holds; "" for an automatic coupon
	Coupon *Coupon // nil if the store does not have it
	Uses   Uses
}

// Discount is what one coupon takes off.
type Discount struct {
	*Coupon
	Amount money.Amount
	Lines  []money.Amount // parts of Amount, one for each line of the cart
}

// Offer is an automatic coupon that applies to a line, and lacks only an amount or only a quantity. One of both is set.
type Offer struct {
	*Coupon
	Amount   money.Amount
	Quantity int64

	reached, wanted int64 // of the amount or the quantity
}

// Redeem takes off what codes, in the cart's order, and automatic coupons, sorted by code, take off together: all live ones that
// combine, or the single one of the others that takes off more. A code that is not valid now, or not applied, has an issue.
func (p *Priced) Redeem(codes, automatic []Offered, store *store.Store, now time.Time) {
	p.Coupons = make([]AppliedCoupon, len(codes))
	live := make([]Offered, 0, len(codes)+len(automatic))
	for i, o := range codes {
		issue := o.Coupon.issue(p, false, o.Uses, store, now)
		if issue != nil && issue.Reason == CouponGone {
			issue.Sentence = textCouponGone.With(o.Code)
		}
		p.Coupons[i] = o.applied(issue)
		if p.Coupons[i].Issue == nil {
			live = append(live, o)
		}
	}
	live = append(live, p.automatic(automatic, now)...)
	p.Discounts = p.best(live)
	p.Discount = 0
	for i := range p.Lines {
		p.Lines[i].Discount = 0
	}
	for _, d := range p.Discounts {
		p.Discount += d.Amount
		for i, part := range d.Lines {
			p.Lines[i].Discount += part
		}
	}
	for i := range p.Coupons {
		p.Coupons[i].settle(p.Discounts)
	}
	p.Discounts = slices.DeleteFunc(p.Discounts, func(d Discount) bool { return d.Amount == 0 })
	p.addTax(store)
}

// automatic returns those automatic coupons that count, and keeps what is within reach of the others.
func (p *Priced) automatic(all []Offered, now time.Time) (live []Offered) {
	p.Offers = nil
	for _, o := range all {
		if len(live) == maxAutomatic {
			break
		}
		switch o.Coupon.reason(p, true, o.Uses, now) {
		case "":
			live = append(live, o)
		case CouponMinimum:
			if offer, ok := p.within(o.Coupon); ok {
				p.Offers = append(p.Offers, offer)
			}
		}
	}
	slices.SortStableFunc(p.Offers, func(a, b Offer) int { return compareShares(b, a) })
	p.Offers = p.Offers[:min(len(p.Offers), maxOffers)]
	return live
}

// within returns what a coupon lacks; false if it applies to no line, or if it lacks an amount and a quantity.
func (p *Priced) within(c *Coupon) (Offer, bool) {
	pieces := p.pieces(c)
	amount, quantity := max(0, c.Minimum-p.Buyable), max(0, c.MinQuantity-pieces)
	switch {
	case !c.appliesToAny(p.Lines):
	case amount == 0:
		return Offer{Coupon: c, Quantity: quantity, reached: pieces, wanted: c.MinQuantity}, true
	case quantity == 0:
		return Offer{Coupon: c, Amount: amount, reached: int64(p.Buyable), wanted: int64(c.Minimum)}, true
	}
	return Offer{}, false
}

// pieces counts those that can be bought, and to which a coupon applies.
func (p *Priced) pieces(c *Coupon) (n int64) {
	for i := range p.Lines {
		if l := &p.Lines[i]; l.Issue == nil && c.applies(l) {
			n += l.Quantity
		}
	}
	return n
}

// best returns what takes off more: all coupons that combine, or one of the others. Among equal ones, a code wins, then those
// that combine, then the lower code.
func (p *Priced) best(live []Offered) []Discount {
	slices.SortStableFunc(live, func(a, b Offered) int { return strings.Compare(a.Coupon.Code, b.Coupon.Code) })
	var together []Offered
	for _, o := range live {
		if o.Coupon.Combines {
			together = append(together, o)
		}
	}
	best := p.take(together)
	var taken money.Amount
	for _, d := range best {
		taken += d.Amount
	}
	coded := slices.ContainsFunc(together, func(o Offered) bool { return o.Code != "" })
	single := -1
	for i, o := range live {
		if o.Coupon.Combines {
			continue
		}
		amount := p.alone(o.Coupon)
		if len(together) == 0 && single < 0 || amount > taken || amount == taken && o.Code != "" && !coded {
			single, taken, coded = i, amount, o.Code != ""
		}
	}
	if single >= 0 {
		return p.take(live[single : single+1])
	}
	return best
}

// take returns what coupons take off one after the other: percentages first, then fixed amounts, each of what the earlier ones
// left of its lines, rounded once and split in proportion to that.
func (p *Priced) take(set []Offered) []Discount {
	if len(set) == 0 {
		return nil
	}
	all, left, costs := make([]Discount, 0, len(set)), make([]money.Amount, len(p.Lines)), make([]money.Amount, len(p.Lines))
	for i := range p.Lines {
		left[i] = p.Lines[i].Total
	}
	for _, kind := range []CouponKind{Percent, Fixed} {
		for _, o := range set {
			if o.Coupon.Kind != kind {
				continue
			}
			var cost money.Amount
			for i := range costs {
				if costs[i] = 0; o.Coupon.applies(&p.Lines[i]) {
					costs[i] = left[i]
					cost += left[i]
				}
			}
			d := Discount{Coupon: o.Coupon, Amount: o.Coupon.discount(cost)}
			d.Lines = money.Split(d.Amount, costs)
			for i, part := range d.Lines {
				left[i] -= part
			}
			all = append(all, d)
		}
	}
	return all
}

// alone is what a coupon takes off without others.
func (p *Priced) alone(c *Coupon) money.Amount {
	var cost money.Amount
	for i := range p.Lines {
		if l := &p.Lines[i]; c.applies(l) {
			cost += l.Total
		}
	}
	return c.discount(cost)
}

// AppliedCoupon is the coupon of a code that a priced cart holds.
type AppliedCoupon struct {
	Code     string       // as the catalog spells it
	Kind     CouponKind   // "" for a coupon that no longer exists
	Rate     int64        // of a percent coupon: parts per million
	Amount   money.Amount // of a fixed coupon
	Discount money.Amount // what it takes off
	Issue    *CouponIssue // why it takes nothing off now; nil when it is applied
}

func (o Offered) applied(issue *CouponIssue) AppliedCoupon {
	a := AppliedCoupon{Code: o.Code, Issue: issue}
	if c := o.Coupon; c != nil {
		a.Code, a.Kind, a.Rate, a.Amount = c.Code, c.Kind, c.Rate, c.Amount
	}
	return a
}

// settle tells a coupon without an issue what it takes off, or that it does not combine with what is applied.
func (a *AppliedCoupon) settle(applied []Discount) {
	if a.Issue != nil {
		return
	}
	if i := slices.IndexFunc(applied, func(d Discount) bool { return d.Code == a.Code }); i >= 0 {
		a.Discount = applied[i].Amount
		return
	}
	a.Issue = &CouponIssue{CouponNotCombined, textCouponNotCombined.With(a.Code)}
}

// WithCode returns the codes that the cart holds once it also holds that of another coupon, and those that leave: those that are over,
// and those that do not combine with it. held has the cart's own, in its order. If it joins them, those that are over stay, and
// it is refused if it does not combine with the others. A sixth code is refused. The reason is the data of a refusal.
func (p *Priced) WithCode(held []Offered, added *Coupon, joins bool, now time.Time, member string) (codes, replaced []string, _ *problem.Error) {
	refuse := func(reason CouponReason, sentence locale.Sentence) ([]string, []string, *problem.Error) {
		return nil, nil, &problem.Error{Code: problem.CouponInvalid, Data: reason, Faults: []problem.Fault{{Member: member, Sentence: sentence}}}
	}
	for _, o := range held {
		over := o.over(now)
		switch combine := !over && o.Coupon.Combines && added.Combines; {
		case o.Code == added.Code:
			return p.Cart.Coupons, nil, nil
		case combine, over && joins:
			codes = append(codes, o.Code)
		case joins:
			return refuse(CouponNotCombined, textCouponDoesNotJoin.With(added.Code))
		default:
			replaced = append(replaced, o.Code)
		}
	}
	if len(codes) == cart.MaxCodes {
		return refuse(CouponTooMany, textCouponTooMany.With(cart.MaxCodes))
	}
	return append(codes, added.Code), replaced, nil
}

// over reports whether a code will not count again: its coupon is gone, expired or used up.
func (o Offered) over(now time.Time) bool {
	c := o.Coupon
	return c == nil || c.Automatic || c.expired(now) || c.usedUp(o.Uses) || c.usedByCustomer(o.Uses)
}

// Title is the name of the discount in a language: the merchant's, or else its code.
func (c *Coupon) Title(l locale.Locale) string { return cmp.Or(c.Name.In(l), c.Code) }

// compareShares compares how near two offers are.
func compareShares(a, b Offer) int {
	hiA, loA := bits.Mul64(uint64(a.reached), uint64(b.wanted))
	hiB, loB := bits.Mul64(uint64(b.reached), uint64(a.wanted))
	return cmp.Or(cmp.Compare(hiA, hiB), cmp.Compare(loA, loB))
}
