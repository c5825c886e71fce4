package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"commerce/cart"
	"commerce/deploy/assert"
)

func (a answer) replayed(t testing.TB) bool {
	t.Helper()
	said := a.Header.Values("Idempotency-Replayed")
	assert.That(t, len(said) <= 1 && (len(said) != 1 || said[0] == "true"), "Idempotency-Replayed is %q", said)
	return len(said) == 1
}

func TestKey_ARepeatChangesNothing(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		for _, call := range []struct{ method, path, body, after string }{
			{"POST", "/cart/add", `{"product_id":1,"qty":2}`, "7×2 2×1 1×3"},
			{"PATCH", "/cart/items/7", `{"quantity":4}`, "7×4 2×1 1×1"},
			{"PATCH", "/cart/items/7", `{"quantity":0}`, "2×1 1×1"},
			{"POST", "/cart/ops", `{"ops":[{"op":"add","product_id":7},{"op":"remove","item":"2"}]}`, "7×3 1×1"},
			{"DELETE", "/cart/items/7", "", "2×1 1×1"},
			{"DELETE", "/cart/clear", "", "1×1"},
		} {
			c := s.guest(t).fill("7×2 2×1")
			first := c.ok(call.method, call.path, call.body, "Idempotency-Key", "k1")
			c.add(`{"product_id":1}`)
			repeat := c.ok(call.method, call.path, call.body, "Idempotency-Key", "k1")
			assert.That(t, !first.replayed(t) && repeat.replayed(t), "%s %s: replayed %v, then %v", call.method, call.path, first.replayed(t), repeat.replayed(t))
			assert.That(t, repeat.Body.Data.Version == 4 && first.Body.Data.Version == 3 && repeat.Header.Get("ETag") != "", "%s %s: versions %d and %d", call.method, call.path, first.Body.Data.Version, repeat.Body.Data.Version)
			assert.Equal(t, c.wantLines(call.after).Version, 4, "%s %s: version", call.method, call.path)
			assert.That(t, !c.send(call.method, call.path, call.body, "Idempotency-Key", "k2").replayed(t), "another key was taken for a repeat")
		}
	})
}

func TestKey_WithAnotherRequestIsAConflict(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t).fill("1×1 2×1")
		c.ok("PATCH", "/cart/items/1", `{"quantity":2}`, "Idempotency-Key", "k")
		for _, call := range [][3]string{
			{"PATCH", "/cart/items/1", `{"quantity":3}`},
			{"PATCH", "/cart/items/2", `{"quantity":2}`},
			{"POST", "/cart/add", `{"product_id":1}`},
			{"POST", "/cart/add", `{"product_id":6}`}, // out of stock
			{"DELETE", "/cart/items/1"},
			{"DELETE", "/cart/clear"},
		} {
			a := c.refused(409, "idempotency_conflict", call[0], call[1], call[2], "Idempotency-Key", "k")
			assert.That(t, len(a.Body.Errors["Idempotency-Key"]) != 0 && !a.replayed(t), "%v: %s", call, a.Raw)
		}
		c.ok("PATCH", "/cart/items/1", `{"quantity":2}`, "Idempotency-Key", "k")
		assert.Equal(t, c.wantLines("1×2 2×1").Version, 3, "version")
	})
}

func TestKey_OfARefusalIsNotRemembered(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		for _, mark := range []string{"Idempotency-Key", "X-Timestamp"} {
			c := s.guest(t).fill("1×1")
			s.alter(6) // sold out
			c.refused(422, "out_of_stock", "POST", "/cart/add", `{"product_id":6}`, mark, "1")
			c.refused(422, "validation_failed", "POST", "/cart/add", `{"product_id":6,"qty":0}`, mark, "1")
			c.refused(404, "item_not_found", "PATCH", "/cart/items/6", `{"quantity":1}`, mark, "1")
			c.refused(412, "version_mismatch", "DELETE", "/cart/clear", "", mark, "1", "If-Match", `"x.1-y"`)
			s.offer(6)
			for i := range 2 {
				s.pass(t, 2*time.Second)
				assert.Equal(t, c.add(`{"product_id":6}`, mark, "1").replayed(t), i == 1, "%s: replayed at try %d of a change that was refused before", mark, i)
			}
			c.wantLines("1×1 6×1")
		}
	})
}

