package server_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// torture is how long TestTorture runs. `make torture` sets it.
var torture = flag.Duration("torture", 8*time.Second, "how long TestTorture runs")

// Shoppers change guests' carts, lose responses, log in, and repeat changes with an unknown
// outcome, as guests or as customers, while masters freeze and die and replies are lost.
// Each change must count exactly once, except an unconfirmed one that a failover lost.
func TestTorture_EachChangeCountsOnceAcrossLoginsAndFailovers(t *testing.T) {
	t.Parallel()
	cluster := ephemeral.StartCluster(t)
	cut := &cutReplies{}
	s := openShop(t, cluster.URL, func(p *server.Parts) {
		client, err := connect.Redis(cluster.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		client.(*redis.ClusterClient).OnNewNode(func(node *redis.Client) { node.AddHook(cut) })
		p.Redis, p.Durable, p.RedisBudget = client, true, 0
	})
	s.sell(4)
	ctx, cancel := context.WithTimeout(t.Context(), *torture)
	defer cancel()
	var all sync.WaitGroup
	var count tally
	for i := range 12 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), uint64(os.Getpid())))
			for n := 0; ctx.Err() == nil; n++ {
				s.torment(t, r, fmt.Sprintf("%d-%d", i, n), &count)
			}
		})
	}
	breakNodes(ctx, t, cluster)
	cut.off.Store(true)
	all.Wait()
	t.Logf("%d changes, %d answered with 503 or 504 on the way, %d repeats recognized, %d merges; %d lost unconfirmed, %d wrong",
		count.changes.Load(), count.unknown.Load(), count.replayed.Load(), count.merges.Load(), count.lost.Load(), count.wrong.Load())
	if count.changes.Load() == 0 || count.replayed.Load() == 0 || count.merges.Load() == 0 {
		t.Error("nothing was tried")
	}
}

// tally counts the shoppers' outcomes.
type tally struct{ changes, unknown, replayed, merges, lost, wrong atomic.Int64 }

// cutReplies loses one in fifty Redis replies, after the command ran.
type cutReplies struct {
	off atomic.Bool
}

func (*cutReplies) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *cutReplies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && !c.off.Load() && rand.IntN(50) == 0 {
			err = errors.New("the reply was cut off")
			cmd.SetErr(err)
		}
		return err
	}
}

func (c *cutReplies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// breakNodes freezes a node for a moment, or replaces a master, until ctx ends.
func breakNodes(ctx context.Context, t *testing.T, cluster *ephemeral.RedisCluster) {
	r := rand.New(rand.NewPCG(1, uint64(os.Getpid())))
	for round := 0; ctx.Err() == nil; round++ {
		shard := r.IntN(3)
		if round%4 == 3 {
			replaceMaster(t, cluster.Nodes[shard], cluster.Nodes[shard+3])
			continue
		}
		node := cluster.Nodes[shard+3*r.IntN(2)]
		node.Freeze()
		pause(ctx, time.Duration(50+r.IntN(400))*time.Millisecond)
		node.Thaw()
		pause(ctx, time.Duration(200+r.IntN(300))*time.Millisecond)
	}
}

// replaceMaster kills the master of a shard and restarts it as the replica of the other
// node. It waits for each step: a node that restarted empty as a master would lose
// everything, even confirmed changes.
func replaceMaster(t *testing.T, one, other *ephemeral.Server) {
	is := func(node *ephemeral.Server, line string) func() bool {
		admin := node.Admin()
		return func() bool { return strings.Contains(admin.Info(t.Context(), "replication").Val(), line) }
	}
	master, replica := one, other
	if !is(one, "role:master")() {
		master, replica = other, one
	}
	within(t, 30*time.Second, "the replica is up to date", is(replica, "master_link_status:up"))
	master.Kill()
	within(t, 30*time.Second, "the replica is master", is(replica, "role:master"))
	master.Restart()
	within(t, 30*time.Second, "the old master follows it", is(master, "master_link_status:up"))
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// torment is one shopper's visit: changes as a guest, a login, and changes as a customer,
// each repeated until its outcome is known. It then checks the cart.
func (s *shop) torment(t *testing.T, r *rand.Rand, name string, count *tally) {
	guest := s.guest(t)
	guest.Token = "a-token-of-a-tormented-shopper-" + name
	customer := guest.logIn("tormented-" + name)
	outcomes := map[string]outcome{}
	for i, product := range []int{101, 102, 103, 104} {
		marks := []string{"Idempotency-Key", fmt.Sprint("k", i)}
		if i%2 == 1 {
			marks = []string{"X-Timestamp", fmt.Sprint(i)}
		}
		asGuest := i < 2 || r.IntN(4) == 0
		outcomes[fmt.Sprint(product)] = s.insist(guest, customer, asGuest, r, fmt.Sprintf(`{"product_id":%d}`, product), marks, count)
	}
	quantities := s.settled(t, customer, guest, count)
	for product, o := range outcomes {
		count.changes.Add(1)
		switch n := quantities[product]; {
		case n > 1, n == 0 && o == confirmed:
			count.wrong.Add(1)
			t.Errorf("%s: product %s counts %d times after a change that was %s", name, product, n, o)
		case n == 0:
			count.lost.Add(1)
		}
	}
}

// outcome is what a shopper knows about a change.
type outcome string

const (
	confirmed   outcome = "confirmed"
	unconfirmed outcome = "unconfirmed"
)

// insist repeats a change until it gets a response. A guest's change with a key may be
// retried as the customer that the guest has become. The published client's own retries,
// which have only a stamp, have the same tokens as the first try.
func (s *shop) insist(guest, customer *shopper, asGuest bool, r *rand.Rand, body string, marks []string, count *tally) outcome {
	for {
		c := customer
		if asGuest {
			c = guest
		}
		a := s.with(c.t, c).send("POST", "/cart/add", body, marks...)
		switch a.Status {
		case http.StatusOK:
			if a.Header.Get("Idempotency-Replayed") == "true" {
				count.replayed.Add(1)
			}
			if a.Body.Data.Merge != nil {
				count.merges.Add(1)
			}
			return outcome(a.Header.Get("Durability"))
		case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			count.unknown.Add(1)
		default:
			c.t.Errorf("%s: %d %s", body, a.Status, a.Raw)
			return unconfirmed
		}
		time.Sleep(1100 * time.Millisecond) // after 1 s, a stamp counts as a repeat
		asGuest = asGuest && (marks[0] == "X-Timestamp" || r.IntN(2) == 0)
	}
}

// settled reads the customer's cart until nothing waits to be merged into it.
func (s *shop) settled(t *testing.T, customer, guest *shopper, count *tally) map[string]int64 {
	quiet := 0
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(50 * time.Millisecond) {
		a := s.with(t, customer).send("GET", "/cart", "")
		left := s.with(t, guest).send("GET", "/cart", "")
		if a.Status != 200 || left.Status != 200 {
			quiet = 0
			continue
		}
		if a.Body.Data.Merge != nil {
			count.merges.Add(1)
		}
		key := s.guestKey(guest.Token) + ":claimed"
		claimed, err := s.Redis.Exists(t.Context(), key).Result()
		if quiet++; err != nil || claimed > 0 || a.Body.Data.Merge != nil || left.Body.Data.Count > 0 {
			quiet = 0
		}
		if quiet < 2 {
			continue
		}
		quantities := map[string]int64{}
		for _, item := range a.Body.Data.Items {
			quantities[item.ID] = item.Quantity
		}
		return quantities
	}
	t.Errorf("the merge into %s did not finish", customer.ID)
	return nil
}
