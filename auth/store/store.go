// Package store says what a store is to its carts and subscriptions.
package store

import "commerce/auth/locale"

// Store is one merchant's shop, as far as carts and tokens need it. A *Store that a
// directory returns is shared: read it, never write to it.
type Store struct {
	ID   int64
	Name string

	// PublicKeys are the publishable keys that a storefront may send as
	// X-Public-Key. They name the store and grant nothing.
	PublicKeys []string

	Host    string // of the storefront, in lower case, without a port; "": none
	CartURL string // of the page that takes handed-over carts, without a fragment; "": none

	Currency string        // ISO 4217; a directory returns an error for an unknown one
	Locale   locale.Locale // of texts, for a request that names no language

	// TaxRate is in parts per million: 150000 is 15 %.
	TaxRate          int64
	PricesIncludeTax bool

	Country  string   // ISO 3166-1 alpha-2; "": the buyer's country changes no tax
	TaxRates TaxRates // in other countries

	PaymentMethods []PaymentMethod // in display order
}

// PaymentMethod is one way to pay that a store offers at checkout.
type PaymentMethod struct {
	ID      string
	Name    locale.Text
	Icon    string // URL
	Enabled bool
}
