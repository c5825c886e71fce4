package server_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
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

// A replica is unresponsive until its master forgets it, and later becomes master. What was
// merged meanwhile is lost with the old master, so the claimed cart must still exist.
func TestMerge_SurvivesAFailoverToAnOutdatedReplica(t *testing.T) {
	slow(t)
	for name, startedLate := range map[string]bool{
		"an instance that has seen the replica":   false,
		"an instance that starts in the meantime": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := ephemeral.StartCluster(t)
			open := func() *shop {
				return openShop(t, cluster.URL, func(p *server.Parts) { p.Carts.Budget = ephemeral.Patience(2 * time.Second) })
			}
			s := open()
			s.logInOn(t, cluster, "early") // by which the instance sees the replica

			master, replica := cluster.Nodes[0], cluster.Nodes[3]
			assert.NoError(t, master.Admin().ConfigSet(t.Context(), "repl-timeout", "1").Err())
			replica.Freeze()
			ephemeral.Eventually(t, "the master forgets its replica", func() bool {
				return strings.Contains(master.Admin().Info(t.Context(), "replication").Val(), "connected_slaves:0")
			})
			if startedLate {
				s = open()
			}
			var customers []*shopper
			for i := range 5 {
				customers = append(customers, s.logInOn(t, cluster, fmt.Sprint("late-", i)))
			}
			master.Kill()
			replica.Thaw()
			for _, c := range customers {
				ephemeral.Eventually(t, "the customer's shard serves again", func() bool {
					return c.send("GET", "/cart", "").Status == 200
				})
				c.wantLines("1×3")
			}
		})
	}
}

func (s *shop) customerOn(t testing.TB, cluster *ephemeral.RedisCluster, node int, whose string) *shopper {
	t.Helper()
	return s.customer(t, s.nameOn(t, cluster, node, whose, s.customerKey))
}

// logInOn merges a guest's cart on node 1 into a new customer's on node 0.
func (s *shop) logInOn(t testing.TB, cluster *ephemeral.RedisCluster, whose string) *shopper {
	t.Helper()
	guest := s.guest(t)
	guest.Token = s.tokenOn(t, cluster, 1, whose)
	ephemeral.Eventually(t, "the guest's change is made", func() bool { // some node hangs, and the machine may be busy
		return guest.send("POST", "/cart/add", `{"product_id":1,"qty":3}`, "Idempotency-Key", "k").Status == 200
	})
	customer := s.customerOn(t, cluster, 0, whose)
	customer.Token = guest.Token
	ephemeral.Eventually(t, "the cart is merged", func() bool {
		return customer.send("GET", "/cart", "").Body.Data.lines() == "1×3"
	})
	return customer
}

// openShards opens a shop on a cluster, with a guest's cart on node 1 and a customer's on 0.
func openShards(t *testing.T, budget time.Duration) (*shop, *ephemeral.RedisCluster, *shopper, *shopper) {
	t.Helper()
	t.Parallel()
	cluster := ephemeral.StartCluster(t)
	assert.NoError(t, cluster.Nodes[4].Admin().ConfigSet(t.Context(), "cluster-replica-no-failover", "yes").Err()) // of node 1, which hangs
	s := openShop(t, cluster.URL, asServed(t, cluster.URL, budget))
	guest := s.guest(t)
	guest.Token = s.tokenOn(t, cluster, 1, "guest")
	return s, cluster, guest, s.customerOn(t, cluster, 0, "customer")
}

