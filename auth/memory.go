package auth

import (
	"context"
	"fmt"
	"slices"

	"commerce/auth/store"
	"commerce/cart/money"
)

// MemoryStores is a directory of stores that never change.
type MemoryStores struct {
	byID  map[int64]*store.Store
	byKey map[string]*store.Store
	sole  *store.Store // nil with none or several
}

var _ StoreDirectory = (*MemoryStores)(nil)

// NewMemoryStores returns a directory of copies of the given stores. Where two
// share an id or a public key, the later one has it.
func NewMemoryStores(stores ...*store.Store) *MemoryStores {
	m := &MemoryStores{byID: make(map[int64]*store.Store, len(stores)), byKey: make(map[string]*store.Store)}
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
	return found(m.byID[id])
}

// ByPublicKey implements StoreDirectory.
func (m *MemoryStores) ByPublicKey(_ context.Context, key string) (*store.Store, error) {
	return found(m.byKey[key])
}

// Sole implements StoreDirectory.
func (m *MemoryStores) Sole(context.Context) (*store.Store, error) { return found(m.sole) }

// found is a directory's answer: ErrNoStore for nil. A store in a currency whose
// decimals are not known is an error of its own. It has no carts and no
// subscriptions until its row or the release changes, since every amount of it
// could be wrong by a factor of a hundred.
func found(store *store.Store) (*store.Store, error) {
	if store == nil {
		return nil, ErrNoStore
	}
	if _, known := money.Digits(store.Currency); !known {
		return nil, fmt.Errorf("store %d: unknown currency %q", store.ID, store.Currency)
	}
	return store, nil
}

// MemoryAPITokens is a source of API tokens that never change.
type MemoryAPITokens struct{ byID map[int64]APIToken }

var _ APITokenSource = (*MemoryAPITokens)(nil)

// NewMemoryAPITokens returns a source of the given tokens. Where two share an
// id, the later one has it.
func NewMemoryAPITokens(tokens ...APIToken) *MemoryAPITokens {
	m := &MemoryAPITokens{byID: make(map[int64]APIToken, len(tokens))}
	for _, t := range tokens {
		m.byID[t.ID] = t
	}
	return m
}

// APIToken implements APITokenSource.
func (m *MemoryAPITokens) APIToken(_ context.Context, id int64) (APIToken, error) {
	t, ok := m.byID[id]
	if !ok {
		return APIToken{}, ErrNoAPIToken
	}
	return t, nil
}
