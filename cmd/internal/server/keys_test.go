package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/cart/carttest"
)

// keys lists this shop's keys in Redis.
func (s *shop) keys(t testing.TB) []string {
	t.Helper()
	var mu sync.Mutex
	var keys []string
	scan := func(ctx context.Context, node *redis.Client) error {
		it := node.Scan(ctx, 0, fmt.Sprintf("cart:{%d:*", s.ID), 1000).Iterator()
		for it.Next(ctx) {
			mu.Lock()
			keys = append(keys, it.Val())
			mu.Unlock()
		}
		return it.Err()
	}
	var err error
	switch client := s.Redis.(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(t.Context(), scan)
	case *redis.Client:
		err = scan(t.Context(), client)
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// pass lets time pass for the service and for the carts in Redis.
func (s *shop) pass(t testing.TB, by time.Duration) {
	t.Helper()
	s.Clock.Forward(by)
	noError(t, carttest.Age(t.Context(), s.Redis, by, s.keys(t)...))
}

// wantTTLs fails if a key of this store has no TTL.
func (s *shop) wantTTLs(t testing.TB) {
	t.Helper()
	for _, key := range s.keys(t) {
		assert(t, s.Redis.PTTL(t.Context(), key).Val() > 0, "%s has no TTL", key)
	}
}

// guestKey returns the key of a guest's cart.
func (s *shop) guestKey(token string) string {
	return fmt.Sprintf("cart:{%d:g:%s}", s.ID, auth.CartToken(token).Digest())
}

// customerKey returns the key of a customer's cart, for a short and plain customer ID.
func (s *shop) customerKey(c *shopper) string { return fmt.Sprintf("cart:{%d:c:%s}", s.ID, c.ID) }

// within waits until a condition is true, and fails the test after limit.
func within(t testing.TB, limit time.Duration, what string, so func() bool) {
	t.Helper()
	for start := time.Now(); !so(); time.Sleep(10 * time.Millisecond) {
		require(t, time.Since(start) <= limit, "not within %v: %s", limit, what)
	}
}
