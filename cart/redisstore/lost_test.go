package redisstore_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

var lostChanges = flag.Int("lost-changes", 4000, "how many changes TestLostReplies makes")

// replyLoser is a connection to Redis of which a tenth of all replies is lost, with the connection, or late.
type replyLoser struct {
	net.Conn
	lost *atomic.Int64
}

func (c replyLoser) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil || rand.N(10) > 0 {
		return n, err
	}
	c.lost.Add(1)
	if rand.N(2) == 0 {
		c.Close()
		return 0, net.ErrClosed
	}
	time.Sleep(time.Duration(rand.N(80)) * time.Millisecond)
	return n, nil
}

// losesReplies returns a store that loses replies, and the number of its changes by what became of them.
func losesReplies(t *testing.T, url string, lost *atomic.Int64, settled *sync.Map) *redisstore.Store {
	t.Helper()
	client := dial(t, url, func(o *redis.UniversalOptions) {
		o.MaxRetries, o.PoolSize = 3, 64
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return replyLoser{conn, lost}, err
		}
	})
	return redisstore.New(redisstore.Config{Client: client, TTL: usualTTLs, ReplyLost: func(s redisstore.Settled) {
		n, _ := settled.LoadOrStore(s, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
	}})
}

// While Redis lives, nearly every lost reply is cleared up within its request: what is told is right.
func TestLostReplies_OfChangesWithoutAKeyAreClearedUp(t *testing.T) {
	t.Parallel()
	url := ephemeral.Redis(t)
	var lost, unknown, refused atomic.Int64
	var settled sync.Map
	instances := []*redisstore.Store{losesReplies(t, url, &lost, &settled), losesReplies(t, url, &lost, &settled)}
	refs := newRefs(200)
	made, maybe := make([]atomic.Int64, len(refs)), make([]atomic.Int64, len(refs))
	var all sync.WaitGroup
	for caller := range 32 {
		all.Go(func() {
			for range *lostChanges / 32 {
				time.Sleep(rand.N(40 * time.Millisecond)) // of a cart's changes, few come while a reply is late
				i := rand.N(len(refs))
				ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(2*time.Second))
				_, err := instances[caller%2].Change(ctx, refs[i], redisstore.Conditions{}, redisstore.Attempt{CartID: "ID", Limits: carttest.Limits}, redisstore.Only(cart.Add(cart.NewLine{ID: "1", Quantity: 1, Price: 100, Bounds: cart.Bounds{Max: 1 << 40, Stock: -1}})))
				cancel()
				switch {
				case err == nil:
					made[i].Add(1)
				case isProblem(err, problem.OutcomeUnknown):
					maybe[i].Add(1)
					unknown.Add(1)
					t.Log(errors.Unwrap(err))
				default:
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	plain := newReader(t, url)
	for i, ref := range refs {
		var has int64
		for _, l := range plain.load(ref).Lines {
			has += l.Quantity
		}
		assert.That(t, has >= made[i].Load() && has <= made[i].Load()+maybe[i].Load(), "cart %d has %d, %d were made and %d maybe", i, has, made[i].Load(), maybe[i].Load())
	}
	told := map[redisstore.Settled]int64{}
	settled.Range(func(s, n any) bool { told[s.(redisstore.Settled)] = n.(*atomic.Int64).Load(); return true })
	t.Logf("%d replies lost or late, %v; %d changes unknown, %d not made, of %d", lost.Load(), told, unknown.Load(), refused.Load(), *lostChanges)
	assert.That(t, unknown.Load() <= int64(1+*lostChanges/10_000), "%d of %d outcomes stayed unknown", unknown.Load(), *lostChanges)
}
