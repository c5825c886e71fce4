// Package price has the rules of what a cart costs: prices, coupons, taxes, and what a shopper must know before
// checkout. Like package cart, it is pure.
package price

import (
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/money"
)

// highestTotal is the highest total of a cart. It does not compile if int64 cannot hold it.
const highestTotal = cart.MergeFactor * cart.MaxLines * cart.MaxQuantity * (2*cart.MaxPrice + cart.MaxFields*cart.MaxSurcharge) * (1 + cart.MaxTaxRate/1_000_000)

// Priced is a cart with the catalog's current prices.
type Priced struct {
	Cart      cart.Cart
	Lines     []Line // one for each line of the cart, in its order
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

type Line struct {
	*cart.Line
	Product  *cart.Product // nil when the store no longer has it
	Plan     *cart.Plan    // nil for none, or when it no longer exists
	Unit     cart.Unit     // zero when the product no longer exists
	Total    money.Amount
	Discount money.Amount // this line's part of the coupon's discount
	Issue    *cart.Issue  // nil when the line would pass validation
}

// Of prices a cart with the catalog's current products; a product without an entry no
// longer exists. Lines get stock in cart order. The coupon is not applied: see Redeem.
func Of(c cart.Cart, store *store.Store, products map[int64]*cart.Product, limits cart.Limits) Priced {
	priced := Priced{Cart: c, Lines: make([]Line, len(c.Lines))}
	var taken map[int64]int64 // by product, of those whose lines share stock or a maximum per cart
	broken := false
	for i := range c.Lines {
		l := &c.Lines[i]
		id := l.ID.Product()
		p := products[id]
		line := &priced.Lines[i]
		line.Line, line.Product = l, p
		line.Issue = cart.IssueOf(l, p, taken[id], limits)
		if p != nil {
			line.Plan = p.Plan(l.ID.Plan())
			line.Unit = p.UnitPrice(line.Plan, l.Fields)
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
