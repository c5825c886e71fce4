package server_test

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cmd/internal/server"
	"commerce/deploy/ephemeral"
)

func TestDurability_ConfirmsWhatEveryReplicaHas(t *testing.T) {
	t.Parallel()
	s := openShop(t, ephemeral.Cluster(t), func(p *server.Parts) { p.Durable = true })
	c := s.guest(t)
	if got := c.add(`{"product_id":1}`, "Idempotency-Key", "k").Header.Get("Durability"); got != "confirmed" {
		t.Errorf("on a cluster with replicas: %q", got)
	}
	again := c.add(`{"product_id":1}`, "Idempotency-Key", "k")
	if again.Header.Get("Durability") != "confirmed" || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a replay: %v", again.Header)
	}
	if got := c.ok("GET", "/cart", "").Header.Get("Durability"); got != "" {
		t.Errorf("a read says %q", got)
	}
}

func TestDurability_SaysWhenNobodyCouldConfirm(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"embedded": embeddedRedis(t), "single": ephemeral.Redis(t)} {
		s := openShop(t, url, func(p *server.Parts) { p.Durable = true })
		if got := s.guest(t).add(`{"product_id":1}`).Header.Get("Durability"); got != "unconfirmed" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestDurability_AFrozenReplicaLeavesAMergeToALaterRequest(t *testing.T) {
	t.Parallel()
	master, replica := ephemeral.StartRedis(t), ephemeral.StartRedis(t)
	follow(t, replica, master)
	s := openShop(t, master.URL, func(p *server.Parts) { p.Durable = true })
	guest := s.guest(t)
	if got := guest.add(`{"product_id":1}`).Header.Get("Durability"); got != "confirmed" {
		t.Fatalf("with a replica: %q", got)
	}
	replica.Freeze()
	if got := guest.add(`{"product_id":1}`).Header.Get("Durability"); got != "unconfirmed" {
		t.Errorf("with a frozen replica: %q", got)
	}
	customer := s.customer(t, "1")
	customer.Token = guest.Token
	customer.wantLines("1×2")
	if !s.holdsClaim(t) {
		t.Error("the guest's cart was dropped before the replica had its lines")
	}
	replica.Thaw()
	customer.wantLines("1×2")
	if s.holdsClaim(t) {
		t.Error("the merge was not finished once the replica was back")
	}
}

// follow makes one server the replica of another and waits until it is.
func follow(t *testing.T, replica, master *ephemeral.Server) {
	t.Helper()
	rdb, m := dial(t, replica.URL), dial(t, master.URL)
	host, port, err := net.SplitHostPort(m.Options().Addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		m.Set(t.Context(), "probe", 1, time.Second)
		if m.Wait(t.Context(), 1, 100*time.Millisecond).Val() == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the replica does not follow its master")
		}
	}
}

// holdsClaim reports whether a guest's cart is still set aside.
func (s *shop) holdsClaim(t testing.TB) bool {
	return slices.ContainsFunc(s.keys(t), func(key string) bool { return strings.HasSuffix(key, ":claimed") })
}

func dial(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { rdb.Close() })
	return rdb
}