func TestKey_BelongsToOneCart(t *testing.T) {
	s := newShop(t)
	for _, c := range []*shopper{s.guest(t), s.guest(t), s.customer(t, "1001"), s.customer(t, "1002")} {
		c.cart()
		assert.That(t, !c.add(`{"product_id":1}`, "Idempotency-Key", "k").replayed(t), "another cart's key counted")
		c.add(`{"product_id":1}`, "Idempotency-Key", "k")
		c.wantLines("1×1")
	}
}

func TestKey_Is1To255VisibleASCII(t *testing.T) {
	c := newShop(t).guest(t).fill("1×1")
	long := strings.Repeat("k", 254)
	for _, key := range []string{"", long + "kk", "a b", "a\tb", "ключ", "a\xffb", strings.Repeat("k", 9<<10)} {
		for _, call := range cartCalls[4:] { // all changes
			c.refused(400, "invalid_parameter", call[0], call[1], call[2], "Idempotency-Key", key).names(t, "Idempotency-Key")
		}
	}
	for i, key := range []string{"k", "!", "~", `"';--{}*`, long + "1", long + "2"} {
		c.add(`{"product_id":1}`, "Idempotency-Key", key)
		c.add(`{"product_id":1}`, "Idempotency-Key", key)
		assert.Equal(t, c.cart().Count, int64(i)+2, "%q: count", key)
	}
	for _, path := range []string{"/cart", "/cart/count", "/cart/summary", "/cart/validate"} {
		c.ok("GET", path, "", "Idempotency-Key", "a b") // ignored by a read
	}
}

func TestOrderOfChecks_ReplayThenVersionThenBounds(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		stale := c.tag()
		keyed := []string{"Idempotency-Key", "k", "If-Match", stale}
		assert.That(t, !c.add(`{"product_id":2,"qty":2}`, keyed...).replayed(t), "the first was a replay")
		assert.That(t, c.add(`{"product_id":2,"qty":2}`, keyed...).replayed(t), "a repeat got 412 or insufficient_stock")
		for body, path := range map[string]string{
			`{"product_id":2,"qty":3}`: "/cart/add", `{"product_id":3}`: "/cart/add", `{"product_id":404}`: "/cart/add",
			`{"product_id":4,"subscription_plan":9}`: "/cart/add", `{"qty":0}`: "/cart/add",
			`{"quantity":9}`: "/cart/items/2", `{"quantity":8}`: "/cart/items/99", `{}`: "/cart/items/2", `{"coupon":7}`: "/cart/coupon",
			`{"ops":[]}`: "/cart/ops", `{"ops":[{"op":"add","product_id":2,"qty":3}]}`: "/cart/ops",
			`{"ops":[{"op":"add_shared","code":"none"}],"mode":"each"}`: "/cart/ops",
		} {
			method := "POST"
			if strings.HasPrefix(path, "/cart/items/") {
				method = "PATCH"
			}
			c.refused(409, "idempotency_conflict", method, path, body, keyed...)
			c.refused(412, "version_mismatch", method, path, body, "If-Match", stale)
		}
		c.refused(422, "validation_failed", "POST", "/cart/add", `{"qty":0}`, "Idempotency-Key", "new")
		c.refused(422, "insufficient_stock", "PATCH", "/cart/items/2", `{"quantity":9}`, "If-Match", "*")
		c.wantLines("2×2")
	})
}

