package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

const addOne = `{"product_id":1}`

// A customer whose merge cannot be finished retries the guest's change that was made.
func TestKey_OfAGuestIsLookedUpWhileTheMergeWaits(t *testing.T) {
	s, source := flakyShop(t)
	guest := s.visitor(t)
	guest.add(addOne, "Idempotency-Key", "k")
	guest.add(`{"product_id":7,"qty":2}`)
	customer := guest.logIn("1")
	source.down.Store(7)
	again := customer.add(addOne, "Idempotency-Key", "k")
	assert.That(t, again.replayed(t) && again.Body.Data.Count == 0, "a repeat while the merge waits: %s", again.Raw)
	customer.refused(409, "idempotency_conflict", "POST", "/cart/add", `{"product_id":2}`, "Idempotency-Key", "k")
	got := customer.add(`{"product_id":2}`, "Idempotency-Key", "new").Body.Data
	assert.That(t, got.lines() == "2×1" && got.Merge == nil, "unmerged: %q, %+v", got.lines(), got.Merge)
	assert.That(t, !strings.Contains(s.Log.String(), guest.Token), "the token is in the log")
	source.down.Store(0)
	got = customer.wantLines("2×1 1×1 7×2")
	assert.That(t, got.Merge != nil && got.Merge.Lines == 2, "later: %+v", got.Merge)
	guest.wantLines("")
}

func TestKey_OfAnUnreachableGuestIs503(t *testing.T) {
	_, cluster, guest, customer := openShards(t, time.Second)
	guest.add(addOne, "Idempotency-Key", "k")
	customer.Token = guest.Token
	cluster.Nodes[1].Freeze()
	for range 2 { // the second does not wait for the node again
		customer.refused(503, "unavailable", "POST", "/cart/add", addOne, "Idempotency-Key", "k")
	}
	customer.add(`{"product_id":2}`) // without a key: served without the merge
	cluster.Nodes[1].Thaw()
	ephemeral.Eventually(t, "the guest's node answers", func() bool {
		return customer.send("GET", "/cart", "").Body.Data.lines() == "2×1 1×1"
	})
	assert.That(t, customer.add(addOne, "Idempotency-Key", "k").replayed(t), "it was applied twice")
	customer.wantLines("2×1 1×1")
}

// A guest's requests in another tab are retried after the login: as the customer or as the guest.
func TestRetry_OfAGuestCountsOnceAfterALoginElsewhere(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		for i, mark := range []string{"Idempotency-Key", "X-Timestamp"} {
			guest := s.visitor(t)
			guest.add(addOne, mark, "1")
			customer := guest.logIn(fmt.Sprint("customer-", i))
			if mark == "X-Timestamp" {
				customer.cart() // or the retry merges the carts
			}
			s.pass(t, 2*time.Second)
			for _, c := range []*shopper{customer, guest} {
				assert.That(t, c.add(addOne, mark, "1").replayed(t), "the retry with %s as customer %q was applied", mark, c.ID)
			}
			s.wantTTLs(t)
			customer.withoutToken().wantLines("1×1")
			if mark == "Idempotency-Key" {
				customer.refused(409, "idempotency_conflict", "POST", "/cart/add", `{"product_id":2}`, mark, "1")
				continue
			}
			s.pass(t, 5*time.Minute)
			assert.That(t, !guest.add(addOne, mark, "1").replayed(t), "still a retry after five minutes")
			customer.wantLines("1×2")
		}
	})
}

// Another customer logs in on the same device and merges the guest's cart, with the change
// whose response was lost. The retry finds its key under the token.
func TestKey_OfAGuestIsKnownAfterAnotherCustomersMerge(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		guest := s.visitor(t)
		guest.add(addOne, "Idempotency-Key", "k")
		guest.logIn("1").cart()
		second := guest.logIn("2")
		assert.That(t, second.add(addOne, "Idempotency-Key", "k").replayed(t), "it was applied twice")
		second.add(`{"product_id":2}`, "Idempotency-Key", "k") // a key of another customer's cart
		second.wantLines("2×1")
		guest.logIn("1").wantLines("1×1")
	})
}

// Both responses to a double click within a second are lost: each retry repeats one click.
func TestUnkeyedRetry_OfADoubleClickCountsTwoClicks(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.visitor(t)
		c.add(addOne, "X-Timestamp", "1")
		s.pass(t, 300*time.Millisecond)
		c.add(addOne, "X-Timestamp", "1")
		s.pass(t, 800*time.Millisecond) // 1.1 s after the first, 0.8 s after the second
		for range 2 {
			assert.That(t, c.add(addOne, "X-Timestamp", "1").replayed(t), "a retry was applied")
		}
		c.wantLines("1×2")
	})
}

