package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"commerce/auth/problem"
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
	// ByHost finds the store of a request's Host, which may have a port.
	ByHost(ctx context.Context, host string) (*store.Store, error)
	// Sole returns the only store, or ErrNoStore if there are none or several.
	Sole(ctx context.Context) (*store.Store, error)
}

// directory implements StoreDirectory for a source of stores.
type directory struct {
	find          func(context.Context, storeKey) (*store.Store, error) // returns nil for none
	knownCurrency func(code string) bool
}

// storeKey identifies a store by one of its public keys, by its host or by its id. The zero
// value is the only store there is.
type storeKey struct {
	id              int64
	publicKey, host string
}

func (d directory) ByID(ctx context.Context, id int64) (*store.Store, error) {
	if id == 0 {
		return nil, ErrNoStore
	}
	return d.get(ctx, storeKey{id: id})
}

func (d directory) ByPublicKey(ctx context.Context, key string) (*store.Store, error) {
	if key == "" {
		return nil, ErrNoStore
	}
	return d.get(ctx, storeKey{publicKey: key})
}

func (d directory) ByHost(ctx context.Context, host string) (*store.Store, error) {
	host = (&url.URL{Host: host}).Hostname()
	if host = strings.ToLower(strings.TrimSuffix(host, ".")); !plainHost.MatchString(host) {
		return nil, ErrNoStore
	}
	return d.get(ctx, storeKey{host: host})
}

// plainHost matches every host that the tables accept.
var plainHost = regexp.MustCompile(`^[a-z0-9.-]{1,253}$`)

func (d directory) Sole(ctx context.Context) (*store.Store, error) { return d.get(ctx, storeKey{}) }

// get returns ErrNoStore if there is no store. A store in a currency whose decimals are not known is
// a problem.UnknownCurrency: it has no carts and no subscriptions.
func (d directory) get(ctx context.Context, key storeKey) (*store.Store, error) {
	store, err := d.find(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case store == nil:
		return nil, ErrNoStore
	case !d.knownCurrency(store.Currency):
		return nil, problem.UnknownCurrency(fmt.Sprintf("store %d", store.ID), store.Currency)
	}
	return store, nil
}
