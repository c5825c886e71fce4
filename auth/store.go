package auth

import (
	"context"
	"errors"

	"commerce/cart/locale"
)

// Store is one merchant's shop, as far as its carts and tokens need it. A
// *Store that a directory hands out is shared: read it, never write to it.
type Store struct {
	ID   int64
	Name string

	// PublicKeys are the publishable keys a storefront may send as
	// X-Public-Key. They name the store and open nothing.
	PublicKeys []string

	Currency string        // ISO 4217; a directory returns an error for an unknown one
	Locale   locale.Locale // of texts, for a request that asks for no language

	// TaxRate is in parts per million: 150000 is 15 %.
	TaxRate          int64
	PricesIncludeTax bool

	PaymentMethods []PaymentMethod // in the order to be shown
}

// PaymentMethod is one way to pay that a store offers at checkout.
type PaymentMethod struct {
	ID      string
	Name    locale.Text
	Icon    string // URL
	Enabled bool
}

// ErrNoStore is a directory's answer that there is no such store. Any other
// error means that the directory is out of reach or that the store cannot be
// served.
var ErrNoStore = errors.New("auth: no such store")

// StoreDirectory finds stores. It is asked once or twice on every request, so
// an implementation that does I/O keeps a cache in front of it.
type StoreDirectory interface {
	ByID(ctx context.Context, id int64) (*Store, error)
	ByPublicKey(ctx context.Context, key string) (*Store, error)
	// Sole returns the only store there is; with none or several it returns
	// ErrNoStore.
	Sole(ctx context.Context) (*Store, error)
}
