package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestKey_TheNewest256OfACartAreRemembered(t *testing.T) {
	onRealRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		c.cart()
		set := func(i int) answer {
			return c.ok("POST", "/cart/add", addOne, "Idempotency-Key", fmt.Sprint("key-", i))
		}
		for i := range 260 {
			set(i)
			if i%100 == 0 {
				s.pass(t, time.Second) // so that all ages differ
			}
		}
		if n := s.Redis.HLen(t.Context(), s.guestKey(c.Token)+":keys").Val(); n != 256 {
			t.Errorf("%d keys are kept", n)
		}
		if !set(259).replayed(t) || !set(101).replayed(t) {
			t.Error("one of the newest 256 is forgotten")
		}
		forgotten := 0
		for i := range 100 {
			if !set(i).replayed(t) { // remembers it again, and forgets another
				forgotten++
			}
		}
		if forgotten == 0 {
			t.Error("more than 256 are remembered")
		}
	})
}

func TestKey_NoOpsAreRememberedToo(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		c.add(`{"product_id":2}`)
		for _, headers := range [][]string{{"Idempotency-Key", "k"}, {"X-Timestamp", "1"}} {
			c.ok("DELETE", "/cart/items/1", "", headers...) // no such line
			s.pass(t, 2*time.Second)
			c.add(addOne)
			if again := c.ok("DELETE", "/cart/items/1", "", headers...); !again.replayed(t) || !strings.Contains(again.Body.Data.lines(), "1×") {
				t.Errorf("%v: a late repeat removed a line that was added since: %q", headers, again.Body.Data.lines())
			}
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
		if keys := s.keys(t); len(keys) != 0 {
			t.Errorf("stored: %v", keys)
		}
	})
}

func TestKey_AMergeKeepsTheNewestOfBothCarts(t *testing.T) {
	onRealRedis(t, func(t *testing.T, s *shop) {
		guest, customer := s.guest(t), s.customer(t, "1")
		guest.cart()
		fill := func(c *shopper, of string) {
			for i := range 200 {
				c.add(addOne, "Idempotency-Key", fmt.Sprint(of, i))
			}
			s.pass(t, time.Second)
		}
		fill(customer, "customer-")
		fill(guest, "guest-")
		customer.Token = guest.Token
		customer.wantLines("1×400")
		key := fmt.Sprintf("cart:{%d:c:1}:keys", s.ID)
		if n := s.Redis.HLen(t.Context(), key).Val(); n != 256 {
			t.Errorf("%d keys are kept", n)
		}
		for i := range 200 {
			if !customer.add(addOne, "Idempotency-Key", fmt.Sprint("guest-", i)).replayed(t) {
				t.Fatalf("the guest's key %d, one of the newest, is forgotten", i)
			}
		}
		customer.wantLines("1×400")
	})
}

func TestUnkeyedRetry_TheNewest16OfACartAreRemembered(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		c.cart()
		add := func(i int) answer { return c.add(addOne, "X-Timestamp", fmt.Sprint(i)) }
		for i := range 17 {
			add(i)
			s.pass(t, time.Second)
		}
		if add(0).replayed(t) {
			t.Error("17 changes are remembered")
		}
		s.pass(t, time.Second)
		for i := 2; i < 17; i++ {
			if !add(i).replayed(t) {
				t.Errorf("change %d, one of the newest 16, is forgotten", i)
			}
		}
	})
}

// A change without a key stores only the cart, with its stamp.
func TestUnkeyedRetry_LeavesNoOtherKey(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		c.cart()
		c.add(addOne, "X-Timestamp", "1")
		if keys := s.keys(t); len(keys) != 1 {
			t.Errorf("keys: %v", keys)
		}
		for i := range 40 {
			c.add(addOne, "X-Timestamp", fmt.Sprint(i))
		}
		members, err := s.Redis.HKeys(t.Context(), s.guestKey(c.Token)).Result()
		if n := strings.Count(strings.Join(members, " "), " r"); err != nil || n != 4 {
			t.Errorf("after 41 changes, the stamps take %d members: %v, %v", n, members, err)
		}
	})
}