// An unresponsive shard of a guest's cart does not stop customers on other shards.
func TestUnresponsiveGuestShard_LeavesCustomersServed(t *testing.T) {
	s, cluster, guest, customer := openShards(t, time.Second)
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

// A merge that died after its claim has a note in the customer's cart, and each call tries
// to resume it. With an unresponsive shard, only the first call waits.
func TestUnresponsiveGuestShard_WithAnUnfinishedMerge(t *testing.T) {
	s, cluster, guest, customer := openShards(t, time.Second)
	guest.add(`{"product_id":2}`)
	customer.add(addOne)
	// The state after a request that died after its note.
	note := auth.CartToken(guest.Token).Digest() + " " + strconv.FormatInt(time.Now().Unix(), 10) + " 1 0 -"
	s.Redis.HSet(t.Context(), s.customerKey(customer.ID), "mdied", note)
	cluster.Nodes[1].Freeze()
	defer cluster.Nodes[1].Thaw()
	for range 3 {
		customer.wantLines("1×1")
		customer.ok("PATCH", "/cart/items/1", `{"quantity":1}`)
	}
	assert.That(t, strings.Contains(s.Log.String(), "not called, because it has just timed out"), "the node was asked each time")
}

// A change that got no connection has not run, so its client need not read the cart first.
func TestStoppedShard_RefusesChangesThatWereNotSent(t *testing.T) {
	_, cluster, guest, _ := openShards(t, time.Second)
	guest.add(addOne)
	cluster.Nodes[1].Kill()
	for range 5 {
		guest.refused(503, "unavailable", "POST", "/cart/add", addOne)
	}
}

// While a slot migrates, Redis refuses a script with two keys if one of them does not
// exist. The published client's changes use only the cart's key.
func TestMovingSlot_ServesThePublishedClient(t *testing.T) {
	slow(t)
	for name, durable := range map[string]bool{"plain": false, "with DURABILITY=replica": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := ephemeral.StartCluster(t)
			s := openShop(t, cluster.URL, func(p *server.Parts) { p.Redis.Durable = durable })
			old, fresh := s.published(t), s.published(t)
			old.Token = s.tokenOn(t, cluster, 0, "old")
			fresh.Token = old.Token + "-is-of-another-slot"
			old.shows("1×1", "POST", "/cart/add", `{"product_id":1,"qty":1}`)
			move := s.beginToMove(t, cluster, s.guestKey(old.Token))

			old.shows("1×2", "POST", "/cart/add", `{"product_id":1,"qty":1}`)
			move.key()
			old.shows("1×3", "POST", "/cart/add", `{"product_id":1,"qty":1}`)
			old.shows("1×2", "PATCH", "/cart/items/1", `{"quantity":2}`)
			old.shows("", "DELETE", "/cart/items/1", "")
			move.end()
			old.shows("1×1", "POST", "/cart/add", `{"product_id":1,"qty":1}`)

			back := s.beginToMove(t, cluster, s.guestKey(fresh.Token)) // where no cart lies yet
			fresh.shows("7×2", "POST", "/cart/add", `{"product_id":7,"qty":2}`)
			fresh.shows("7×3", "POST", "/cart/add", `{"product_id":7,"qty":1}`)
			back.end()
			fresh.shows("7×3", "GET", "/cart", "")
		})
	}
}

type slotMove struct {
	t        testing.TB
	from, to *redis.Client
	slot     string
	toID     string
	cartKey  string
}

func (s *shop) beginToMove(t testing.TB, cluster *ephemeral.RedisCluster, key string) slotMove {
	t.Helper()
	from := s.nodeOfKey(t, cluster, key)
	to := (from + 1) % 3
	m := slotMove{t: t, from: cluster.Nodes[from].Admin(), to: cluster.Nodes[to].Admin(), cartKey: key}
	m.slot = strconv.FormatInt(m.from.ClusterKeySlot(t.Context(), key).Val(), 10)
	fromID := m.from.ClusterMyID(t.Context()).Val()
	m.toID = m.to.ClusterMyID(t.Context()).Val()
	m.do(m.to, "cluster", "setslot", m.slot, "importing", fromID)
	m.do(m.from, "cluster", "setslot", m.slot, "migrating", m.toID)
	return m
}

func (m slotMove) do(node *redis.Client, args ...any) {
	m.t.Helper()
	err := node.Do(m.t.Context(), args...).Err()
	assert.Require(m.t, err == nil, "%v: %v", fmt.Sprint(args...), err)
}

func (m slotMove) key() {
	m.t.Helper()
	host, port := "127.0.0.1", m.to.Options().Addr[len("127.0.0.1:"):]
	m.do(m.from, "migrate", host, port, m.cartKey, 0, 5000)
}

func (m slotMove) end() {
	m.t.Helper()
	m.do(m.to, "cluster", "setslot", m.slot, "node", m.toID)
	m.do(m.from, "cluster", "setslot", m.slot, "node", m.toID)
}
