package cart

import "commerce/cart/money"

// Limits bound what a cart may hold. A merge may fill a customer's cart past Lines and
// CartText, up to MergeFactor times either.
type Limits struct {
	Lines    int64 // lines of a cart
	Quantity int64 // of one line
	LineText int64 // bytes of fields and notice of one line
	CartText int64 // bytes of fields and notices of a cart
}

// The highest values that an installation may set as its Limits.
const (
	MaxLines    = 500
	MaxQuantity = 10_000
	MaxText     = 1_000_000 // bytes of LineText and of CartText
)

// The highest values that a catalogue may hold. The schema in deploy/migrations has
// the same ones.
const (
	MaxPrice     money.Amount = 100_000_000_000 // of a product, and of a plan
	MaxSurcharge money.Amount = 10_000_000_000  // of an option
	MaxFields                 = 25              // of a product
	MaxTaxRate                = 1_000_000       // parts per million: 100 %
)

// MergeFactor is how many times its limits of lines and text a merge may fill a cart.
const MergeFactor = 2

// highestTotal is the total of a cart in which everything is at its highest. It does
// not compile if int64 cannot hold it, so no total overflows.
const highestTotal = MergeFactor * MaxLines * MaxQuantity * (2*MaxPrice + MaxFields*MaxSurcharge) * (1 + MaxTaxRate/1_000_000)
