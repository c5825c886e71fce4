package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"commerce/cart"
	"commerce/deploy/assert"
)

func TestCart_AShopperFillsChangesAndEmptiesIt(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		first := c.cart()
		assert.Require(t, first.CartToken != nil && first.Version == 0 && first.ExpiresAt == nil && len(first.Items) == 0, "a new guest's cart: %+v", first)
		c.fill("1×2 4.p41×1")
		c.add(`{"product_id":4,"subscription_plan":{"id":42}}`)
		c.add(`{"product_id":1}`)
		got := c.wantLines("1×3 4.p41×1 4.p42×1")
		assert.That(t, got.Subtotal == 368.5 && got.Total == 368.5 && got.Count == 5 && got.Version == 4, "totals: %+v", got)
		c.ok("PATCH", "/cart/items/4.p41", `{"quantity":2}`)
		c.ok("PATCH", "/cart/items/1", `{"qty":0}`)
		c.wantLines("4.p41×2 4.p42×1")
		c.ok("DELETE", "/cart/items/4.p41", "")
		c.wantLines("4.p42×1")
		c.ok("DELETE", "/cart/items/4.p41", "") // does not exist: counts as removed
		emptied := c.ok("DELETE", "/cart/clear", "").Body.Data
		assert.That(t, len(emptied.Items) == 0 && emptied.Version == 8, "emptied: %+v", emptied)
		c.refused(404, "item_not_found", "PATCH", "/cart/items/1", `{"quantity":1}`)
	})
}

func TestCart_AnAddThatCouldNotBePricedIsNotMade(t *testing.T) {
	s, source := flakyShop(t)
	c := s.guest(t).fill("7×2")
	source.down.Store(7)
	c.refused(503, "unavailable", "POST", "/cart/add", `{"product_id":1}`)
	source.down.Store(0)
	c.wantLines("7×2")
}

func TestCart_FiveLinesAreASmallListpack(t *testing.T) {
	s := realShop(t)
	c := s.guest(t)
	for id := range int64(5) {
		s.offer(9001+id, func(p *cart.Product) { p.Price = 10001 })
		c.add(fmt.Sprintf(`{"product_id":%d,"qty":2}`, 9001+id))
	}
	key := s.keys(t)[0]
	assert.Equal(t, s.Redis.ObjectEncoding(t.Context(), key).Val(), "listpack", "encoding")
	used := s.Redis.MemoryUsage(t.Context(), key).Val()
	assert.That(t, used <= 290, "%d bytes for five plain lines", used)
}

func (b cartBody) issues() (all []issueBody) {
	for _, item := range b.Items {
		if item.Issue != nil {
			all = append(all, *item.Issue)
		}
	}
	return append(all, b.Warnings...)
}

func fixesOf(issues []issueBody) (fixes []string) {
	for _, i := range issues {
		if string(i.Fix) != "null" {
			fixes = append(fixes, string(i.Fix))
		}
	}
	return fixes
}

// Fixes are operations as POST /cart/ops takes them. TestOps_FixesMendAnyCart has all kinds of products.
func TestFixes_SentBackMendTheCart(t *testing.T) {
	s := newShop(t)
	c := s.guest(t).fill("1×2 2×3 7×5 4.p41×1")
	c.redeem("TEN")
	s.alter(1, func(p *cart.Product) { p.Price += 50 })
	s.alter(2, func(p *cart.Product) { p.Stock = new(int64(1)) })
	s.alter(7, func(p *cart.Product) { p.Active = false })
	s.alter(4, func(p *cart.Product) { p.Plans = p.Plans[1:] })
	broken, validated := c.cart(), c.refused(400, "cart_invalid", "GET", "/cart/validate", "").Body.Data
	fixes := fixesOf(broken.issues())
	assert.Equal(t, fixes, []string{
		`{"op":"edit","item":"2","quantity":1}`, `{"op":"remove","item":"7"}`, `{"op":"edit","item":"1","accept_price":5000}`,
	}, "fixes of the cart")
	assert.Equal(t, fixesOf(slices.Concat(validated.Issues, validated.Warnings)), fixes, "fixes of validate")
	list := `{"ops":[` + strings.Join(fixes, ",") + `]}`
	mended := c.ok("POST", "/cart/ops", list).Body.Data
	left := mended.issues()
	assert.That(t, mended.lines() == "1×2 2×1 4.p41×1" && len(left) == 2 && left[0].Code == "plan_unavailable" && left[1].Code == "low_stock", "mended: %+v", mended)
	assert.Equal(t, c.ok("POST", "/cart/ops", list).Body.Data.Version, mended.Version, "version after the fixes were sent again")
}

func (s *shop) offer(id int64, edits ...func(*cart.Product)) {
	plain := func(p *cart.Product) { p.ID, p.Price, p.OriginalPrice = id, 1000, 1000 }
	s.alter(1, append([]func(*cart.Product){plain}, edits...)...)
}
