package price

import (
	"cmp"
	"slices"

	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/money"
)

// TaxLine is the tax at one rate on all of a cart's lines that have it.
type TaxLine struct {
	Rate   int64        // parts per million
	Base   money.Amount // what is taxed: after the discount, without the tax
	Amount money.Amount // rounded once
}

// addTax computes the tax and the total from the lines and their discounts. Tax is rounded
// once for each rate. A line whose product no longer exists costs nothing and has no rate.
func (p *Priced) addTax(store *store.Store) {
	p.TaxLines, p.Tax = p.TaxLines[:0], 0
	for i := range p.Lines {
		if l := &p.Lines[i]; l.Product != nil {
			p.taxLine(taxRate(l.Product, store, p.Cart.Buyer.Country)).Base += l.Total - l.Discount
		}
	}
	for i := range p.TaxLines {
		t := &p.TaxLines[i]
		if store.PricesIncludeTax {
			t.Amount = money.IncludedShare(t.Base, t.Rate)
			t.Base -= t.Amount
		} else {
			t.Amount = money.Share(t.Base, t.Rate)
		}
		p.Tax += t.Amount
	}
	slices.SortFunc(p.TaxLines, func(a, b TaxLine) int { return cmp.Compare(b.Rate, a.Rate) })
	p.Total = p.Subtotal - p.Discount
	if !store.PricesIncludeTax {
		p.Total += p.Tax
	}
}

// taxLine finds or adds the line of a rate. The pointer is valid until the next one is added.
func (p *Priced) taxLine(rate int64) *TaxLine {
	if i := slices.IndexFunc(p.TaxLines, func(t TaxLine) bool { return t.Rate == rate }); i >= 0 {
		return &p.TaxLines[i]
	}
	p.TaxLines = append(p.TaxLines, TaxLine{Rate: rate})
	return &p.TaxLines[len(p.TaxLines)-1]
}

// taxRate returns the rate of a product in parts per million. What a product of the standard class does not bear at home, it bears
// nowhere; any other rate of its own holds at home alone.
func taxRate(p *cart.Product, s *store.Store, country string) int64 {
	class := cmp.Or(p.TaxClass, store.StandardTax)
	untaxed := class == store.StandardTax && p.TaxRate != nil && *p.TaxRate == 0
	switch {
	case s.Abroad(country) && untaxed:
		return 0
	case s.Abroad(country):
		return s.TaxAbroad(country, class)
	case p.TaxRate != nil:
		return *p.TaxRate
	}
	return s.TaxRate
}
