package cart

import (
	"commerce/auth/store"
	"commerce/cart/money"
)

// Unit is the price of one piece of a line, by its parts.
type Unit struct {
	Base   money.Amount // the product's price now
	Addons money.Amount // surcharges of the chosen options
	Plan   money.Amount
}

func (u Unit) Total() money.Amount { return u.Base + u.Addons + u.Plan }

// unitPrice prices one piece. A nil plan is no plan. Answers to fields or options that no
// longer exist cost nothing; their line has an issue.
func unitPrice(p *Product, plan *Plan, fields []FieldValue) Unit {
	u := Unit{Base: p.Price}
	for _, a := range fields {
		if o := p.Field(a.Name).Option(a.Value); o != nil {
			u.Addons += o.Price
		}
	}
	if plan != nil {
		u.Plan = plan.Price
	}
	return u
}

// Priced is a cart with the catalog's current prices.
type Priced struct {
	Cart      Cart
	Lines     []PricedLine // one for each line of the cart, in its order
	Subtotal  money.Amount
	Coupons   []AppliedCoupon // one for each code of the cart, in its order
	Discounts []Discount      // that take something off, in the order in which they are applied
	Offers    []Offer         // what is within reach, the nearest first
	Discount  money.Amount    // the sum of Discounts, and of the lines' discounts
	Tax       money.Amount    // contained in Total, whether or not prices include it
	TaxLines  []TaxLine       // one for each rate, the highest first; their amounts sum to Tax
	Total     money.Amount

	Buyable money.Amount // sum of the lines without an issue
}

type PricedLine struct {
	*Line
	Product  *Product // nil when the store no longer has it
	Plan     *Plan    // nil for none, or when it no longer exists
	Unit     Unit     // zero when the product no longer exists
	Total    money.Amount
	Discount money.Amount // this line's part of the coupon's discount
	Issue    *Issue       // nil when the line would pass validation
}

// Price prices a cart with the catalog's current products; a product without an entry no
// longer exists. Lines get stock in cart order. The coupon is not applied: see Redeem.
func Price(c Cart, store *store.Store, products map[int64]*Product, limits Limits) Priced {
	priced := Priced{Cart: c, Lines: make([]PricedLine, len(c.Lines))}
	var taken map[int64]int64 // by product, of those whose lines share stock or a maximum per cart
	broken := false
	for i := range c.Lines {
		l := &c.Lines[i]
		id := l.ID.Product()
		p := products[id]
		line := &priced.Lines[i]
		line.Line, line.Product = l, p
		line.Issue = issueOf(l, p, taken[id], limits)
		if p != nil {
			line.Plan = p.Plan(l.ID.Plan())
			line.Unit = unitPrice(p, line.Plan, l.Fields)
			line.Total = line.Unit.Total() * money.Amount(l.Quantity)
			if p.Stock != nil || p.MaxPerCart != nil {
				if taken == nil {
					taken = map[int64]int64{}
				}
				taken[id] += l.Quantity
			}
		}
		priced.Subtotal += line.Total
		if line.Issue == nil {
			priced.Buyable += line.Total
		} else {
			broken = true
		}
	}
	if broken {
		mend(priced.Lines, limits)
	}
	priced.addTax(store)
	return priced
}
