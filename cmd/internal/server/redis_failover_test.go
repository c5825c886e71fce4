package server_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

const (
	// recoveryLimit is how long shoppers may be refused after their master died:
	// about 2 s for the failover, 1 s until the service knows the new master, and
	// the rest for a busy machine.
	recoveryLimit = 15 * time.Second

	// answerLimit is how long one response may take meanwhile. A request that hangs
	// takes 5 s.
	answerLimit = 4500 * time.Millisecond
)

// Replication is asynchronous, so a change that was accepted just before the master died
// may be lost. But changes that the replica had are kept, every change gets a 200 or a 503
// immediately, and a client that repeats changes with their keys makes each exactly once.
func TestRedisFailover_SentinelsReplaceTheMaster(t *testing.T) {
	t.Parallel()
	sentinels := guarded(t).StartSentinels(t)
	s := openShop(t, sentinels.URL, asServed(t, sentinels.URL, 0))
	early := s.guest(t)
	within(t, 20*time.Second, "the early change is made", func() bool { // a busy machine may be late
		return early.send("POST", "/cart/add", `{"product_id":1,"qty":5}`, "Idempotency-Key", "early").Status == 200
	})
	s.replicate(t, "cart:barrier")

	buyers := []*buyer{s.buyer(t, 0), s.buyer(t, 1), s.buyer(t, 2)}
	whileBuying(t, buyers, sentinels.Master.Kill)

	wantServed(t, early, "1×5")
	for _, b := range buyers {
		b.settle(t)
		b.wantRefusals(t, true)
	}
}

func TestRedisFailover_AClustersOtherShardsAreStillServed(t *testing.T) {
	t.Parallel()
	cluster := guarded(t).StartCluster(t)
	// With a budget of seconds, a 503 means that a shard is down, not that the machine is busy.
	s := openShop(t, cluster.URL, asServed(t, cluster.URL, 3*time.Second, func(o *redis.UniversalOptions) {
		o.ReadTimeout, o.PoolTimeout = 3*time.Second, 3*time.Second
	}))
	early := s.guest(t)
	early.Token = s.tokenOn(t, cluster, 0, "early")
	within(t, 20*time.Second, "the early change is made", func() bool { // a busy machine may be late
		return early.send("POST", "/cart/add", `{"product_id":1,"qty":5}`, "Idempotency-Key", "early").Status == 200
	})
	s.replicate(t, s.guestKey(early.Token)+":barrier")

	var buyers []*buyer
	for node := range 3 {
		b := s.buyer(t, node)
		b.Token = s.tokenOn(t, cluster, node, "buyer")
		buyers = append(buyers, b)
	}
	whileBuying(t, buyers, cluster.Nodes[0].Kill)

	wantServed(t, early, "1×5")
	for node, b := range buyers {
		b.settle(t)
		b.wantRefusals(t, node == 0)
	}
}

