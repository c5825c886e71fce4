package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"commerce/auth/lastknown"
	"commerce/cart"
)

// Source is a catalogue that a Cache stands before.
type Source interface {
	Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error)
	Coupon(ctx context.Context, store int64, code string) (*cart.Coupon, error)
}

// CacheConfig is what a Cache needs.
type CacheConfig struct {
	Source Source

	// Memory bounds what is held, in bytes, roughly. Default 128 MiB: some 100,000
	// products.
	Memory uint64

	Log *slog.Logger     // for a source that comes and goes; default slog.Default
	Now func() time.Time // default time.Now
}

// Cache serves a catalogue without waiting for it: what a cart holds is loaded by
// one query at most, and as last known while the source is out of reach. It shows
// a change at the source within a second, and at once when it is Told of it.
type Cache struct {
	products *lastknown.Cache[productKey, *cart.Product]
	coupons  *lastknown.Cache[couponKey, *cart.Coupon]
}

const defaultMemory = 128 << 20

// NewCache returns an empty Cache.
func NewCache(c CacheConfig) *Cache {
	if c.Memory == 0 {
		c.Memory = defaultMemory
	}
	return &Cache{
		products: lastknown.New(lastknown.Config[productKey, *cart.Product]{
			Name: "products", Source: productsOf(c.Source), Log: c.Log, Now: c.Now,
			MaxWeight: c.Memory, Weigh: productWeight,
		}),
		coupons: lastknown.New(lastknown.Config[couponKey, *cart.Coupon]{
			Name: "coupons", Source: couponsOf(c.Source), Log: c.Log, Now: c.Now,
			MaxWeight: c.Memory / 8, Weigh: couponWeight, MaxLoads: 4,
		}),
	}
}

// Products implements service.Catalog.
func (c *Cache) Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error) {
	keys := make([]productKey, len(ids))
	for i, id := range ids {
		keys[i] = productKey{store, id}
	}
	products := make(map[int64]*cart.Product, len(ids))
	err := c.products.Get(ctx, keys, func(key productKey, p *cart.Product) { products[key.product] = p })
	if err != nil {
		return nil, err
	}
	return products, nil
}

// Coupon implements service.Coupons.
func (c *Cache) Coupon(ctx context.Context, store int64, code string) (coupon *cart.Coupon, err error) {
	err = c.coupons.Get(ctx, []couponKey{{store, code}}, func(_ couponKey, found *cart.Coupon) { coupon = found })
	return coupon, err
}

// Told takes a message of the database's channel (see deploy/migrations) and has
// what it names loaded anew. Messages about something else are passed over.
func (c *Cache) Told(message string) {
	kind, what, _ := strings.Cut(message, " ")
	switch {
	case message == "product *":
		c.products.ExpireAll()
	case message == "coupon *":
		c.coupons.ExpireAll()
	case kind == "product":
		var key productKey
		if _, err := fmt.Sscanf(what, "%d %d", &key.store, &key.product); err == nil {
			c.products.Expire(key)
		}
	case kind == "coupon":
		store, code, _ := strings.Cut(what, " ")
		if id, err := strconv.ParseInt(store, 10, 64); err == nil {
			c.coupons.Expire(couponKey{id, code})
		}
	}
}

// Missed has everything loaded anew, after a time in which messages may have been
// lost.
func (c *Cache) Missed() {
	c.products.ExpireAll()
	c.coupons.ExpireAll()
}

// Reachable reports whether the products' source answered, and without delay, when
// it was last asked.
func (c *Cache) Reachable() bool { return c.products.Reachable() }

// productsOf asks for the products of one load. They are of one store, as those of
// one request are.
func productsOf(source Source) func(context.Context, []productKey) (map[productKey]*cart.Product, error) {
	return func(ctx context.Context, keys []productKey) (map[productKey]*cart.Product, error) {
		ids := make([]int64, len(keys))
		for i, key := range keys {
			ids[i] = key.product
		}
		products, err := source.Products(ctx, keys[0].store, ids)
		found := make(map[productKey]*cart.Product, len(products))
		for id, p := range products {
			found[productKey{keys[0].store, id}] = p
		}
		return found, err
	}
}

// couponsOf asks for the one coupon of a load.
func couponsOf(source Source) func(context.Context, []couponKey) (map[couponKey]*cart.Coupon, error) {
	return func(ctx context.Context, keys []couponKey) (map[couponKey]*cart.Coupon, error) {
		coupon, err := source.Coupon(ctx, keys[0].store, keys[0].code)
		if err != nil || coupon == nil {
			return nil, err
		}
		return map[couponKey]*cart.Coupon{keys[0]: coupon}, nil
	}
}

func productWeight(_ productKey, p *cart.Product) uint32 {
	if p == nil {
		return 0
	}
	size := int(unsafe.Sizeof(*p)) + len(p.Name) + len(p.Slug) + len(p.Type)
	if p.Image != nil {
		size += int(unsafe.Sizeof(*p.Image)) + len(p.Image.URL) + len(p.Image.Alt)
	}
	size += len(p.Plans) * int(unsafe.Sizeof(cart.Plan{}))
	for _, f := range p.Fields {
		size += int(unsafe.Sizeof(f)) + len(f.Name)
		for _, o := range f.Options {
			size += int(unsafe.Sizeof(o)) + len(o.Code) + len(o.Name)
		}
	}
	return uint32(size)
}

func couponWeight(key couponKey, _ *cart.Coupon) uint32 {
	return uint32(len(key.code)) + uint32(unsafe.Sizeof(cart.Coupon{}))
}
