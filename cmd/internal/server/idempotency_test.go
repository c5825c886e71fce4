package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"commerce/auth/locale"
	"commerce/cart"
)

// replayed reports whether a response says that the change is a replay.
func (a answer) replayed(t testing.TB) bool {
	t.Helper()
	said := a.Header.Values("Idempotency-Replayed")
	assert(t, len(said) <= 1 && (len(said) != 1 || said[0] == "true"), "Idempotency-Replayed is %q", said)
	return len(said) == 1
}

func TestIdempotency_ConflictsAndVersionsPrecedeInvalidMembers(t *testing.T) {
	s := realShop(t)
	c := s.guest(t)
	stale := c.add(`{"product_id":1}`, "Idempotency-Key", "k").Header.Get("ETag")
	c.add(`{"product_id":1}`)
	c.refused(409, "idempotency_conflict", "POST", "/cart/add", `{"product_id":1,"qty":0}`, "Idempotency-Key", "k")
	c.refused(409, "idempotency_conflict", "PATCH", "/cart/items/1", `{}`, "Idempotency-Key", "k")
	c.refused(409, "idempotency_conflict", "POST", "/cart/coupon", `{}`, "Idempotency-Key", "k")
	c.refused(412, "version_mismatch", "POST", "/cart/add", `{"qty":0}`, "If-Match", stale)
	c.refused(422, "validation_failed", "POST", "/cart/add", `{"qty":0}`, "Idempotency-Key", "new")
	c.wantLines("1×2")
}

func TestKey_ARepeatChangesNothing(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		for _, call := range []struct{ method, path, body, after string }{
			{"POST", "/cart/add", `{"product_id":1,"qty":2}`, "7×2 2×1 1×3"},
			{"PATCH", "/cart/items/7", `{"quantity":4}`, "7×4 2×1 1×1"},
			{"PATCH", "/cart/items/7", `{"quantity":0}`, "2×1 1×1"},
			{"DELETE", "/cart/items/7", "", "2×1 1×1"},
			{"DELETE", "/cart/clear", "", "1×1"},
		} {
			c := s.guest(t).fill("7×2 2×1")
			first := c.ok(call.method, call.path, call.body, "Idempotency-Key", "k1")
			c.add(`{"product_id":1}`)
			repeat := c.ok(call.method, call.path, call.body, "Idempotency-Key", "k1")
			assert(t, !first.replayed(t) && repeat.replayed(t), "%s %s: replayed %v, then %v", call.method, call.path, first.replayed(t), repeat.replayed(t))
			assert(t, repeat.Body.Data.Version == 4 && first.Body.Data.Version == 3 && repeat.Header.Get("ETag") != "", "%s %s: versions %d and %d", call.method, call.path, first.Body.Data.Version, repeat.Body.Data.Version)
			equal(t, c.wantLines(call.after).Version, 4, "%s %s: version", call.method, call.path)
			assert(t, !c.send(call.method, call.path, call.body, "Idempotency-Key", "k2").replayed(t), "another key was taken for a repeat")
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
			assert(t, len(a.Body.Errors["Idempotency-Key"]) != 0 && !a.replayed(t), "%v: %s", call, a.Raw)
		}
		c.ok("PATCH", "/cart/items/1", `{"quantity":2}`, "Idempotency-Key", "k")
		equal(t, c.wantLines("1×2 2×1").Version, 3, "version")
	})
}

func TestKey_OfARefusalIsNotRemembered(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t).fill("1×1")
		c.refused(422, "out_of_stock", "POST", "/cart/add", `{"product_id":6}`, "Idempotency-Key", "k")
		c.refused(422, "validation_failed", "POST", "/cart/add", `{"product_id":6,"qty":0}`, "Idempotency-Key", "k")
		c.refused(404, "item_not_found", "PATCH", "/cart/items/6", `{"quantity":1}`, "Idempotency-Key", "k")
		c.refused(412, "version_mismatch", "DELETE", "/cart/clear", "", "Idempotency-Key", "k", "If-Match", `"x.1-y"`)
		s.Catalog.Put(s.ID, &cart.Product{ID: 6, Name: locale.Named("Back again"), Active: true, MinQuantity: 1, Price: 777})
		assert(t, !c.add(`{"product_id":6}`, "Idempotency-Key", "k").replayed(t), "a refusal was replayed")
		assert(t, c.add(`{"product_id":6}`, "Idempotency-Key", "k").replayed(t), "the change was applied twice")
		c.wantLines("1×1 6×1")
	})
}