func TestReplay_OfAnAddWhoseProductIsNoLongerSold(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		for name, change := range map[string]func(){
			"inactive":     func() { s.offer(1, func(p *cart.Product) { p.Active = false }) },
			"out of stock": func() { s.offer(1, func(p *cart.Product) { p.Stock = new(int64) }) },
			"with plans":   func() { s.offer(1, func(p *cart.Product) { p.Plans = []cart.Plan{{ID: 1}} }) },
			"gone":         func() { s.Catalog.Delete(s.ID, 1) },
		} {
			s.offer(1)
			c := s.guest(t)
			c.add(`{"product_id":1}`, "Idempotency-Key", "k")
			c.ok("PATCH", "/cart/items/1", `{"quantity":2}`, "Idempotency-Key", "l")
			stamped := s.guest(t)
			stamped.add(`{"product_id":1}`, "X-Timestamp", "1")
			change()
			assert.That(t, c.add(addOne, "Idempotency-Key", "k").replayed(t), "%s: the add was made again", name)
			assert.That(t, c.ok("PATCH", "/cart/items/1", `{"quantity":2}`, "Idempotency-Key", "l").replayed(t), "%s: the edit was made again", name)
			s.pass(t, 2*time.Second)
			assert.That(t, stamped.add(addOne, "X-Timestamp", "1").replayed(t), "%s: the stamped add was made again", name)
			c.wantLines("1×2")
			stamped.wantLines("1×1")
		}
	})
}

func TestUnkeyedRetry_MayRepeatAnyRecentChange(t *testing.T) {
	s := realShop(t)
	const body = addOne
	stamp := []string{"X-Timestamp", "1"}
	for name, tt := range map[string]struct {
		between func(*shopper)
		repeat  []string // headers
		replay  bool
	}{
		"nothing between":           {func(*shopper) {}, stamp, true},
		"a read between":            {func(c *shopper) { c.cart() }, stamp, true},
		"a refusal between":         {func(c *shopper) { c.send("POST", "/cart/add", `{"product_id":6}`, "X-Timestamp", "2") }, stamp, true},
		"another change between":    {func(c *shopper) { c.add(`{"product_id":2}`, "X-Timestamp", "2") }, stamp, true},
		"a keyed change between":    {func(c *shopper) { c.add(`{"product_id":2}`, "Idempotency-Key", "k") }, stamp, true},
		"an unstamped one between":  {func(c *shopper) { c.add(`{"product_id":2}`) }, stamp, true},
		"another X-Timestamp":       {func(*shopper) {}, []string{"X-Timestamp", "2"}, false},
		"no X-Timestamp":            {func(*shopper) {}, nil, false},
		"a key and X-Timestamp":     {func(*shopper) {}, []string{"X-Timestamp", "1", "Idempotency-Key", "k"}, false},
		"a stale If-Match as well":  {func(*shopper) {}, []string{"X-Timestamp", "1", "If-Match", `"x.1-y"`}, true},
		"another signature as well": {func(*shopper) {}, []string{"X-Timestamp", "1", "X-Signature", "other", "X-Signature-Version", "2", "X-Client-Auth", "x"}, true},
	} {
		c := s.visitor(t)
		c.add(body, "X-Timestamp", "1")
		tt.between(c)
		s.pass(t, 2*time.Second)
		a := c.add(body, tt.repeat...)
		want := map[bool]int64{true: 1, false: 2}[tt.replay]
		assert.That(t, a.replayed(t) == tt.replay && a.Body.Data.Items[0].Quantity == want, "%s: replayed %v, cart holds %q", name, a.replayed(t), a.Body.Data.lines())
	}

	c := s.guest(t)
	c.add(body, "X-Timestamp", "1")
	s.pass(t, 2*time.Second)
	assert.That(t, !c.add(`{"product_id":1,"qty":1}`, "X-Timestamp", "1").replayed(t), "another body was taken for a repeat")
	other := s.visitor(t)
	assert.That(t, !other.add(`{"product_id":1,"qty":1}`, "X-Timestamp", "1").replayed(t), "another cart's change was taken for a repeat")
}

// A change without a key stores only the cart, with its stamp.
func TestUnkeyedRetry_LeavesNoOtherKey(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.visitor(t)
		c.add(addOne, "X-Timestamp", "1")
		keys := s.keys(t)
		assert.That(t, len(keys) == 1, "keys: %v", keys)
		for i := range 40 {
			c.add(addOne, "X-Timestamp", fmt.Sprint(i))
		}
		members, err := s.Redis.HKeys(t.Context(), s.guestKey(c.Token)).Result()
		n := strings.Count(strings.Join(members, " "), " r")
		assert.That(t, err == nil && n == 4, "after 41 changes, the stamps take %d members: %v, %v", n, members, err)
	})
}
