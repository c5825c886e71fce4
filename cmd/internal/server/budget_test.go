package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cmd/internal/server"
	"commerce/deploy/ephemeral"
)

func TestBudget_IsNotUsedUpByASlowBody(t *testing.T) {
	t.Parallel()
	s := openShop(t, ephemeral.Redis(t), func(p *server.Parts) { p.RedisBudget = 2 * time.Second })
	c := s.guest(t)
	c.cart()
	body, writer := io.Pipe()
	go func() {
		time.Sleep(2200 * time.Millisecond)
		_, _ = io.WriteString(writer, `{"product_id":1}`)
		writer.Close()
	}()
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/cart/add", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Public-Key", s.Key)
	r.Header.Set("X-Cart-Token", c.Token)
	if a := c.do(r); a.Status != http.StatusOK {
		t.Errorf("a slow body: %d %s", a.Status, a.Raw)
	}
}

func TestBudget_AnUnresponsiveGuestShardLeavesTimeForTheChange(t *testing.T) {
	t.Parallel()
	cluster := ephemeral.StartCluster(t)
	s := openShop(t, cluster.URL, func(p *server.Parts) { p.RedisBudget = 3 * time.Second })
	guest := s.guest(t)
	guest.Token = s.tokenOn(t, cluster, 0, "guest")
	customer := s.customerBeside(t, cluster, guest.Token)
	customer.Token = guest.Token
	customer.add(`{"product_id":1}`)
	cluster.Nodes[0].Freeze()
	defer cluster.Nodes[0].Thaw()
	if got := customer.add(`{"product_id":1}`).Body.Data; got.lines() != "1×2" {
		t.Errorf("cart holds %q", got.lines())
	}
}

// customerBeside returns a customer whose cart is on another node than a guest's.
func (s *shop) customerBeside(t *testing.T, cluster *ephemeral.RedisCluster, token string) *shopper {
	t.Helper()
	for i := range 100 {
		id := strconv.Itoa(i)
		master, err := s.Redis.(*redis.ClusterClient).MasterForKey(t.Context(), fmt.Sprintf("cart:{%d:c:%s}", s.ID, id))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(cluster.Nodes[s.nodeOf(t, cluster, token)].URL, master.Options().Addr) {
			return s.customer(t, id)
		}
	}
	t.Fatal("no customer on another node")
	return nil
}
