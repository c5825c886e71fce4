package catalog

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"commerce/auth/lastknown"
	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/price"
)

// Source is the catalog behind a Cache. See service.Catalog and service.Coupons.
type Source interface {
	Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error)
	CouponsByKey(ctx context.Context, store int64, key string) ([]*price.Coupon, error)
	Automatic(ctx context.Context, store int64) ([]*price.Coupon, error)
	Uses(ctx context.Context, store int64, code, customer string, limit int64) (int64, error)
}

// CacheConfig configures a Cache. Source is required.
type CacheConfig struct {
	Source Source

	// Server is the name of the source's server, for the log.
	Server string

	// Memory is the approximate limit in bytes. Default 128 MiB: about 100,000 products.
	Memory uint64

	// See lastknown.Config. of is one of the names below.
	Patience time.Duration
	Shown    func(of string, delay time.Duration)
	Log      *slog.Logger
	Now      func() time.Time
}

// Cache serves products and coupons from memory. It loads the missing ones of a cart with
// one query, and serves stale ones while the source is unreachable. A change at the source
// shows within a second, or immediately after Invalidate; a use of a coupon shows within a
// minute. It is safe for concurrent use.
type Cache struct {
	products *lastknown.Cache[productKey, *cart.Product]
	coupons  *lastknown.Cache[couponKey, []*price.Coupon]
	uses     *lastknown.Cache[useKey, int64]

	// automatic has an entry for each store, also for one without automatic coupons.
	automatic *lastknown.Cache[int64, []*price.Coupon]
}

// The names of what a Cache holds, for Shown.
const (
	ofProducts = "products"
	ofCoupons  = "coupons"
	ofUses     = "coupon_uses"

	ofAutomatic = "automatic_coupons"
)

// useKey identifies a number of uses. The limit is part of it, because a count that ended at
// a lower limit is not valid for a higher one.
type useKey struct {
	couponKey
	customer string // "" for all
	limit    int64
}

// Uses send no messages, because each order would send one and make every instance count
// again. Checkout decides in its own transaction.
const (
	usesRefreshAfter = 20 * time.Second
	usesMaxAge       = 50 * time.Second // and a load, so less than a minute
)

func NewCache(c CacheConfig) *Cache {
	c.Memory = cmp.Or(c.Memory, 128<<20)
	return &Cache{
		products: newCache(c, ofProducts, lastknown.Config[productKey, *cart.Product]{
			Name: "products", Source: c.loadProducts, MaxWeight: c.Memory, Weigh: productWeight,
		}),
		coupons: newCache(c, ofCoupons, lastknown.Config[couponKey, []*price.Coupon]{
			Name: "coupons", Source: lastknown.Each(c.loadCoupons), MaxLoads: 4,
			MaxWeight: c.Memory / 8, Weigh: couponWeight,
		}),
		automatic: newCache(c, ofAutomatic, lastknown.Config[int64, []*price.Coupon]{
			Name: "automatic coupons", Source: lastknown.Each(c.loadAutomatic), MaxLoads: 4,
			MaxWeight: c.Memory / 8, Weigh: func(_ int64, all []*price.Coupon) uint32 { return couponWeight(couponKey{}, all) },
		}),
		uses: newCache(c, ofUses, lastknown.Config[useKey, int64]{
			Name: "coupon uses", Source: lastknown.Each(c.loadUses), MaxLoads: 4,
			MaxWeight: c.Memory / 8, Weigh: useWeight, RefreshAfter: usesRefreshAfter, MaxAge: usesMaxAge,
		}),
	}
}

// newCache returns one of the caches, with what c says for all of them.
func newCache[K comparable, V any](c CacheConfig, of string, own lastknown.Config[K, V]) *lastknown.Cache[K, V] {
	own.Server, own.Patience, own.Log, own.Now = c.Server, c.Patience, c.Log, c.Now
	if c.Shown != nil {
		own.Shown = func(delay time.Duration) { c.Shown(of, delay) }
	}
	return lastknown.New(own)
}

// Stats returns how the caches have answered, by the names of what they hold: products,
// coupons, automatic_coupons, coupon_uses.
func (c *Cache) Stats() map[string]func() lastknown.Stats {
	return map[string]func() lastknown.Stats{
		ofProducts: c.products.Stats, ofCoupons: c.coupons.Stats, ofUses: c.uses.Stats, ofAutomatic: c.automatic.Stats,
	}
}

func (c *Cache) Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error) {
	var room [16]productKey // enough for most carts, without an allocation
	keys := room[:0]
	for _, id := range ids {
		keys = append(keys, productKey{store, id})
	}
	products := make(map[int64]*cart.Product, len(ids))
	err := c.products.Get(ctx, keys, func(key productKey, p *cart.Product) { products[key.product] = p })
	if err != nil {
		return nil, err
	}
	return products, nil
}

