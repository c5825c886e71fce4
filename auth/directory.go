package auth

import (
	"context"
	"errors"

	"commerce/auth/store"
)

// ErrNoStore means that a store does not exist. Any other error of a directory means
// that the directory is unreachable or that the store cannot be served.
var ErrNoStore = errors.New("auth: no such store")

// StoreDirectory finds stores. Every request calls it once or twice, so an implementation
// that does I/O needs a cache.
type StoreDirectory interface {
	ByID(ctx context.Context, id int64) (*store.Store, error)
	ByPublicKey(ctx context.Context, key string) (*store.Store, error)
	// Sole returns the only store, or ErrNoStore if there are none or several.
	Sole(ctx context.Context) (*store.Store, error)
}
