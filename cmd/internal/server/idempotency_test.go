package server_test

import (
	"strings"
	"testing"

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

func TestKey_Is1To255VisibleASCII(t *testing.T) {
	c := newShop(t).guest(t).fill("1×1")
	for _, key := range []string{"", strings.Repeat("k", 256), "a b", "ключ", "a\xffb"} {
		for _, call := range cartCalls[4:] { // all changes
			c.refused(400, "invalid_parameter", call[0], call[1], call[2], "Idempotency-Key", key).names(t, "Idempotency-Key")
		}
	}
	c.add(addOne, "Idempotency-Key", strings.Repeat("~", 255))
	assert.That(t, c.add(addOne, "Idempotency-Key", strings.Repeat("~", 255)).replayed(t), "a repeat was applied")
	c.ok("GET", "/cart", "", "Idempotency-Key", "a b") // ignored by a read
}

func TestOrderOfChecks_ReplayThenVersionThenBounds(t *testing.T) {
	s := realShop(t)
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
}
