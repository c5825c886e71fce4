package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"commerce/cart"
	"commerce/cart/service"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

func TestMerge_HappensFirstInEveryRequest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		method, path, payload string
		status                int
		headers               []string
		lines                 string
	}{
		{"GET", "/cart", "", 200, nil, "2×3"},
		{"GET", "/cart/validate", "", 200, nil, "2×3"},
		{"POST", "/cart/add", `{"product_id":1}`, 200, nil, "2×3 1×1"},
		{"POST", "/cart/add", `{"product_id":6}`, 422, nil, "2×3"},
		{"POST", "/cart/add", `not JSON`, 400, nil, "2×3"},
		{"POST", "/cart/add", `{"product_id":1}`, 412, []string{"If-Match", `"other.1"`}, "2×3"},
		{"POST", "/cart/add", `{"product_id":1}`, 400, []string{"Idempotency-Key", "no key"}, "2×3"},
		{"PATCH", "/cart/items/2", `{"quantity":1}`, 200, nil, "2×1"},
		{"DELETE", "/cart/items/2", "", 200, nil, ""},
		{"GET", "/cart/share/none", "", 404, nil, "2×3"},
	} {
		t.Run(fmt.Sprint(tc.method, " ", tc.path, " ", tc.status), func(t *testing.T) {
			s := realShop(t)
			customer, guest := s.customer(t, "1"), s.guest(t)
			customer.add(`{"product_id":2,"qty":2}`)
			guest.add(`{"product_id":2,"qty":3}`)
			customer.Token = guest.Token
			a := customer.send(tc.method, tc.path, tc.payload, tc.headers...)
			assert.Require(t, a.Status == tc.status, "%d %s", a.Status, a.Raw)
			m := a.Body.Data.Merge
			assert.That(t, m != nil && m.Lines == 1 && len(m.Adjusted) == 1 && m.Adjusted[0].Requested == 5 && m.Adjusted[0].Kept == 3 && m.Adjusted[0].Code == "insufficient_stock", "report in %s", a.Raw)
			again := customer.wantLines(tc.lines)
			assert.That(t, again.Merge != nil && again.Merge.ID == m.ID, "a minute is not over, and the report is %+v", again.Merge)
		})
	}
}

func TestMerge_IsNotDrivenByHEAD(t *testing.T) {
	s := realShop(t)
	guest := s.guest(t).fill("1×1")
	customer := guest.logIn("1")
	for _, path := range []string{"/cart", "/cart/count", "/cart/summary", "/cart/validate", "/cart/share/none"} {
		a := customer.send("HEAD", path, "")
		assert.That(t, a.Status < 500, "HEAD %s: %d", path, a.Status)
	}
	guest.wantLines("1×1")
	s.customer(t, "1").wantLines("")
	customer.wantLines("1×1")
}

type flaky struct {
	service.Catalog
	down atomic.Int64
}

func flakyShop(t *testing.T) (*shop, *flaky) {
	t.Helper()
	source := &flaky{}
	return realShop(t, func(p *server.Parts) { source.Catalog, p.Carts.Catalog = p.Carts.Catalog, source }), source
}

func (f *flaky) Reachable() bool { return f.down.Load() == 0 }

func (f *flaky) Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error) {
	if slices.Contains(ids, f.down.Load()) {
		return nil, errors.New("catalog is down")
	}
	return f.Catalog.Products(ctx, store, ids)
}

func TestMerge_CountsTextToo(t *testing.T) {
	s := realShop(t, func(p *server.Parts) { p.Carts.Limits.CartText, p.Carts.Limits.LineText = 40, 40 })
	line := func(product int, text string) string {
		return fmt.Sprintf(`{"product_id":%d,"notice":%q}`, product, text)
	}
	const forty = "forty bytes of text, forty bytes of text"
	customer, guest, other := s.customer(t, "1"), s.guest(t), s.guest(t)
	customer.add(line(1, forty))
	guest.add(line(1, forty)) // counts, although the customer's notice will be kept
	other.add(`{"product_id":2,"notice":"x"}`)
	customer.Token = guest.Token
	customer.wantLines("1×2")
	customer.add(`{"product_id":2}`)
	s.guest(t)
	customer.Token = other.Token
	customer.wantLines("1×2 2×2") // 40 bytes and 1
	full := s.guest(t)
	full.add(line(2, forty))
	customer.Token = full.Token
	got := customer.cart()
	assert.That(t, got.Merge != nil && got.Merge.Code != nil, "41 bytes and 40 are more than 80: %q, %+v", got.lines(), got.Merge)
}