func TestKey_BelongsToOneCart(t *testing.T) {
	s := newShop(t)
	for _, c := range []*shopper{s.guest(t), s.guest(t), s.customer(t, "1001"), s.customer(t, "1002")} {
		c.cart()
		assert(t, !c.add(`{"product_id":1}`, "Idempotency-Key", "k").replayed(t), "another cart's key counted")
		c.add(`{"product_id":1}`, "Idempotency-Key", "k")
		c.wantLines("1×1")
	}
}

func TestKey_IsRememberedForADay(t *testing.T) {
	s := realShop(t)
	c := s.guest(t)
	add := func() bool { return c.add(`{"product_id":1}`, "Idempotency-Key", "k").replayed(t) }
	add()
	s.pass(t, 24*time.Hour-time.Minute)
	assert(t, add(), "forgotten within a day")
	s.pass(t, 2*time.Minute) // a replay does not renew it
	assert(t, !add(), "remembered for more than a day")
	c.wantLines("1×2")
}

func TestKey_Is1To255VisibleASCII(t *testing.T) {
	s := newShop(t)
	c := s.guest(t).fill("1×1")
	long := strings.Repeat("k", 254)
	for _, key := range []string{"", long + "kk", "a b", "a\tb", "ключ", "a\xffb", strings.Repeat("k", 9<<10)} {
		for _, call := range [][3]string{
			{"POST", "/cart/add", `{"product_id":1}`},
			{"PATCH", "/cart/items/1", `{"quantity":9}`},
			{"DELETE", "/cart/items/1"},
			{"DELETE", "/cart/clear"},
		} {
			a := c.refused(400, "invalid_parameter", call[0], call[1], call[2], "Idempotency-Key", key)
			assert(t, len(a.Body.Errors["Idempotency-Key"]) != 0, "%q: names %v", key, a.Body.Errors)
		}
	}
	for i, key := range []string{"k", "!", "~", `"';--{}*`, long + "1", long + "2"} {
		c.add(`{"product_id":1}`, "Idempotency-Key", key)
		c.add(`{"product_id":1}`, "Idempotency-Key", key)
		equal(t, c.cart().Count, int64(i)+2, "%q: count", key)
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
		assert(t, !c.add(`{"product_id":2,"qty":2}`, keyed...).replayed(t), "the first was a replay")
		if a := c.add(`{"product_id":2,"qty":2}`, keyed...); !a.replayed(t) { // neither 412 nor insufficient_stock
			t.Error("If-Match was checked for a repeat")
		}
		c.refused(409, "idempotency_conflict", "POST", "/cart/add", `{"product_id":2,"qty":3}`, keyed...)
		c.refused(412, "version_mismatch", "POST", "/cart/add", `{"product_id":2,"qty":3}`, "If-Match", stale)
		c.refused(412, "version_mismatch", "POST", "/cart/add", `{"product_id":3}`, "If-Match", stale)
		c.refused(412, "version_mismatch", "POST", "/cart/add", `{"product_id":404}`, "If-Match", stale)
		c.refused(412, "version_mismatch", "POST", "/cart/add", `{"product_id":4,"subscription_plan":9}`, "If-Match", stale)
		c.refused(412, "version_mismatch", "PATCH", "/cart/items/99", `{"quantity":9}`, "If-Match", stale)
		c.refused(412, "version_mismatch", "PATCH", "/cart/items/2", `{"quantity":9}`, "If-Match", stale)
		c.refused(422, "insufficient_stock", "PATCH", "/cart/items/2", `{"quantity":9}`, "If-Match", "*")
		c.wantLines("2×2")
	})
}