// asServed gives a shop the service's own timeouts, which are shorter than in other tests,
// and a budget per request, 0 for the default. Edits may change the timeouts.
func asServed(t testing.TB, redisURL string, budget time.Duration, edits ...func(*redis.UniversalOptions)) func(*server.Parts) {
	t.Helper()
	rdb, err := connect.Redis(redisURL, edits...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return func(p *server.Parts) { p.Redis, p.RedisBudget = rdb, budget }
}

// replicate waits until the replica of a key's master has all earlier writes: replicas get
// writes in order.
func (s *shop) replicate(t testing.TB, key string) {
	t.Helper()
	node, ok := s.Redis.(*redis.Client)
	if cluster, is := s.Redis.(*redis.ClusterClient); is {
		var err error
		if node, err = cluster.MasterForKey(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	} else if !ok {
		t.Fatalf("a %T", s.Redis)
	}
	pipe := node.Pipeline() // WAIT covers only its own connection's writes
	pipe.HSet(t.Context(), key, "x", "")
	replicas := pipe.Do(t.Context(), "wait", 1, 0)
	if _, err := pipe.Exec(t.Context()); err != nil || replicas.Val() != int64(1) {
		t.Fatalf("replicated to %v replicas: %v", replicas.Val(), err)
	}
}

// wantRefusals checks that a buyer was refused if and only if its master died.
func (b *buyer) wantRefusals(t testing.TB, want bool) {
	t.Helper()
	if (b.refused > 0) != want {
		t.Errorf("buyer %d was refused %d times; its master died: %t", b.name, b.refused, want)
	}
}

// tokenOn returns a cart token whose cart is on the given node of a cluster.
func (s *shop) tokenOn(t testing.TB, cluster *ephemeral.RedisCluster, node int, whose string) string {
	t.Helper()
	for i := range 1000 {
		token := fmt.Sprintf("a-token-of-its-own-making-%s-%d", whose, i)
		if s.nodeOf(t, cluster, token) == node {
			return token
		}
	}
	t.Fatalf("no token on node %d", node)
	return ""
}

// buyer adds one of a product at a time, each with its own key, and repeats refused
// changes, like a careful client. It is not safe for concurrent use.
type buyer struct {
	*shopper
	name    int
	bought  int // changes accepted, each under its own key
	refused int
	slowest time.Duration // response

	last time.Time     // acceptance
	gap  time.Duration // the longest between two acceptances
}

func (s *shop) buyer(t testing.TB, name int) *buyer {
	b := &buyer{shopper: s.guest(t), name: name}
	b.Token = fmt.Sprintf("a-token-of-its-own-making-%d", name)
	return b
}

func (b *buyer) key(i int) string { return fmt.Sprintf("change-%d", i) }

// buy makes a change with a key, repeats it until it succeeds, and reports whether it had
// been made before.
func (b *buyer) buy(key string) (replayed bool) {
	for start := time.Now(); time.Since(start) < 2*recoveryLimit; time.Sleep(20 * time.Millisecond) {
		sent := time.Now()
		a := b.send("POST", "/cart/add", `{"product_id":1}`, "Idempotency-Key", key)
		b.slowest = max(b.slowest, time.Since(sent))
		switch {
		case a.Status == http.StatusOK:
			return a.Header.Get("Idempotency-Replayed") == "true"
		case a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "":
			b.refused++
		default:
			b.t.Errorf("%s of buyer %d: %d %s", key, b.name, a.Status, a.Raw)
			return false
		}
	}
	b.t.Errorf("%s of buyer %d: refused for %v", key, b.name, 2*recoveryLimit)
	return false
}

// whileBuying breaks something while the buyers buy, and waits until each of them is served
// again.
func whileBuying(t *testing.T, buyers []*buyer, breaks func()) {
	t.Helper()
	stop := make(chan struct{})
	var all, begun, recovered sync.WaitGroup
	broken := make(chan struct{})
	for _, b := range buyers {
		begun.Add(1)
		recovered.Add(1)
		all.Go(func() {
			begin, recover := sync.OnceFunc(begun.Done), sync.OnceFunc(recovered.Done)
			defer begin()
			defer recover()
			b.last = time.Now()
			for {
				after := isClosed(broken)
				b.buy(b.key(b.bought))
				b.bought++
				b.gap, b.last = max(b.gap, time.Since(b.last)), time.Now()
				if b.bought == 20 {
					begin()
				}
				if after {
					recover()
				}
				if isClosed(stop) || t.Failed() {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	begun.Wait()
	breaks()
	close(broken)
	recovered.Wait()
	time.Sleep(200 * time.Millisecond) // until the failover is surely over
	close(stop)
	all.Wait()
	for _, b := range buyers {
		t.Logf("buyer %d: %d changes, %d refusals, nothing accepted for %v, slowest answer %v",
			b.name, b.bought, b.refused, b.gap.Round(time.Millisecond), b.slowest.Round(time.Millisecond))
		if b.gap > recoveryLimit {
			t.Errorf("buyer %d: nothing accepted for %v, want at most %v", b.name, b.gap, recoveryLimit)
		}
		if b.slowest > answerLimit {
			t.Errorf("buyer %d: a response took %v, want at most %v", b.name, b.slowest, answerLimit)
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// settle repeats every change once more. Changes that were lost with the master are made
// now, the others are replayed: each counts exactly once.
func (b *buyer) settle(t testing.TB) {
	t.Helper()
	lost := 0
	for i := range b.bought {
		if !b.buy(b.key(i)) {
			lost++
		}
	}
	if lost > 0 {
		t.Logf("buyer %d: %d changes were lost with the master, and made again", b.name, lost)
	}
	wantServed(t, b.shopper, fmt.Sprintf("1×%d", b.bought))
}
