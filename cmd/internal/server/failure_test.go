package server_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// cartCalls are all calls of the cart, for a cart that holds products 1 and 2.
var cartCalls = [][3]string{
	{"GET", "/cart"},
	{"GET", "/cart/count"},
	{"GET", "/cart/validate"},
	{"GET", "/cart/summary"},
	{"POST", "/cart/add", `{"product_id":1}`},
	{"POST", "/cart/add", `{"product_id":6}`}, // out of stock: refused if Redis answers
	{"PATCH", "/cart/items/1", `{"quantity":2}`},
	{"POST", "/cart/ops", `{"ops":[{"op":"edit","item":"1","notice":"n"},{"op":"remove","item":"2"}]}`},
	{"DELETE", "/cart/items/2"},
	{"DELETE", "/cart/clear"},
}

// hasty gives requests the default timeouts.
func hasty(p *server.Parts) { p.Carts.Budget = 0 }

// fragileShop opens a shop with a Redis of its own, for a test that breaks it beside other tests.
func fragileShop(t *testing.T, edits ...func(*server.Parts)) (*shop, *ephemeral.Server) {
	t.Helper()
	t.Parallel()
	redis := ephemeral.StartRedis(t)
	return openShop(t, redis.URL, edits...), redis
}

// shoppers returns a guest, a customer, and one with a cart to merge, none of them empty.
func (s *shop) shoppers(t testing.TB) map[string]*shopper {
	guest, customer, both, left := s.guest(t), s.customer(t, "1001"), s.customer(t, "1002"), s.guest(t)
	for _, c := range []*shopper{guest, customer, both, left} {
		for _, body := range []string{`{"product_id":1}`, `{"product_id":2}`} {
			// On a busy machine an add may be late, and with its key is safe to repeat.
			key := rand.Text()
			ephemeral.Eventually(t, "the cart is filled", func() bool {
				return c.send("POST", "/cart/add", body, "Idempotency-Key", key).Status == 200
			})
		}
	}
	both.Token = left.Token
	return map[string]*shopper{"guest": guest, "customer": customer, "customer with a guest's cart": both}
}

// wantUnavailable makes all calls for every shopper concurrently. Each must get a 503 within
// 300 ms of Patience, and never hang. If Redis may run a change later (mayRun), the change may get a 504
// instead. Times are those in the log, and the best of up to twenty tries counts, since the
// machine may be busy. A call that hangs ends at its deadline of 5 s.
func wantUnavailable(t *testing.T, shoppers map[string]*shopper, calls [][3]string, mayRun bool) {
	t.Helper()
	limit := ephemeral.Patience(300 * time.Millisecond)
	var s *shop
	slow := map[string]float64{} // milliseconds, by call
	for try := range 20 {
		var done sync.WaitGroup
		for who, c := range shoppers {
			s = c.shop
			for i, call := range calls {
				with := s.with(t, c)
				id := fmt.Sprintf("%s.%d.%d", strings.ReplaceAll(who, " ", "-"), i, try)
				done.Go(func() {
					a := with.send(call[0], call[1], call[2], "X-Request-Id", id)
					down := a.Status == 503 && a.Body.Code == "unavailable"
					unknown := a.Status == 504 && a.Body.Code == "outcome_unknown" && call[0] != "GET" && mayRun
					assert.That(t, (down || unknown) && a.Header.Get("Retry-After") != "" && a.Body.Message != "", "%s: %v: got %d %s", who, call, a.Status, a.Raw)
				})
			}
		}
		done.Wait()
		clear(slow)
		for _, line := range s.Log.logged(t) {
			id, _ := line["request_id"].(string)
			name, isTry := strings.CutSuffix(id, fmt.Sprintf(".%d", try))
			took, _ := line["ms"].(float64)
			delete(slow, name) // of an earlier round
			if isTry && took > float64(limit.Milliseconds()) {
				slow[name] = took
			}
			assert.That(t, took <= 4500, "%s hung for %v ms", id, took)
		}
		if len(slow) == 0 {
			return
		}
	}
	t.Errorf("later than %v, in milliseconds: %v", limit, slow)
}

// wantServed waits until a shopper is served again, with one of these lines if any.
func wantServed(t testing.TB, c *shopper, lines ...string) {
	t.Helper()
	var a answer
	ephemeral.Eventually(t, "the shopper is served again", func() bool {
		a = c.send("GET", "/cart", "")
		return a.Status == 200
	})
	got := a.Body.Data.lines()
	assert.That(t, len(lines) == 0 || slices.Contains(lines, got), "cart holds %q, want %q", got, lines)
}

