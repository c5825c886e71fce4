package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"commerce/cart"
	"commerce/cart/service"
	"commerce/cart/transfer"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Package cart tests what each strategy makes of two carts.
func TestMerge_FollowsTheStrategyOfTheService(t *testing.T) {
	t.Parallel()
	for strategy, lines := range map[transfer.Strategy]string{
		"": "1×5 7×2", transfer.Sum: "1×5 7×2", transfer.Max: "1×3 7×2", transfer.KeepGuest: "1×3 7×2", transfer.KeepCustomer: "1×2 7×2",
	} {
		s := openShop(t, ephemeral.Redis(t), func(p *server.Parts) { p.Carts.Strategy = strategy })
		guest := s.guest(t).fill("1×3 7×2")
		s.customer(t, "1").fill("1×2")
		guest.logIn("1").wantLines(lines)
	}
}

func TestMerge_HappensFirstInEveryRequest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		method, path, payload string
		status                int
		headers               []string
		lines                 string
	}{
		{"GET", "/cart", "", 200, nil, "2×3"},
		{"GET", "/cart/count", "", 200, nil, "2×3"},
		{"GET", "/cart/summary", "", 200, nil, "2×3"},
		{"GET", "/cart/validate", "", 200, nil, "2×3"},
		{"GET", "/cart", "", 400, []string{"If-None-Match", "no tag"}, "2×3"},
		{"POST", "/cart/add", `{"product_id":1}`, 200, nil, "2×3 1×1"},
		{"POST", "/cart/add", `{"product_id":6}`, 422, nil, "2×3"},
		{"POST", "/cart/add", `{"product_id":2}`, 422, nil, "2×3"},
		{"POST", "/cart/add", `{"product_id":404}`, 404, nil, "2×3"},
		{"POST", "/cart/add", `not JSON`, 400, nil, "2×3"},
		{"POST", "/cart/add", `{"product_id":1}`, 412, []string{"If-Match", `"other.1"`}, "2×3"},
		{"POST", "/cart/add", `{"product_id":1}`, 400, []string{"Idempotency-Key", "no key"}, "2×3"},
		{"POST", "/cart/coupon", `{"coupon":"TEN"}`, 200, nil, "2×3"},
		{"PATCH", "/cart/items/2", `{"quantity":1}`, 200, nil, "2×1"},
		{"PATCH", "/cart/items/404", `{"quantity":1}`, 404, nil, "2×3"},
		{"DELETE", "/cart/items/2", "", 200, nil, ""},
		{"DELETE", "/cart/clear", "", 200, nil, ""},
		{"GET", "/cart/share/none", "", 404, nil, "2×3"},
		{"DELETE", "/cart/share/none", "", 404, nil, "2×3"},
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

func TestMerge_IsReportedForAMinuteToTheCustomer(t *testing.T) {
	s := realShop(t)
	guest := s.guest(t).fill("1×1")
	customer, other := guest.logIn("1"), s.customer(t, "1")
	customer.send("GET", "/cart/count", "") // which may be lost
	first := other.ok("GET", "/cart", "", "If-None-Match", "*")
	report := first.Body.Data.Merge
	assert.Require(t, report != nil && report.ID != "" && report.Lines == 1 && time.Since(report.At).Abs() <= time.Minute, "another device got %s", first.Raw)
	tag := first.Header.Get("ETag")
	for _, a := range []answer{
		customer.ok("GET", "/cart", ""), customer.ok("GET", "/cart/summary", ""),
		customer.refused(422, "out_of_stock", "POST", "/cart/add", `{"product_id":6}`),
		customer.refused(422, "validation_failed", "POST", "/cart/add", `{"product_id":1,"qty":"x"}`),
		customer.refused(400, "malformed_json", "POST", "/cart/add", `{`),
		customer.add(`{"product_id":1}`, "If-Match", tag),
	} {
		m := a.Body.Data.Merge
		assert.That(t, m != nil && m.ID == report.ID, "the report is %+v in %s", m, a.Raw)
	}
	tag = other.tag()
	assert.Equal(t, other.send("GET", "/cart", "", "If-None-Match", tag).Status, http.StatusNotModified, "status of an unchanged cart with the report")
	s.pass(t, time.Minute+time.Second)
	assert.That(t, other.ok("GET", "/cart", "", "If-None-Match", tag).Body.Data.Merge == nil, "the report is there after a minute")
	assert.Equal(t, other.send("GET", "/cart", "", "If-None-Match", "*").Status, 304, "status a minute after the merge")
	other.add(`{"product_id":1}`)
	members := s.Redis.HKeys(t.Context(), s.customerKey(other.ID)).Val()
	assert.That(t, !slices.Contains(members, "g"), "after a minute and a change, the report is still stored: %q", members)
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

// small limits carts to five lines, and to ten after a merge.
func small(p *server.Parts) { p.Carts.Limits.Lines = 5 }

func (s *shop) sell(n int64) {
	for i := range n {
		s.offer(101 + i)
	}
}

func TestMerge_WithoutRoomLeavesTheGuestsCartUnchanged(t *testing.T) {
	s := realShop(t, small)
	s.sell(20)
	customer := s.customer(t, "1").fill("101×1 102×1 103×1 104×1 105×1")
	customer.Token = s.guest(t).fill("106×1 107×1 108×1 109×1 110×1").Token
	roomy := customer.cart()
	assert.Require(t, len(roomy.Items) == 10 && roomy.Merge.Code == nil && roomy.Merge.Lines == 5, "with room for it: %q, %+v", roomy.lines(), roomy.Merge)
	guest := s.visitor(t)
	guest.add(`{"product_id":111}`, "Idempotency-Key", "k")
	customer.Token = guest.Token
	full := func(a answer) {
		t.Helper()
		m := a.Body.Data.Merge
		assert.That(t, m != nil && m.Lines == 0 && len(m.Adjusted) == 0 && m.Code != nil && *m.Code == "cart_full", "report in %s", a.Raw)
	}
	full(customer.ok("GET", "/cart", ""))
	full(customer.ok("GET", "/cart/count", ""))
	full(customer.ok("GET", "/cart/summary", ""))
	full(customer.ok("GET", "/cart/validate", ""))
	full(customer.ok("PATCH", "/cart/items/101", `{"quantity":2}`))
	full(customer.refused(422, "cart_full", "POST", "/cart/add", `{"product_id":112}`))
	full(customer.refused(400, "malformed_json", "POST", "/cart/add", `{`))
	assert.That(t, customer.add(`{"product_id":111}`, "Idempotency-Key", "k").replayed(t), "the guest's own change was applied again")
	guest.wantLines("111×1")
	removed := customer.ok("DELETE", "/cart/items/110", "") // makes room for the next request
	assert.That(t, removed.Body.Data.Merge != nil, "no report in %s", removed.Raw)
	got := customer.cart()
	assert.That(t, got.Merge != nil && got.Merge.Code == nil && got.Merge.Lines == 1 && slices.ContainsFunc(got.Items, func(i itemBody) bool { return i.ID == "111" }), "with room again: %q, %+v", got.lines(), got.Merge)
	guest.wantLines("")
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
