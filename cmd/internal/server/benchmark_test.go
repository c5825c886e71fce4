package server_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"commerce/cart/carttest"
	"commerce/cart/catalog"
	"commerce/cart/price"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// BenchmarkCart measures whole requests as `serve` handles them, without net/http's
// connections: with all middleware, a cached catalog, and a real Redis.
func BenchmarkCart(b *testing.B) {
	shop := openShop(b, ephemeral.Redis(b), func(p *server.Parts) {
		cache := catalog.NewCache(catalog.CacheConfig{Source: p.Carts.Catalog.(catalog.Source)})
		p.Carts.Catalog, p.Carts.Coupons = cache, cache
		p.Log = slog.New(slog.NewJSONHandler(discard{}, nil))
		p.Now = nil
	})
	for i := range int64(50) {
		shop.Catalog.Put(shop.ID, carttest.Sold(9001+i, 1000))
	}
	shop.Catalog.DeleteCoupon(shop.ID, "STICKERS")
	benchmarkCart(b, shop, "", 5, 50)
	for i := range 20 {
		shop.Catalog.PutCoupon(shop.ID, &price.Coupon{Code: fmt.Sprint("A", i), Kind: price.Percent, Rate: 10_000, Automatic: true, Combines: i%2 == 0, MinQuantity: int64(i)})
	}
	benchmarkCart(b, shop, ", 20 automatic discounts", 5)
}

func benchmarkCart(b *testing.B, shop *shop, with string, counts ...int) {
	for _, lines := range counts {
		token := strings.Repeat("token", 5) + strconv.Itoa(lines)
		for i := range lines {
			repeated(b, shop, token, "POST", "/cart/add", fmt.Sprintf(`{"product_id":%d,"qty":1}`, 9001+i))()
		}
		for _, c := range []struct{ name, method, path, body string }{
			{"get", "GET", "/cart", ""},
			{"count", "GET", "/cart/count", ""},
			{"patch", "PATCH", "/cart/items/9001", `{"quantity":2}`},
		} {
			b.Run(fmt.Sprintf("%s/%d lines%s", c.name, lines, with), func(b *testing.B) {
				send := repeated(b, shop, token, c.method, c.path, c.body)
				b.ReportAllocs()
				for b.Loop() {
					send()
				}
			})
		}
	}
}

// repeated returns a function that sends a request, always the same, without a connection.
// headers are name, value, …
func repeated(b *testing.B, shop *shop, token, method, path, body string, headers ...string) (send func()) {
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("X-Public-Key", shop.Key)
	r.Header.Set("X-Cart-Token", token)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	content := strings.NewReader(body)
	return func() {
		content.Reset(body)
		r.Body = io.NopCloser(content)
		w := discard{header: http.Header{}}
		shop.handler.ServeHTTP(&w, r)
		assert.Require(b, w.status == http.StatusOK, "%s %s: %d", method, path, w.status)
	}
}

// discard keeps the status of a response, and nothing of what is written.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header      { return d.header }
func (d *discard) WriteHeader(status int)   { d.status = status }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
