package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cmd/internal/server"
	"commerce/deploy/ephemeral"
)

func TestBudget_IsNotUsedUpByASlowBody(t *testing.T) {
	slow(t)
	s := openShop(t, ephemeral.Redis(t), func(p *server.Parts) { p.RedisBudget = 2 * time.Second })
	c := s.visitor(t)
	body, writer := io.Pipe()
	go func() {
		time.Sleep(2200 * time.Millisecond)
		_, _ = io.WriteString(writer, `{"product_id":1}`)
		writer.Close()
	}()
	a := c.do(c.request("POST", "/cart/add", body))
	assert(t, a.Status == http.StatusOK, "a slow body: %d %s", a.Status, a.Raw)
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
	equal(t, customer.add(`{"product_id":1}`).Body.Data.lines(), "1×2", "cart holds")
}

// hangingScripts lets scripts hang until their time is over, once it is on.
type hangingScripts struct{ on atomic.Bool }

func (*hangingScripts) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hangingScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !h.on.Load() || !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		<-ctx.Done()
		cmd.SetErr(ctx.Err())
		return ctx.Err()
	}
}

func (*hangingScripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A merge has five times the budget of a request, but one step that hangs must not use all
// of it.
func TestBudget_AStepOfAMergeThatHangsDoesNotDelayTheAnswer(t *testing.T) {
	const budget = 500 * time.Millisecond
	scripts := &hangingScripts{}
	s := realShop(t, func(p *server.Parts) {
		client := dialRedis(t, ephemeral.Redis(t), patient)
		client.AddHook(scripts)
		p.Redis, p.RedisBudget = client, budget
	})
	both := s.customer(t, "1001")
	guest := s.guest(t).fill("1×1")
	both.Token = guest.Token
	scripts.on.Store(true)
	fastest := time.Hour
	for range 3 { // the machine may be busy
		began := time.Now()
		both.refused(503, "unavailable", "POST", "/cart/add", addOne, "Idempotency-Key", "k")
		fastest = min(fastest, time.Since(began))
	}
	assert(t, fastest <= 4*budget, "the answer took %v: one step of the merge and the change have %v each", fastest, budget)
}

// customerBeside returns a customer whose cart is on another node than a guest's.
func (s *shop) customerBeside(t *testing.T, cluster *ephemeral.RedisCluster, token string) *shopper {
	t.Helper()
	for i := range 100 {
		id := strconv.Itoa(i)
		master := must(s.Redis.(*redis.ClusterClient).MasterForKey(t.Context(), fmt.Sprintf("cart:{%d:c:%s}", s.ID, id)))(t)
		if !strings.Contains(cluster.Nodes[s.nodeOf(t, cluster, token)].URL, master.Options().Addr) {
			return s.customer(t, id)
		}
	}
	t.Fatal("no customer on another node")
	return nil
}
