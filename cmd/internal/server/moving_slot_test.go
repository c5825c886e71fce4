package server_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"commerce/cmd/internal/server"
	"commerce/deploy/ephemeral"
)

// While a slot migrates, Redis refuses a script with two keys if one of them does not
// exist. The published client's changes use only the cart's key.
func TestMovingSlot_ServesThePublishedClient(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	for name, durable := range map[string]bool{"plain": false, "with DURABILITY=replica": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := ephemeral.StartCluster(t)
			s := openShop(t, cluster.URL, func(p *server.Parts) { p.Durable = durable })
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

// slotMove is a slot that migrates from one node to another.
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
	require(m.t, err == nil, "%v: %v", fmt.Sprint(args...), err)
}

// key migrates the cart itself.
func (m slotMove) key() {
	m.t.Helper()
	host, port := "127.0.0.1", m.to.Options().Addr[len("127.0.0.1:"):]
	m.do(m.from, "migrate", host, port, m.cartKey, 0, 5000)
}

// end assigns the slot to its new node.
func (m slotMove) end() {
	m.t.Helper()
	m.do(m.to, "cluster", "setslot", m.slot, "node", m.toID)
	m.do(m.from, "cluster", "setslot", m.slot, "node", m.toID)
}
