package server_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"commerce/auth"
	"commerce/deploy/ephemeral"
)

// If the shard of a guest's cart is unresponsive, customers on other shards are still
// served.
func TestUnresponsiveGuestShard_LeavesCustomersServed(t *testing.T) {
	t.Parallel()
	cluster := ephemeral.StartCluster(t)
	s := openShop(t, cluster.URL, asServed(t, cluster.URL, time.Second))
	guest := s.guest(t)
	guest.Token = s.tokenOn(t, cluster, 1, "guest")
	guest.add(`{"product_id":2}`)
	customer := s.customerOn(t, cluster, 0, "customer")
	customer.add(addOne)
	customer.Token = guest.Token
	cluster.Nodes[1].Freeze()
	for i := range 10 {
		for _, call := range [][2]string{{"GET", "/cart"}, {"GET", "/cart/count"}, {"GET", "/cart/summary"}, {"GET", "/cart/validate"}} {
			customer.ok(call[0], call[1], "")
		}
		if i == 0 {
			customer.ok("PATCH", "/cart/items/1", `{"quantity":4}`)
		}
	}
	assert(t, strings.Contains(s.Log.String(), "not called, because it has just timed out"), "the node was asked each time")
	customer.wantLines("1×4")
	cluster.Nodes[1].Thaw()
	within(t, 10*time.Second, "the merge is driven", func() bool {
		return customer.send("GET", "/cart", "").Body.Data.lines() == "1×4 2×1"
	})
}

// A merge that died after its claim has a note in the customer's cart, and each call tries
// to resume it. With an unresponsive shard, only the first call waits.
func TestUnresponsiveGuestShard_WithAnUnfinishedMerge(t *testing.T) {
	t.Parallel()
	cluster := ephemeral.StartCluster(t)
	s := openShop(t, cluster.URL, asServed(t, cluster.URL, time.Second))
	guest := s.guest(t)
	guest.Token = s.tokenOn(t, cluster, 1, "guest")
	guest.add(`{"product_id":2}`)
	customer := s.customerOn(t, cluster, 0, "customer")
	customer.add(addOne)
	// The state after a request that died after its note.
	note := auth.CartToken(guest.Token).Digest() + " " + strconv.FormatInt(time.Now().Unix(), 10) + " 1 0 -"
	s.Redis.HSet(t.Context(), s.customerKey(customer), "mdied", note)
	cluster.Nodes[1].Freeze()
	defer cluster.Nodes[1].Thaw()
	for range 3 {
		customer.wantLines("1×1")
		customer.ok("PATCH", "/cart/items/1", `{"quantity":1}`)
	}
	assert(t, strings.Contains(s.Log.String(), "not called, because it has just timed out"), "the node was asked each time")
}

// A change without a key that got no connection has certainly not run, so its client need not
// read the cart first.
func TestStoppedShard_RefusesChangesThatWereNotSent(t *testing.T) {
	t.Parallel()
	cluster := ephemeral.StartCluster(t)
	s := openShop(t, cluster.URL, asServed(t, cluster.URL, 300*time.Millisecond))
	guest := s.guest(t)
	guest.Token = s.tokenOn(t, cluster, 1, "guest")
	guest.add(addOne)
	cluster.Nodes[1].Kill()
	for range 5 {
		guest.refused(503, "unavailable", "POST", "/cart/add", addOne)
	}
}
