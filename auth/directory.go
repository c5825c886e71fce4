package auth

import (
	"context"
	"errors"

	"commerce/auth/store"
)

// ErrNoStore is a directory's answer that there is no such store. Any other
// error means that the directory is out of reach or that the store cannot be
// served.
var ErrNoStore = errors.New("auth: no such store")

// StoreDirectory finds stores. It is asked once or twice on every request, so
// an implementation that does I/O keeps a cache in front of it.
type StoreDirectory interface {
	ByID(ctx context.Context, id int64) (*store.Store, error)
	ByPublicKey(ctx context.Context, key string) (*store.Store, error)
	// Sole returns the only store there is; with none or several it returns
	// ErrNoStore.
	Sole(ctx context.Context) (*store.Store, error)
}
