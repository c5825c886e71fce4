package auth

import (
	"context"
	"fmt"
	"slices"

	"commerce/auth/store"
)

// MemoryStores is a directory of stores that never change.
type MemoryStores struct {
	byID  map[int64]*store.Store
	byKey map[string]*store.Store
	sole  *store.Store // nil with none or several
	known func(currency string) bool
}

var _ StoreDirectory = (*MemoryStores)(nil)

// NewMemoryStores returns a directory of copies of the given stores. If two stores
// share an id or a public key, the later one has it. knownCurrency reports whether the
// decimals of a currency are known.
func NewMemoryStores(knownCurrency func(code string) bool, stores ...*store.Store) *MemoryStores {
	m := &MemoryStores{
		byID: make(map[int64]*store.Store, len(stores)), byKey: make(map[string]*store.Store), known: knownCurrency,
	}
	for _, given := range stores {
		store := *given
		store.PublicKeys = slices.Clone(given.PublicKeys)
		store.PaymentMethods = slices.Clone(given.PaymentMethods)
		m.byID[store.ID] = &store
		for _, key := range store.PublicKeys {
			m.byKey[key] = &store
		}
		m.sole = &store
	}
	if len(m.byID) != 1 {
		m.sole = nil
	}
	return m
}

// ByID implements StoreDirectory.
func (m *MemoryStores) ByID(_ context.Context, id int64) (*store.Store, error) {
	return found(m.byID[id], m.known)
}

// ByPublicKey implements StoreDirectory.
func (m *MemoryStores) ByPublicKey(_ context.Context, key string) (*store.Store, error) {
	return found(m.byKey[key], m.known)
}

// Sole implements StoreDirectory.
func (m *MemoryStores) Sole(context.Context) (*store.Store, error) { return found(m.sole, m.known) }

// found returns a store that a directory found, or ErrNoStore for nil. A store in a
// currency whose decimals are not known is a different error: until its row or the
// release changes it has no carts and no subscriptions, since each of its amounts
// could be wrong by a factor of a hundred.
func found(store *store.Store, knownCurrency func(code string) bool) (*store.Store, error) {
	if store == nil {
		return nil, ErrNoStore
	}
	if !knownCurrency(store.Currency) {
		return nil, fmt.Errorf("store %d: unknown currency %q", store.ID, store.Currency)
	}
	return store, nil
}

// MemoryAPITokens is a source of API tokens that never change.
type MemoryAPITokens map[int64]APIToken

var _ APITokenSource = MemoryAPITokens(nil)

// NewMemoryAPITokens returns a source of the given tokens. If two share an
// id, the later one has it.
func NewMemoryAPITokens(tokens ...APIToken) MemoryAPITokens {
	m := MemoryAPITokens{}
	for _, t := range tokens {
		m[t.ID] = t
	}
	return m
}

// APIToken implements APITokenSource.
func (m MemoryAPITokens) APIToken(_ context.Context, id int64) (APIToken, error) {
	if t, ok := m[id]; ok {
		return t, nil
	}
	return APIToken{}, ErrNoAPIToken
}
