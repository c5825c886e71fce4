package catalog_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"commerce/cart/catalog"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// BenchmarkMillionProducts measures a catalog of 1,000,000 products in 10,000 stores: the
// first cart of a new process, a cart of products that are not cached, and the memory in
// use after every product was loaded once.
func BenchmarkMillionProducts(b *testing.B) {
	const stores, products = 10_000, 100
	url := ephemeral.Migrated(b)
	admin := ephemeral.OpenPool(b, url, connect.PostgresConfig{Writable: true, StatementTimeout: -1})
	for _, sql := range []string{
		`INSERT INTO stores (id, name, currency) SELECT n, 'Store ' || n, 'SAR' FROM generate_series(1, 10000) n`,
		`INSERT INTO products (store_id, id, name, slug, type, price, original_price, stock, image_url, image_alt)
			SELECT s, n, 'Product ' || n || ' of store ' || s, 'product-' || n, 'digital', n * 100, n * 100, n,
				'https://cdn.example.com/products/' || s || '/' || n || '.webp', 'Product ' || n
			FROM generate_series(1, 10000) s, generate_series(1, 100) n`,
		`INSERT INTO plans (store_id, id, product_id, duration, price) SELECT s, 100 + n, n, 'monthly', 500
			FROM generate_series(1, 10000) s, generate_series(1, 10) n`,
		`ANALYZE`,
	} {
		if _, err := admin.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	five := func() (store int64, ids []int64) {
		for range 5 {
			ids = append(ids, 1+rand.Int64N(products))
		}
		return 1 + rand.Int64N(stores), ids
	}
	ask := func(b *testing.B, c *catalog.Cache, store int64, ids []int64) {
		start := time.Now()
		for {
			_, err := c.Products(b.Context(), store, ids)
			if err == nil {
				return
			}
			b.Logf("after %v: %v", time.Since(start), err) // a checkpoint, perhaps
			if time.Since(start) > 10*time.Second {
				b.Fatal(err)
			}
		}
	}

	b.Run("first cart after the start", func(b *testing.B) {
		for b.Loop() {
			pool := ephemeral.OpenPool(b, url, connect.PostgresConfig{})
			store, ids := five()
			ask(b, newCache(catalog.NewPostgres(pool)), store, ids)
			pool.Close()
		}
	})
	pool := ephemeral.OpenPool(b, url, connect.PostgresConfig{})
	b.Run("cart of five unknown products", func(b *testing.B) {
		c := newCache(catalog.NewPostgres(pool))
		for b.Loop() {
			store, ids := five()
			ask(b, c, store, ids)
		}
	})
	b.Run("cart of five known products", func(b *testing.B) {
		now := time.Now()
		c := catalog.NewCache(catalog.CacheConfig{Source: catalog.NewPostgres(pool), Now: func() time.Time { return now }})
		store, ids := five()
		for b.Loop() {
			ask(b, c, store, ids)
		}
	})
	b.Run("memory after every product", func(b *testing.B) {
		all := make([]int64, products)
		for i := range all {
			all[i] = int64(i + 1)
		}
		for b.Loop() {
			before := heap()
			c := newCache(catalog.NewPostgres(pool))
			ask(b, c, 1, all)
			b.ReportMetric(float64(heap()-before)/1e6, "MB-after-1-store")
			for store := range int64(stores) {
				ask(b, c, store+1, all)
			}
			b.ReportMetric(float64(heap()-before)/1e6, "MB-after-all")
			runtime.KeepAlive(c)
		}
	})
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
