package server_test

import (
	"testing"

	"commerce/auth"
	"commerce/cart/redisstore"
)

func TestErase_LeavesNothingOfACustomerOrAToken(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		guest := s.guest(t)
		guest.add(`{"product_id":5,"fields":{"0":"sara@example.com"},"notice":"mine"}`, "Idempotency-Key", "k")
		customer := s.customer(t, "1001")
		customer.Token = guest.Token
		customer.add(`{"product_id":1}`, "Idempotency-Key", "l")
		guest.add(`{"product_id":1}`)

		carts := redisstore.New(redisstore.Config{Client: s.Redis})
		guests, err := carts.GuestRefs(t.Context(), auth.CartToken(guest.Token))
		require(t, err == nil && len(guests) == 1, "the token has the carts %v, %v", guests, err)
		for _, ref := range append(guests, redisstore.CustomerRef(s.ID, "1001")) {
			held := must(carts.Erase(t.Context(), ref))(t)
			assert(t, len(held) >= 2, "erased only %+v", held)
		}
		keys := s.keys(t)
		assert(t, len(keys) == 0, "left behind: %v", keys)
	})
}
