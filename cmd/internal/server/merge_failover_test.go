package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"commerce/cmd/internal/server"
	"commerce/deploy/ephemeral"
)

// recoveryLimit is how long shoppers may be refused after their master died: about 2 s for
// the failover, 1 s until the service knows the new master, and the rest for a busy machine.
const recoveryLimit = 15 * time.Second

// A replica is unresponsive until its master forgets it, and later becomes master. What was
// merged meanwhile is lost with the old master, so the claimed cart must still exist.
func TestMerge_SurvivesAFailoverToAnOutdatedReplica(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	for name, startedLate := range map[string]bool{
		"an instance that has seen the replica":   false,
		"an instance that starts in the meantime": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := ephemeral.StartCluster(t)
			open := func() *shop {
				return openShop(t, cluster.URL, func(p *server.Parts) { p.RedisBudget = 2 * time.Second })
			}
			s := open()
			s.logInOn(t, cluster, "early") // by which the instance sees the replica

			master, replica := cluster.Nodes[0], cluster.Nodes[3]
			noError(t, master.Admin().ConfigSet(t.Context(), "repl-timeout", "1").Err())
			replica.Freeze()
			within(t, 20*time.Second, "the master forgets its replica", func() bool {
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
				within(t, recoveryLimit, "the customer's shard serves again", func() bool {
					return c.send("GET", "/cart", "").Status == 200
				})
				c.wantLines("1×3")
			}
		})
	}
}

// customerOn returns a customer whose cart is on the given node of a cluster.
func (s *shop) customerOn(t testing.TB, cluster *ephemeral.RedisCluster, node int, whose string) *shopper {
	t.Helper()
	for i := range 1000 {
		id := fmt.Sprint(whose, "-", i)
		if s.nodeOfKey(t, cluster, fmt.Sprintf("cart:{%d:c:%s}", s.ID, id)) == node {
			return s.customer(t, id)
		}
	}
	t.Fatalf("no customer on node %d", node)
	return nil
}

// logInOn merges a guest's cart on node 1 into a new customer's on node 0.
func (s *shop) logInOn(t testing.TB, cluster *ephemeral.RedisCluster, whose string) *shopper {
	t.Helper()
	guest := s.guest(t)
	guest.Token = s.tokenOn(t, cluster, 1, whose)
	within(t, 20*time.Second, "the guest's change is made", func() bool { // some node hangs, and the machine may be busy
		return guest.send("POST", "/cart/add", `{"product_id":1,"qty":3}`, "Idempotency-Key", "k").Status == 200
	})
	customer := s.customerOn(t, cluster, 0, whose)
	customer.Token = guest.Token
	within(t, 20*time.Second, "the cart is merged", func() bool {
		return customer.send("GET", "/cart", "").Body.Data.lines() == "1×3"
	})
	return customer
}
