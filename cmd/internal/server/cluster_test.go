package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func TestDurability_ConfirmsWhatEveryReplicaHas(t *testing.T) {
	t.Parallel()
	c := openShop(t, ephemeral.Cluster(t), func(p *server.Parts) { p.Redis.Durable = true }).guest(t)
	added := c.addConfirmed()
	ephemeral.Eventually(t, "a replay is confirmed", func() bool {
		again := c.add(`{"product_id":1}`, "Idempotency-Key", fmt.Sprint(added))
		assert.Require(t, again.replayed(t), "a replay: %v", again.Header)
		return again.Header.Get("Durability") == "confirmed"
	})
	assert.Equal(t, c.ok("GET", "/cart", "").Header.Get("Durability"), "", "Durability of a read")
}

func TestDurability_IsUnconfirmedWithoutAReplica(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"embedded": embeddedRedis(t), "single": ephemeral.Redis(t)} {
		s := openShop(t, url, func(p *server.Parts) { p.Redis.Durable = true })
		assert.Equal(t, s.guest(t).add(`{"product_id":1}`).Header.Get("Durability"), "unconfirmed", "%s: Durability", name)
		assert.Equal(t, metric(t, s.Metrics, `commerce_replicated_changes_total{result="unconfirmed"}`), 1, "%s: unconfirmed changes that are counted", name)
	}
}

// addConfirmed adds one of product 1 at a time, with the keys 1, 2 and so on, until replicas
// confirm a change in time. It returns how many it added. On a busy machine a replica may
// confirm late; without a replica, nothing is ever confirmed.
func (c *shopper) addConfirmed() (added int) {
	c.t.Helper()
	ephemeral.Eventually(c.t, "replicas confirm a change", func() bool {
		added++
		a := c.add(`{"product_id":1}`, "Idempotency-Key", fmt.Sprint(added))
		return a.Header.Get("Durability") == "confirmed"
	})
	return added
}

func (s *shop) holdsClaim(t testing.TB) bool {
	return slices.ContainsFunc(s.keys(t), func(key string) bool { return strings.HasSuffix(key, ":claimed") })
}

// An unresponsive shard of a guest's cart does not stop customers on other shards.
func TestUnresponsiveGuestShard_LeavesCustomersServed(t *testing.T) {
	t.Parallel()
	cluster := ephemeral.StartCluster(t)
	assert.NoError(t, cluster.Nodes[4].Admin().ConfigSet(t.Context(), "cluster-replica-no-failover", "yes").Err()) // of node 1, which hangs
	s := openShop(t, cluster.URL, asServed(t, cluster.URL, time.Second))
	guest, customer := s.guest(t), s.customer(t, s.nameOn(t, cluster, 0, "customer", s.customerKey))
	guest.Token = s.nameOn(t, cluster, 1, "a-token-of-its-own-making", s.guestKey)
	guest.add(`{"product_id":2}`)
	customer.add(addOne)
	customer.Token = guest.Token
	cluster.Nodes[1].Freeze()
	customer.ok("PATCH", "/cart/items/1", `{"quantity":3}`) // waits for the node, and has time left
	// It may be of the merge that waits.
	customer.refused(503, "unavailable", "POST", "/cart/merge/undo", undoBody("AAAAAAAAAA"))
	for i := range 10 {
		for _, path := range []string{"/cart", "/cart/count", "/cart/summary", "/cart/validate"} {
			customer.ok("GET", path, "")
		}
		if i == 0 {
			customer.ok("PATCH", "/cart/items/1", `{"quantity":4}`)
		}
	}
	assert.That(t, strings.Contains(s.Log.String(), "not called, because it has just timed out"), "the node was asked each time")
	customer.wantLines("1×4")
	cluster.Nodes[1].Thaw()
	ephemeral.Eventually(t, "the merge is driven", func() bool {
		return customer.send("GET", "/cart", "").Body.Data.lines() == "1×4 2×1"
	})
}