func TestReplay_OfAnAddWhoseProductIsNoLongerSold(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		none := int64(0)
		for name, change := range map[string]func(){
			"inactive": func() { s.Catalog.Put(s.ID, &cart.Product{ID: 1, Name: locale.Named("P"), MinQuantity: 1}) },
			"out of stock": func() {
				s.Catalog.Put(s.ID, &cart.Product{ID: 1, Name: locale.Named("P"), Active: true, MinQuantity: 1, Stock: &none})
			},
			"with plans": func() {
				s.Catalog.Put(s.ID, &cart.Product{ID: 1, Name: locale.Named("P"), Active: true, Plans: []cart.Plan{{ID: 1}}})
			},
			"gone": func() { s.Catalog.Delete(s.ID, 1) },
		} {
			s.Catalog.Put(s.ID, &cart.Product{ID: 1, Name: locale.Named("P"), Active: true, MinQuantity: 1})
			c := s.guest(t)
			c.add(`{"product_id":1}`, "Idempotency-Key", "k")
			c.ok("PATCH", "/cart/items/1", `{"quantity":2}`, "Idempotency-Key", "l")
			stamped := s.guest(t)
			stamped.add(`{"product_id":1}`, "X-Timestamp", "1")
			change()
			if a := c.add(`{"product_id":1}`, "Idempotency-Key", "k"); !a.replayed(t) {
				t.Errorf("%s: %s", name, a.Raw)
			}
			if a := c.ok("PATCH", "/cart/items/1", `{"quantity":2}`, "Idempotency-Key", "l"); !a.replayed(t) {
				t.Errorf("%s: %s", name, a.Raw)
			}
			s.pass(t, 2*time.Second)
			if a := stamped.add(`{"product_id":1}`, "X-Timestamp", "1"); !a.replayed(t) {
				t.Errorf("%s: %s", name, a.Raw)
			}
			c.wantLines("1×2")
			stamped.wantLines("1×1")
		}
	})
}

func TestUnkeyedRetry_CountsOnce(t *testing.T) {
	s := realShop(t)
	for _, tt := range []struct {
		after  time.Duration
		replay bool
	}{
		{0, false},          // a second click
		{time.Second, true}, // the published client's own retry
		{3 * time.Second, true},
		{5*time.Minute - 10*time.Second, true},
		{5*time.Minute + time.Millisecond, false},
	} {
		c := s.guest(t).fill("7×2")
		for _, call := range []struct{ method, path, body string }{
			{"POST", "/cart/add", `{"product_id":1}`},
			{"PATCH", "/cart/items/7", `{"quantity":4}`},
			{"DELETE", "/cart/items/7", ""},
			{"DELETE", "/cart/clear", ""},
		} {
			assert(t, !c.ok(call.method, call.path, call.body, "X-Timestamp", "1763632800").replayed(t), "%s %s was a replay immediately", call.method, call.path)
			before := c.cart()
			s.pass(t, tt.after)
			a := c.ok(call.method, call.path, call.body, "X-Timestamp", "1763632800")
			assert(t, a.replayed(t) == tt.replay, "%s %s after %v: replayed %v", call.method, call.path, tt.after, !tt.replay)
			assert(t, !a.replayed(t) || a.Body.Data.Version == before.Version, "%s %s after %v: a replay changed the cart", call.method, call.path, tt.after)
		}
	}
}