func TestRedisStopped_Is503Immediately(t *testing.T) {
	s, server := fragileShop(t, hasty)
	shoppers := s.shoppers(t)
	server.Stop()
	wantUnavailable(t, shoppers, cartCalls, false)
	s.guest(t).refused(422, "validation_failed", "POST", "/cart/add", `{}`)
	s.guest(t).refused(401, "unauthenticated", "GET", "/cart", "", "Authorization", "x")
	s.guest(t).refused(404, "not_found", "GET", "/nothing", "")
	server.Restart()
	asService(t, server.URL) // it knows no users after a restart
	wantServed(t, shoppers["guest"])
	wantServed(t, shoppers["customer with a guest's cart"])
}

func TestRedisFrozen_FailsImmediatelyAndIsSafeToRepeat(t *testing.T) {
	s, server := fragileShop(t, hasty)
	shoppers := s.shoppers(t)
	keyed, stamped := s.shoppers(t)["guest"], s.shoppers(t)["guest"]
	server.Freeze()
	stamped.refused(504, "outcome_unknown", "POST", "/cart/add", `{"product_id":1,"qty":5}`, "X-Timestamp", "1")
	keyed.refused(503, "unavailable", "POST", "/cart/add", `{"product_id":1,"qty":5}`, "Idempotency-Key", "k")
	wantUnavailable(t, shoppers, cartCalls, true)
	server.Thaw()
	for _, c := range shoppers {
		wantServed(t, c)
	}
	// Redis ran the buffered changes when it continued: too late, so they changed nothing.
	wantServed(t, shoppers["guest"], "1×1 2×1")
	wantServed(t, shoppers["customer"], "1×3 2×3") // shoppers was called three times
	added := func(c *shopper, mark, value string) func() bool {
		return func() bool {
			a := c.send("POST", "/cart/add", `{"product_id":1,"qty":5}`, mark, value)
			if a.Status == 504 {
				s.pass(t, time.Second) // after 1 s, a stamp counts as a repeat
			}
			return a.Status == 200
		}
	}
	ephemeral.Eventually(t, "the change with a key is made", added(keyed, "Idempotency-Key", "k"))
	wantServed(t, keyed, "1×6 2×1")
	s.pass(t, time.Second)
	ephemeral.Eventually(t, "the change with a stamp is made", added(stamped, "X-Timestamp", "1"))
	wantServed(t, stamped, "1×6 2×1")
}

func TestRedisKeyOfAnotherType_Is503(t *testing.T) {
	s := realShop(t)
	ctx := t.Context()
	for kind, put := range map[string]func(key string) error{
		"text":       func(key string) error { return s.Redis.Set(ctx, key, "x", time.Minute).Err() },
		"list":       func(key string) error { return s.Redis.RPush(ctx, key, "x").Err() },
		"set":        func(key string) error { return s.Redis.SAdd(ctx, key, "x").Err() },
		"sorted set": func(key string) error { return s.Redis.ZAdd(ctx, key, redis.Z{Member: "x"}).Err() },
	} {
		c := s.guest(t)
		known := s.keys(t)
		c.add(`{"product_id":1}`)
		for _, key := range s.keys(t) {
			if slices.Contains(known, key) {
				continue
			}
			assert.NoError(t, s.Redis.Del(ctx, key).Err())
			assert.NoError(t, put(key))
		}
		for _, call := range cartCalls {
			a := c.send(call[0], call[1], call[2])
			assert.That(t, a.Status == 503 && a.Body.Code == "unavailable", "%s: %v: %d %s", kind, call, a.Status, a.Raw)
		}
		// A failed merge never fails its request.
		customer := c.logIn("of the " + kind)
		customer.add(`{"product_id":1}`)
		customer.wantLines("1×1")
	}
}

func TestRedisError_OfAnyKindIs503(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	s := openShop(t, "redis://"+server.Addr(), hasty)
	shoppers := s.shoppers(t)
	for _, says := range []string{
		"LOADING Redis is loading the dataset in memory",
		"READONLY You can't write against a read only replica.",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"CLUSTERDOWN The cluster is down",
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"OOM command not allowed when used memory > 'maxmemory'.",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
		"BUSY Redis is busy running a script.",
		"NOREPLICAS Not enough good replicas to write.",
		"NOAUTH Authentication required.",
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"ERR max number of clients reached",
		"ERR unknown command 'EVALSHA'",
		"WRONGTYPE Operation against a key holding the wrong kind of value",
		"NOSCRIPT No matching script.",
	} {
		server.SetError(says)
		wantUnavailable(t, shoppers, cartCalls[3:6], false)
		assert.Require(t, !t.Failed(), "Redis says %s", says)
	}
	server.SetError("")
	wantServed(t, shoppers["guest"], "1×1 2×1")
}
