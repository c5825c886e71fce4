package auth

import (
	"context"
	"slices"

	"commerce/auth/store"
)

// MemoryStores is a directory of stores that never change.
type MemoryStores struct{ directory }

var _ StoreDirectory = (*MemoryStores)(nil)

// NewMemoryStores returns a directory of copies of the given stores. If two stores
// share an id, a host or a public key, the later one has it. knownCurrency reports whether the
// decimals of a currency are known.
func NewMemoryStores(knownCurrency func(code string) bool, stores ...*store.Store) *MemoryStores {
	known := map[storeKey]*store.Store{}
	for _, given := range stores {
		store := *given
		store.PublicKeys = slices.Clone(given.PublicKeys)
		store.PaymentMethods = slices.Clone(given.PaymentMethods)
		known[storeKey{}], known[storeKey{id: store.ID}] = &store, &store
		if store.Host != "" {
			known[storeKey{host: store.Host}] = &store
		}
		for _, key := range store.PublicKeys {
			known[storeKey{publicKey: key}] = &store
		}
	}
	if slices.ContainsFunc(stores, func(s *store.Store) bool { return s.ID != stores[0].ID }) {
		delete(known, storeKey{})
	}
	find := func(_ context.Context, key storeKey) (*store.Store, error) { return known[key], nil }
	return &MemoryStores{directory{find, knownCurrency}}
}

// MemoryAPITokens is a source of API tokens that never change, by ID.
type MemoryAPITokens map[int64]APIToken

var _ APITokenSource = MemoryAPITokens(nil)

func (m MemoryAPITokens) APIToken(_ context.Context, id int64) (APIToken, error) {
	if t, ok := m[id]; ok {
		return t, nil
	}
	return APIToken{}, ErrNoAPIToken
}
