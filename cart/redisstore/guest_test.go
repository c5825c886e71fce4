package redisstore_test

import (
	"strings"
	"testing"

	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// go-redis then fails with an error that wraps redis.Nil, as if a value were missing.
func TestReads_FailWhenNoSentinelKnowsTheMaster(t *testing.T) {
	t.Parallel()
	url := strings.Replace(ephemeral.StartSentinels(t).URL, "master=main", "master=other", 1)
	s := redisstore.New(redisstore.Config{Client: dial(t, url), TTL: usualTTLs})
	store := newStoreID()
	customer, guest := redisstore.CustomerRef(store, "c"), redisstore.GuestRef(store, tokenOf("t"))
	found, err := s.FindGuest(t.Context(), customer, guest, "key")
	assert.That(t, err != nil, "the guest has %+v, want a failure", found)
	held, err := s.Load(t.Context(), customer)
	assert.That(t, err != nil, "the cart is %+v, want a failure", held)
}
