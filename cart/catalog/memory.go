// Package catalog provides products and coupons from Postgres, from memory, or through a cache.
package catalog

import (
	"context"
	"slices"
	"strings"
	"sync"

	"commerce/cart"
	"commerce/cart/price"
)

// Memory is for the demo and tests. It is safe for concurrent use.
type Memory struct {
	mu       sync.RWMutex
	products map[productKey]*cart.Product
	coupons  map[couponKey][]*price.Coupon
	uses     map[couponKey]map[int64]string // customer, "" for a guest, by order
}

type (
	productKey struct{ store, product int64 }
	couponKey  struct {
		store int64
		code  string // of uses as the catalog spells it, of coupons as cart.CouponKey returns it
	}
)

// NewMemory returns a Memory with products, keyed by store ID.
func NewMemory(products map[int64][]*cart.Product) *Memory {
	m := &Memory{
		products: map[productKey]*cart.Product{}, coupons: map[couponKey][]*price.Coupon{},
		uses: map[couponKey]map[int64]string{},
	}
	for store, list := range products {
		for _, p := range list {
			m.Put(store, p)
		}
	}
	return m
}

// Put adds a product or replaces it. The product must not be changed afterwards.
func (m *Memory) Put(store int64, p *cart.Product) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.products[productKey{store, p.ID}] = p
}

// Change replaces a product with a copy that change has modified, and returns the copy; nil
// if the store does not have the product. Changes run one at a time. change must not modify
// what the product points to, only replace it, because others may be reading it.
func (m *Memory) Change(store, id int64, change func(*cart.Product)) *cart.Product {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := productKey{store, id}
	old := m.products[key]
	if old == nil {
		return nil
	}
	changed := *old
	change(&changed)
	m.products[key] = &changed
	return &changed
}

func (m *Memory) Delete(store, id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.products, productKey{store, id})
}

// PutCoupon adds a coupon or replaces it. The coupon must not be changed afterwards.
func (m *Memory) PutCoupon(store int64, c *price.Coupon) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.putCoupon(store, c.Code, c)
}

func (m *Memory) DeleteCoupon(store int64, code string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.putCoupon(store, code)
}

// putCoupon replaces the coupon with a code. It copies the list, because others may be reading it.
func (m *Memory) putCoupon(store int64, code string, by ...*price.Coupon) {
	key := couponKey{store, cart.CouponKey(code)}
	for _, c := range m.coupons[key] {
		if c.Code != code {
			by = append(by, c)
		}
	}
	m.coupons[key] = by
}

// PutUse records that an order of a customer, "" for a guest, used a coupon. An order uses
// a coupon once.
func (m *Memory) PutUse(store int64, code, customer string, order int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := couponKey{store, code}
	if m.uses[key] == nil {
		m.uses[key] = map[int64]string{}
	}
	if _, again := m.uses[key][order]; !again {
		m.uses[key][order] = customer
	}
}

func (m *Memory) Uses(_ context.Context, store int64, code, customer string, limit int64) (n int64, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, user := range m.uses[couponKey{store, code}] {
		if n < limit && (customer == "" || user == customer) {
			n++
		}
	}
	return n, nil
}

func (m *Memory) Automatic(_ context.Context, store int64) (automatic []*price.Coupon, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for key, alike := range m.coupons {
		for _, c := range alike {
			if key.store == store && c.Automatic {
				automatic = append(automatic, c)
			}
		}
	}
	slices.SortFunc(automatic, byCode)
	return automatic, nil
}

func byCode(a, b *price.Coupon) int { return strings.Compare(a.Code, b.Code) }

func (m *Memory) CouponsByKey(_ context.Context, store int64, key string) ([]*price.Coupon, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.coupons[couponKey{store, key}], nil
}

// Reachable implements service.Catalog. It is always true.
func (m *Memory) Reachable() bool { return true }

func (m *Memory) Products(_ context.Context, store int64, ids []int64) (map[int64]*cart.Product, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := make(map[int64]*cart.Product, len(ids))
	for _, id := range ids {
		if p := m.products[productKey{store, id}]; p != nil {
			found[id] = p
		}
	}
	return found, nil
}