func (c *Cache) CouponsByKey(ctx context.Context, store int64, key string) (alike []*price.Coupon, err error) {
	err = c.coupons.Get(ctx, []couponKey{{store, key}}, func(_ couponKey, found []*price.Coupon) { alike = found })
	return alike, err
}

func (c *Cache) Automatic(ctx context.Context, store int64) (automatic []*price.Coupon, err error) {
	err = c.automatic.Get(ctx, []int64{store}, func(_ int64, found []*price.Coupon) { automatic = found })
	return automatic, err
}

func (c *Cache) Uses(ctx context.Context, store int64, code, customer string, limit int64) (n int64, err error) {
	key := useKey{couponKey{store, code}, customer, limit}
	err = c.uses.Get(ctx, []useKey{key}, func(_ useKey, count int64) { n = count })
	return n, err
}

// Invalidate handles a message from the database's channel (see deploy/migrations): it
// makes what the message names be reloaded. It ignores messages about anything else.
func (c *Cache) Invalidate(message string) {
	kind, what, _ := strings.Cut(message, " ")
	switch {
	case message == "product *":
		c.products.ExpireAll()
	case message == "coupon *":
		c.coupons.ExpireAll()
		c.automatic.ExpireAll()
	case kind == "product":
		var key productKey
		if _, err := fmt.Sscanf(what, "%d %d", &key.store, &key.product); err == nil {
			c.products.Expire(key)
		}
	case kind == "coupon":
		store, code, _ := strings.Cut(what, " ")
		if id, err := strconv.ParseInt(store, 10, 64); err == nil {
			c.coupons.Expire(couponKey{id, cart.CouponKey(code)})
			c.automatic.Expire(id)
		}
	}
}

// InvalidateAll makes everything be reloaded. Call it when messages may have been lost.
func (c *Cache) InvalidateAll() {
	c.products.ExpireAll()
	c.coupons.ExpireAll()
	c.uses.ExpireAll()
	c.automatic.ExpireAll()
}

// Reachable reports whether the last load of products succeeded without delay.
func (c *Cache) Reachable() bool { return c.products.Reachable() }

func (c *CacheConfig) loadProducts(ctx context.Context, keys []productKey) (map[productKey]*cart.Product, error) {
	store, ids := keys[0].store, make([]int64, len(keys))
	for i, key := range keys {
		ids[i] = key.product
	}
	products, err := c.Source.Products(ctx, store, ids)
	found := make(map[productKey]*cart.Product, len(products))
	for id, p := range products {
		found[productKey{store, id}] = p
	}
	return found, err
}

func (c *CacheConfig) loadCoupons(ctx context.Context, key couponKey) ([]*price.Coupon, bool, error) {
	alike, err := c.Source.CouponsByKey(ctx, key.store, key.code)
	return alike, len(alike) > 0, err
}

func (c *CacheConfig) loadAutomatic(ctx context.Context, store int64) ([]*price.Coupon, bool, error) {
	automatic, err := c.Source.Automatic(ctx, store)
	return automatic, true, err
}

func (c *CacheConfig) loadUses(ctx context.Context, key useKey) (int64, bool, error) {
	n, err := c.Source.Uses(ctx, key.store, key.code, key.customer, key.limit)
	return n, true, err
}

func productWeight(_ productKey, p *cart.Product) uint32 {
	if p == nil {
		return 0
	}
	size := int(unsafe.Sizeof(*p)) + nameWeight(p.Name) + len(p.Slug) + len(p.Type) + len(p.TaxClass)
	if p.Image != nil {
		size += int(unsafe.Sizeof(*p.Image)) + len(p.Image.URL) + len(p.Image.Alt)
	}
	for _, plan := range p.Plans {
		size += int(unsafe.Sizeof(plan)) + nameWeight(plan.Label)
	}
	for _, f := range p.Fields {
		size += int(unsafe.Sizeof(f)) + len(f.Name)
		for _, o := range f.Options {
			size += int(unsafe.Sizeof(o)) + len(o.Code) + nameWeight(o.Name)
		}
	}
	return uint32(size)
}

// nameWeight returns the bytes of a name outside of its struct.
func nameWeight(n locale.Name) int {
	const mapOfOneText = 336
	size := len(n.Own)
	for _, text := range n.Others {
		size += mapOfOneText + len(text)
	}
	return size
}

func couponWeight(key couponKey, alike []*price.Coupon) uint32 {
	size := len(key.code) + int(unsafe.Sizeof(key))
	for _, c := range alike {
		size += int(unsafe.Sizeof(*c)) + len(c.Code) + nameWeight(c.Name) + 8*len(c.Products)
	}
	return uint32(size)
}

func useWeight(key useKey, _ int64) uint32 {
	return uint32(len(key.code)+len(key.customer)) + uint32(unsafe.Sizeof(key))
}
