package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// A walk that lasts as long as a slot is being moved would miss the slot's carts: they go to a master that it has walked.
func TestMasters_ChangeWhileASlotIsBeingMoved(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	cluster := ephemeral.StartCluster(t)
	s := redisstore.New(redisstore.Config{Client: dial(t, cluster.URL)})
	id := func() uint32 { return assert.Must(s.Masters(t.Context()))(t).ID }
	before := id()
	assert.Equal(t, id(), before, "the masters")
	slot := assert.Must(s.Client.ClusterSlots(t.Context()).Result())(t)[0]
	var from, to *redis.Client
	for _, node := range cluster.Nodes[:3] {
		if admin := node.Admin(); admin.ClusterMyID(t.Context()).Val() == slot.Nodes[0].ID {
			from = admin
		} else {
			to = admin
		}
	}
	assert.NoError(t, from.Do(t.Context(), "cluster", "setslot", slot.Start, "migrating", to.ClusterMyID(t.Context()).Val()).Err())
	first := id()
	assert.That(t, first != before && id() != first, "a walk does not see that a slot is being moved")
	_, err := s.Holdings(t.Context(), redisstore.CustomerRef(1, "1001"))
	assert.That(t, err != nil, "keys are listed although some may be missing")
	assert.NoError(t, from.Do(t.Context(), "cluster", "setslot", slot.Start, "stable").Err())
	assert.Equal(t, id(), before, "the masters afterwards")
}
