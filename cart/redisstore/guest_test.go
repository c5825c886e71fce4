package redisstore_test

import (
	"strings"
	"testing"

	"commerce/cart/redisstore"
	"commerce/deploy/ephemeral"
)

// go-redis then fails with an error that wraps redis.Nil, as if a value were missing.
func TestReads_FailWhenNoSentinelKnowsTheMaster(t *testing.T) {
	t.Parallel()
	url := strings.Replace(ephemeral.StartSentinels(t).URL, "master=main", "master=other", 1)
	s := redisstore.New(redisstore.Config{Client: dial(t, url), TTL: usualTTLs})
	store := newStoreID()
	customer, guest := redisstore.CustomerRef(store, "c"), redisstore.GuestRef(store, tokenOf("t"))
	if found, err := s.FindGuest(t.Context(), customer, guest, "key"); err == nil {
		t.Errorf("the guest has %+v, want a failure", found)
	}
	if held, err := s.Load(t.Context(), customer); err == nil {
		t.Errorf("the cart is %+v, want a failure", held)
	}
}
