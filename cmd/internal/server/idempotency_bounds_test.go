package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestKey_NoOpsAreRememberedToo(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		c.add(`{"product_id":2}`)
		for _, headers := range [][]string{{"Idempotency-Key", "k"}, {"X-Timestamp", "1"}} {
			c.ok("DELETE", "/cart/items/1", "", headers...) // no such line
			s.pass(t, 2*time.Second)
			c.add(addOne)
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
