package server_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"commerce/cmd/internal/server"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
)

// BenchmarkRequest measures whole requests with the default settings, without the server's
// part of HTTP: a real Redis, a cart with five lines, and a client that repeats a request.
func BenchmarkRequest(b *testing.B) {
	s := openShop(b, ephemeral.Redis(b), func(p *server.Parts) {
		p.RateLimit, p.CORSOrigins, p.Now = true, nil, nil
		p.Log = slog.New(slog.NewJSONHandler(io.Discard, nil))
	})
	guest, customer := s.guest(b), s.customer(b, "1001")
	for _, c := range []*shopper{guest, customer} {
		for id := range int64(5) {
			product := *sample.Products()[1][0]
			product.ID = 101 + id
			s.Catalog.Put(s.ID, &product)
			c.add(fmt.Sprintf(`{"product_id":%d}`, product.ID))
		}
	}
	token, bearer := "X-Cart-Token: "+guest.Token, "Authorization: Bearer "+customer.JWT
	tag := "If-None-Match: " + guest.send("GET", "/cart", "").Header.Get("ETag")
	for _, r := range []struct {
		name, line, body string
		headers          []string
	}{
		{"unknown path", "GET /unknown", "", []string{token}},
		{"cart", "GET /cart", "", []string{token}},
		{"cart as a customer", "GET /cart", "", []string{bearer}},
		{"cart not modified", "GET /cart", "", []string{token, tag}},
		{"count", "GET /cart/count", "", []string{token}},
		{"add", "POST /cart/add", `{"product_id":101}`, []string{token}},
		{"patch", "PATCH /cart/items/101", `{"quantity":2}`, []string{token}},
	} {
		b.Run(r.name, func(b *testing.B) { s.repeat(b, r.line, r.body, r.headers) })
	}
}

// repeat sends the same request again and again to the handler. Each one comes from another
// address, because of the rate limit.
func (s *shop) repeat(b *testing.B, line, body string, headers []string) {
	b.ReportAllocs()
	method, path, _ := strings.Cut(line, " ")
	content := strings.NewReader(body)
	r := httptest.NewRequest(method, path, io.NopCloser(content))
	r.ContentLength = int64(len(body))
	r.Header.Set("X-Public-Key", s.Key)
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	addresses := make([]string, 1<<10)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("198.18.%d.%d:1", i>>8, i&255)
	}
	n := 0
	for b.Loop() {
		content.Reset(body)
		r.RemoteAddr = addresses[n%len(addresses)]
		n++
		w := discarded{header: http.Header{}}
		s.handler.ServeHTTP(&w, r)
		if w.status >= http.StatusInternalServerError || w.status == http.StatusTooManyRequests {
			b.Fatalf("status %d", w.status)
		}
	}
}

// discarded is a response whose body is discarded.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) WriteHeader(status int)      { d.status = status }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
