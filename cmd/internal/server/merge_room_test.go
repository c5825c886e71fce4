package server_test

import (
	"fmt"
	"slices"
	"testing"

	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

// small limits carts to five lines, and to ten after a merge.
func small(p *server.Parts) { p.CartLimits.Lines = 5 }

// sell makes the store sell products 101 to 100+n.
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
	s := realShop(t, func(p *server.Parts) { p.CartLimits.CartText, p.CartLimits.LineText = 40, 40 })
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
