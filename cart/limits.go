package cart

import (
	"commerce/cart/money"
)

// Limits are the maximums for a cart. A merge may exceed Lines and CartText, up to
// MergeFactor times each.
type Limits struct {
	Lines    int64 // lines of a cart
	Quantity int64 // of one line
	LineText int64 // bytes of fields, notice and metadata of one line
	CartText int64 // bytes of fields, notices and metadata of a cart, its own included
}

// The highest values that an installation may set as its Limits.
const (
	MaxLines    = 500
	MaxQuantity = 10_000
)

// LineText and CartText of every installation.
const (
	MaxLineText = 4 << 10
	MaxCartText = 64 << 10
)

// The highest values that a catalog may hold. The schema in deploy/migrations has the same
// limits.
const (
	MaxPrice     money.Amount = 100_000_000_000 // of a product, and of a plan
	MaxSurcharge money.Amount = 10_000_000_000  // of an option
	MaxFields                 = 25              // of a product
	MaxTaxRate                = 1_000_000       // parts per million: 100 %
)

// MergeFactor multiplies Limits.Lines and Limits.CartText for a merge.
const MergeFactor = 2

// MaxCodes is how many codes of coupons a cart holds.
const MaxCodes = 5

// MaxNotice bounds the notice of a line, in characters.
const MaxNotice = 500

// The limits of metadata, of a line and of a cart. A merge may exceed MaxMetadata, up to MergeFactor
// times.
const (
	MaxMetadata      = 20  // names
	MaxMetadataName  = 40  // characters
	MaxMetadataValue = 500 // characters
)
