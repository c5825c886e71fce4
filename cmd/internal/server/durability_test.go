package server_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cmd/internal/server"
	"commerce/cmd/internal/telemetry"
	"commerce/deploy/ephemeral"
)

func TestDurability_ConfirmsWhatEveryReplicaHas(t *testing.T) {
	t.Parallel()
	s := openShop(t, ephemeral.Cluster(t), func(p *server.Parts) { p.Durable = true })
	c := s.guest(t)
	added := c.addConfirmed()
	within(t, 10*time.Second, "a replay is confirmed", func() bool {
		again := c.add(`{"product_id":1}`, "Idempotency-Key", fmt.Sprint(added))
		require(t, again.Header.Get("Idempotency-Replayed") == "true", "a replay: %v", again.Header)
		return again.Header.Get("Durability") == "confirmed"
	})
	equal(t, c.ok("GET", "/cart", "").Header.Get("Durability"), "", "Durability of a read")
}

func TestDurability_IsUnconfirmedWithoutAReplica(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"embedded": embeddedRedis(t), "single": ephemeral.Redis(t)} {
		var m *telemetry.Metrics
		s := openShop(t, url, func(p *server.Parts) { p.Durable = true; m = p.Metrics })
		equal(t, s.guest(t).add(`{"product_id":1}`).Header.Get("Durability"), "unconfirmed", "%s: Durability", name)
		equal(t, metric(t, m, `commerce_replicated_changes_total{result="unconfirmed"}`), 1, "%s: unconfirmed changes that are counted", name)
	}
}

func TestDurability_AFrozenReplicaLeavesAMergeToALaterRequest(t *testing.T) {
	t.Parallel()
	master, replica := ephemeral.StartRedis(t), ephemeral.StartRedis(t)
	follow(t, replica, master)
	s := openShop(t, master.URL, func(p *server.Parts) { p.Durable = true })
	guest := s.guest(t)
	added := guest.addConfirmed()
	replica.Freeze()
	equal(t, guest.add(`{"product_id":1}`).Header.Get("Durability"), "unconfirmed", "with a frozen replica")
	customer := s.customer(t, "1")
	customer.Token = guest.Token
	lines := fmt.Sprintf("1×%d", added+1)
	customer.wantLines(lines)
	assert(t, s.holdsClaim(t), "the guest's cart was deleted before the replica had its lines")
	replica.Thaw()
	// The replica may take longer to catch up than one request waits.
	within(t, 10*time.Second, "a later request finishes the merge", func() bool {
		customer.wantLines(lines)
		return !s.holdsClaim(t)
	})
}

// addConfirmed adds one of product 1 at a time, with the keys 1, 2 and so on, until replicas
// confirm a change in time. It returns how many it added. On a busy machine a replica may
// confirm late; without a replica, nothing is ever confirmed.
func (c *shopper) addConfirmed() (added int) {
	c.t.Helper()
	within(c.t, 10*time.Second, "replicas confirm a change", func() bool {
		added++
		a := c.add(`{"product_id":1}`, "Idempotency-Key", fmt.Sprint(added))
		return a.Header.Get("Durability") == "confirmed"
	})
	return added
}

// follow makes one server the replica of another and waits until they are in sync.
func follow(t *testing.T, replica, master *ephemeral.Server) {
	t.Helper()
	rdb, m := dial(t, replica.URL), dial(t, master.URL)
	host, port, err := net.SplitHostPort(m.Options().Addr)
	if err != nil {
		t.Fatal(err)
	}
	noError(t, rdb.ReplicaOf(t.Context(), host, port).Err())
	for deadline := time.Now().Add(10 * time.Second); ; {
		m.Set(t.Context(), "probe", 1, time.Second)
		if m.Wait(t.Context(), 1, 100*time.Millisecond).Val() == 1 {
			return
		}
		require(t, !time.Now().After(deadline), "the replica does not follow its master")
	}
}

// holdsClaim reports whether a guest's cart is still claimed.
func (s *shop) holdsClaim(t testing.TB) bool {
	return slices.ContainsFunc(s.keys(t), func(key string) bool { return strings.HasSuffix(key, ":claimed") })
}

func dial(t *testing.T, url string) *redis.Client {
	t.Helper()
	options := must(redis.ParseURL(url))(t)
	rdb := redis.NewClient(options)
	t.Cleanup(func() { rdb.Close() })
	return rdb
}