func TestUnkeyedRetry_MayRepeatAnyRecentChange(t *testing.T) {
	s := realShop(t)
	const body = `{"product_id":1}`
	for name, tt := range map[string]struct {
		between func(*shopper)
		repeat  []string // headers
		replay  bool
	}{
		"nothing between": {func(*shopper) {}, []string{"X-Timestamp", "1"}, true},
		"a read between":  {func(c *shopper) { c.cart() }, []string{"X-Timestamp", "1"}, true},
		"a refusal between": {func(c *shopper) {
			c.refused(422, "out_of_stock", "POST", "/cart/add", `{"product_id":6}`, "X-Timestamp", "2")
		}, []string{"X-Timestamp", "1"}, true},
		"another change between":    {func(c *shopper) { c.add(`{"product_id":2}`, "X-Timestamp", "2") }, []string{"X-Timestamp", "1"}, true},
		"a keyed change between":    {func(c *shopper) { c.add(`{"product_id":2}`, "Idempotency-Key", "k") }, []string{"X-Timestamp", "1"}, true},
		"an unstamped one between":  {func(c *shopper) { c.add(`{"product_id":2}`) }, []string{"X-Timestamp", "1"}, true},
		"another X-Timestamp":       {func(*shopper) {}, []string{"X-Timestamp", "2"}, false},
		"no X-Timestamp":            {func(*shopper) {}, nil, false},
		"a key and X-Timestamp":     {func(*shopper) {}, []string{"X-Timestamp", "1", "Idempotency-Key", "k"}, false},
		"a stale If-Match as well":  {func(*shopper) {}, []string{"X-Timestamp", "1", "If-Match", `"x.1-y"`}, true},
		"another signature as well": {func(*shopper) {}, []string{"X-Timestamp", "1", "X-Signature", "other", "X-Signature-Version", "2", "X-Client-Auth", "x"}, true},
	} {
		c := s.guest(t)
		c.cart()
		c.add(body, "X-Timestamp", "1")
		tt.between(c)
		s.pass(t, 2*time.Second)
		a := c.add(body, tt.repeat...)
		want := int64(2)
		if tt.replay {
			want = 1
		}
		assert(t, a.replayed(t) == tt.replay && a.Body.Data.Items[0].Quantity == want, "%s: replayed %v, cart holds %q", name, a.replayed(t), a.Body.Data.lines())
	}

	c := s.guest(t)
	c.add(body, "X-Timestamp", "1")
	s.pass(t, 2*time.Second)
	assert(t, !c.add(`{"product_id":1,"qty":1}`, "X-Timestamp", "1").replayed(t), "another body was taken for a repeat")
	other := s.guest(t)
	other.cart()
	assert(t, !other.add(`{"product_id":1,"qty":1}`, "X-Timestamp", "1").replayed(t), "another cart's change was taken for a repeat")
}

func TestUnkeyedRetry_OfARefusalRunsAgain(t *testing.T) {
	s := realShop(t)
	c := s.guest(t).fill("1×1")
	c.refused(422, "out_of_stock", "POST", "/cart/add", `{"product_id":6}`, "X-Timestamp", "1")
	s.Catalog.Put(s.ID, &cart.Product{ID: 6, Name: locale.Named("Back again"), Active: true, MinQuantity: 1, Price: 777})
	s.pass(t, 2*time.Second)
	assert(t, !c.add(`{"product_id":6}`, "X-Timestamp", "1").replayed(t), "a refusal was replayed")
	c.wantLines("1×1 6×1")
}

func TestKey_NoOpsAreRememberedToo(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t).fill("2×1")
		for _, headers := range [][]string{{"Idempotency-Key", "k"}, {"X-Timestamp", "1"}} {
			c.ok("DELETE", "/cart/items/1", "", headers...) // no such line
			s.pass(t, 2*time.Second)
			c.add(`{"product_id":1}`)
			again := c.ok("DELETE", "/cart/items/1", "", headers...)
			assert(t, again.replayed(t) && strings.Contains(again.Body.Data.lines(), "1×"), "%v: a late repeat removed a line that was added since: %q", headers, again.Body.Data.lines())
			c.ok("DELETE", "/cart/items/1", "")
		}
	})
}

func TestKey_OnACartNeverUsedADeleteStoresNothing(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		c.cart()
		c.ok("DELETE", "/cart/items/1", "", "Idempotency-Key", "k")
		c.ok("DELETE", "/cart/clear", "", "X-Timestamp", "1")
		c.ok("DELETE", "/cart/coupon", "")
		keys := s.keys(t)
		assert(t, len(keys) == 0, "stored: %v", keys)
	})
}

// A change without a key stores only the cart, with its stamp.
func TestUnkeyedRetry_LeavesNoOtherKey(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		c.cart()
		c.add(addOne, "X-Timestamp", "1")
		keys := s.keys(t)
		assert(t, len(keys) == 1, "keys: %v", keys)
		for i := range 40 {
			c.add(addOne, "X-Timestamp", fmt.Sprint(i))
		}
		members, err := s.Redis.HKeys(t.Context(), s.guestKey(c.Token)).Result()
		n := strings.Count(strings.Join(members, " "), " r")
		assert(t, err == nil && n == 4, "after 41 changes, the stamps take %d members: %v, %v", n, members, err)
	})
}