// Ages are computed by Redis' clock: the clocks of instances do not matter.
func TestUnkeyedRetry_IsTheSameOnInstancesWhoseClocksDiffer(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, -20 * time.Millisecond, time.Hour} {
		s := openShop(t, ephemeral.Redis(t))
		c := s.visitor(t)
		c.add(addOne, "X-Timestamp", "1")
		s.Clock.Forward(ahead) // the clock of the instance that gets the retry
		assert.That(t, !c.add(addOne, "X-Timestamp", "1").replayed(t), "%v ahead: a second click was taken for a retry", ahead)
		s.pass(t, 1100*time.Millisecond)
		s.Clock.Forward(-1100 * time.Millisecond)
		assert.That(t, c.add(addOne, "X-Timestamp", "1").replayed(t), "%v ahead: a retry was applied", ahead)
	}
}

// A client that disconnects during a merge must not leave the merge unfinished.
func TestMerge_ContinuesWhenTheClientDisconnects(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	leave := sync.OnceFunc(func() {
		cancel()
		time.Sleep(50 * time.Millisecond) // until the server notices
		close(gone)
	})
	s := realShop(t, hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		err := next(ctx, cmd)
		if slices.ContainsFunc(cmd.Args(), isNote) { // the merge
			leave()
		}
		return err
	}))
	guest := s.guest(t).fill("1×1")
	customer := guest.logIn("1")
	if response, err := http.DefaultTransport.RoundTrip(customer.request("GET", "/cart", nil).WithContext(ctx)); err == nil {
		response.Body.Close()
		t.Fatalf("the response arrived before the client disconnected: %d", response.StatusCode)
	}
	<-gone
	ephemeral.Eventually(t, "the merge comes to its end", func() bool {
		return !s.holdsClaim(t) && !s.Redis.HExists(t.Context(), s.guestKey(guest.Token), "i").Val()
	})
	customer.withoutToken().wantLines("1×1")
}

// isNote reports whether an argument is the name of a note of a merge.
func isNote(arg any) bool {
	name, ok := arg.(string)
	return ok && len(name) == 11 && name[0] == 'm'
}

// commandHook is called with each command that is not part of a pipeline.
type commandHook func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error

func hooked(t testing.TB, hook commandHook) func(*server.Parts) {
	return func(p *server.Parts) {
		dialed(t, ephemeral.Redis(t))(p)
		p.Redis.Client.AddHook(hook)
	}
}

func (commandHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h commandHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return h(ctx, cmd, next) }
}

func (commandHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestBudget_IsNotUsedUpByASlowBody(t *testing.T) {
	slow(t)
	budget := ephemeral.Patience(2 * time.Second)
	c := openShop(t, ephemeral.Redis(t), func(p *server.Parts) { p.Carts.Budget = budget }).visitor(t)
	body, writer := io.Pipe()
	go func() {
		time.Sleep(budget + 200*time.Millisecond)
		_, _ = io.WriteString(writer, `{"product_id":1}`)
		writer.Close()
	}()
	a := c.do(c.request("POST", "/cart/add", body))
	assert.That(t, a.Status == http.StatusOK, "a slow body: %d %s", a.Status, a.Raw)
}

// A merge has five times a request's budget, which a step that hangs must not use up.
func TestBudget_AStepOfAMergeThatHangsDoesNotDelayTheAnswer(t *testing.T) {
	budget := ephemeral.Patience(500 * time.Millisecond)
	var hang atomic.Bool
	scripts := func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if !hang.Load() || !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		<-ctx.Done()
		cmd.SetErr(ctx.Err())
		return ctx.Err()
	}
	s := realShop(t, hooked(t, scripts), func(p *server.Parts) { p.Carts.Budget = budget })
	both := s.customer(t, "1001")
	guest := s.guest(t).fill("1×1")
	both.Token = guest.Token
	hang.Store(true)
	fastest := time.Hour
	for range 3 { // the machine may be busy
		began := time.Now()
		both.refused(503, "unavailable", "POST", "/cart/add", addOne, "Idempotency-Key", "k")
		fastest = min(fastest, time.Since(began))
	}
	assert.That(t, fastest <= 4*budget, "the answer took %v: one step of the merge and the change have %v each", fastest, budget)
}
