package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"commerce/cart"
	"commerce/cart/money"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
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

func TestCart_ShowsARetiredPlanThatCannotBeBought(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		c.add(`{"product_id":4,"subscription_plan":42}`)
		for _, retired := range [][]int{{1}, {0, 1}} {
			s.alter(4, func(p *cart.Product) {
				p.Plans = slices.Clone(p.Plans)
				for _, i := range retired {
					p.Plans[i].Retired = true
				}
			})
			c.refused(422, "plan_unavailable", "POST", "/cart/add", `{"product_id":4,"subscription_plan":42}`)
			c.refused(422, "plan_unavailable", "POST", "/cart/add", `{"product_id":4}`)
			a := c.ok("PATCH", "/cart/items/4.p42", `{"notice":"n"}`)
			line := a.Body.Data.Items[0]
			assert.That(t, line.Issue != nil && line.Issue.Code == "plan_unavailable" && line.UnitPrice == 200 &&
				strings.Contains(string(a.Raw), `"subscription_plan":{"id":42,"duration":"annually",`), "the line: %s", a.Raw)
		}
		c.refused(422, "plan_unavailable", "PATCH", "/cart/items/4.p42", `{"subscription_plan":41}`)
	})
}

func TestCart_ShowsNoFormerPriceBelowThePrice(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t).fill("1×1")
		for former, shown := range map[money.Amount]string{0: "49.5", 4949: "49.5", 4950: "49.5", 5000: "50"} {
			s.alter(1, func(p *cart.Product) { p.OriginalPrice = former })
			a := c.ok("GET", "/cart", "")
			assert.That(t, strings.Contains(string(a.Raw), `"price":{"original":`+shown+`,"actual":49.5,`), "%d: %s", former, a.Raw)
		}
	})
}

func TestCart_ConcurrentAdds(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		s.offer(9, func(p *cart.Product) {
			p.Stock, p.Plans = new(int64(3)), []cart.Plan{{ID: 91, Duration: "monthly"}, {ID: 92, Duration: "annually"}}
		})
		all, once, limited := s.visitor(t), s.visitor(t), s.visitor(t)
		at(40, func(int) { s.with(t, all).add(addOne) })
		assert.Equal(t, all.wantLines("1×40").Version, 40, "version after 40 adds, which all count")
		at(20, func(int) { s.with(t, once).add(`{"product_id":1,"qty":3}`, "Idempotency-Key", "once") })
		assert.Equal(t, once.wantLines("1×3").Version, 1, "version after one add and its repeats")
		at(12, func(i int) {
			a := s.with(t, limited).send("POST", "/cart/add", fmt.Sprintf(`{"product_id":9,"subscription_plan":%d}`, 91+i%2))
			assert.That(t, a.Status == 200 || a.Body.Code == "insufficient_stock", "got %d %s", a.Status, a.Raw)
		})
		got := limited.cart()
		assert.That(t, got.Count == 3 && got.Version == 3, "cart holds %q at version %d, want 3 in total, as many as are in stock", got.lines(), got.Version)
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

func TestCart_ReadsCreateNothing(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		for _, c := range []*shopper{s.guest(t), s.customer(t, "7")} {
			c.cart()
			c.Token = strings.Repeat("token", 6)
			c.cart()
			c.ok("GET", "/cart/count", "")
			c.ok("GET", "/cart/summary", "")
			c.refused(400, "cart_invalid", "GET", "/cart/validate", "")
			c.ok("DELETE", "/cart/clear", "", "X-Timestamp", "1")
			c.ok("DELETE", "/cart/items/1", "", "Idempotency-Key", "k")
			c.ok("DELETE", "/cart/coupon", "")
			c.refused(422, "out_of_stock", "POST", "/cart/add", `{"product_id":6}`)
		}
		keys := s.keys(t)
		assert.That(t, len(keys) == 0, "left behind: %v", keys)
	})
}

func TestCart_LinesKeepTheOrderOfTheirFirstAdd(t *testing.T) {
	slow(t)
	const lines = 600 // above the 512 fields up to which a Redis hash is ordered
	s := openShop(t, ephemeral.Redis(t), func(p *server.Parts) { p.Carts.Limits.Lines = lines })
	c := s.visitor(t)
	want := make([]string, lines)
	for i := range lines {
		id := int64(1000 + (i*7919)%lines)
		s.offer(id)
		assert.Equal(t, c.quickly("POST", "/cart/add", fmt.Sprintf(`{"product_id":%d}`, id)).Status, 200, "status of an add")
		want[i] = fmt.Sprintf("%d×1", id)
	}
	c.wantLines(strings.Join(want, " "))
	c.refused(422, "cart_full", "POST", "/cart/add", `{"product_id":1}`)
	c.add(fmt.Sprintf(`{"product_id":%d}`, 1000)) // an existing line may still grow
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
