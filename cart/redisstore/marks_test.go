package redisstore_test

import (
	"testing"
	"time"

	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func versions(t *testing.T, url string, guest redisstore.Ref, n int) []string {
	t.Helper()
	s := redisstore.New(redisstore.Config{Client: dial(t, url), TTL: usualTTLs})
	var tags []string
	for range n {
		add := redisstore.Add(cart.NewLine{ID: "1", Quantity: 1, Bounds: cart.Bounds{Stock: -1, Min: 1, Max: 99}}, carttest.Limits)
		o, err := s.Change(t.Context(), guest, redisstore.Conditions{}, redisstore.Attempt{CartID: "CART"}, add)
		assert.Require(t, err == nil && o.Status == redisstore.Applied, "%v %v", o, err)
		tags = append(tags, o.Cart.Tag())
	}
	return tags
}

func wantOtherMarks(t *testing.T, lost, made []string) {
	t.Helper()
	for i := range lost {
		assert.That(t, lost[i] != made[i], "version %d has the tag %s twice", i+2, lost[i])
	}
}

// A replica that has never run a script becomes master, without the latest changes. Its own random
// numbers would begin like those of its master did.
func TestMark_OfAVersionThatAFailoverLostIsNotGivenAgain(t *testing.T) {
	t.Parallel()
	p, guest := startPair(t), redisstore.GuestRef(newStoreID(), tokenOf("t"))
	versions(t, p.master.URL, guest, 1)
	p.await(func() bool { return p.replica.Admin().Exists(t.Context(), guest.CartKey()).Val() == 1 })
	assert.NoError(t, p.replica.Admin().ReplicaOf(t.Context(), "no", "one").Err())
	wantOtherMarks(t, versions(t, p.master.URL, guest, 4), versions(t, p.replica.URL, guest, 4))
}

func TestMark_OfAVersionThatABackupTookBackIsNotGivenAgain(t *testing.T) {
	t.Parallel()
	redis, guest := ephemeral.StartRedis(t), redisstore.GuestRef(newStoreID(), tokenOf("t"))
	versions(t, redis.URL, guest, 1)
	backup := redis.Admin().Dump(t.Context(), guest.CartKey()).Val()
	lost := versions(t, redis.URL, guest, 4)
	assert.NoError(t, redis.Admin().RestoreReplace(t.Context(), guest.CartKey(), time.Hour, backup).Err())
	wantOtherMarks(t, lost, versions(t, redis.URL, guest, 4))
}
