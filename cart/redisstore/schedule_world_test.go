package redisstore_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/auth/sealed"
	"commerce/auth/store"
	"commerce/cart/carttest"
	"commerce/cart/price"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/transfer"
)

// A shard is the data that one master of a cluster would hold. All guests' carts are on
// one shard, and all customers' carts and shared copies on the other, so that a failover can lose the latest
// writes of only one of them.
type shard int

const (
	guestShard shard = iota
	customerShard
)

func (s shard) String() string { return [...]string{"guests", "customers"}[s] }

func shardOf(key string) shard {
	if _, rest, _ := strings.Cut(key, ":"); strings.HasPrefix(rest, "{1:g:") {
		return guestShard
	}
	return customerShard
}

// world is the environment of one schedule: two shards in memory, two instances of the service with different clocks, and
// simulated time. Nothing in it depends on anything but the schedule.
type world struct {
	ctx      context.Context
	memory   *memory
	keys     *sealed.Keys
	store    *store.Store
	services [2]instance

	codes [modelMakers]string         // of the hand-overs, by the number of the operation that redeems one
	fresh [modelMakers]auth.CartToken // to which operations lead; "" while no client of an undo knows it

	passed time.Duration // simulated time: the sum of all advances
	shards [2]replicaState
}

// beginning is when each schedule begins.
var beginning = time.UnixMilli(1_800_000_000_000)

type instance struct {
	*service.Carts
	redis *redisstore.Store
}

// replicaState is what a shard's master sees of its one replica, and the replica's data.
type replicaState struct {
	lags      bool
	listed    bool            // by ROLE
	has       map[string]hash // its data while it lags
	hasAt     time.Duration
	lagsFrom  int64 // in the history
	failovers int
	lost      []span // when what was written was lost
}

type span struct{ from, to int64 }

type setting struct {
	skew        [2]time.Duration // of their clocks
	durable     bool             // changes wait for replicas
	remembers   bool             // changes may be decided from the cart that an instance saw last
	minReplicas int              // 0: an instance knows the replica only because it saw it
	lines       int64            // maximum number of lines in a cart
	strategy    transfer.Strategy
	ahead       time.Duration // how far the guests' Redis clock is ahead of the customers'
}

func newWorld(ctx context.Context, client redis.UniversalClient, template *redisstore.Store, sold *goods, set setting) *world {
	w := &world{store: &store.Store{ID: 1, Currency: "SAR", PricesIncludeTax: true}}
	w.memory = newMemory(func(sh shard) time.Time {
		if sh == guestShard {
			return beginning.Add(w.passed + set.ahead)
		}
		return beginning.Add(w.passed)
	})
	w.ctx = context.WithValue(ctx, memoryKey{}, w.memory)
	random := rand.NewChaCha8([32]byte{})
	w.keys = handoverKeys.WithRandom(random)
	for i := range w.shards {
		w.shards[i].listed = true
	}
	for i := range w.services {
		limits := carttest.Limits
		limits.Lines = set.lines
		now := func() time.Time { return beginning.Add(set.skew[i] + w.passed) }
		own := template.Instance(redisstore.InstanceConfig{
			Durable: set.durable, MinReplicas: set.minReplicas, Now: now, Random: random, Remembers: set.remembers, GuestsAhead: set.ahead,
			Clock: func() time.Time { return beginning.Add(w.passed) },
		})
		w.services[i] = instance{service.New(service.Config{
			Redis: own, Catalog: sold, Coupons: anyCoupon{}, Strategy: set.strategy,
			Keys: w.keys, Limits: limits, Rand: random, Budget: scheduleBudget, Log: slog.New(slog.DiscardHandler),
			Now: now,
		}), own}
	}
	return w
}

// agentTokens are the guests' tokens, each of which the ID of an agent's cart opens.
var agentTokens = [modelTokens]auth.CartToken{agentToken(0), agentToken(1)}

func agentID(token int) string {
	return handoverKeys.Name() + strings.Repeat("AB"[token:token+1], 26)
}

func agentToken(token int) auth.CartToken {
	sum, _ := handoverKeys.Derive(handoverKeys.Name(), "agent token", agentID(token))
	return auth.CartToken(base64.RawURLEncoding.EncodeToString(sum[:]))
}

var handoverKeys, _ = sealed.New(strings.Repeat("k", 32), "")

type anyCoupon struct{}

func (anyCoupon) Automatic(context.Context, int64) ([]*price.Coupon, error) { return nil, nil }

func (anyCoupon) CouponsByKey(_ context.Context, _ int64, key string) ([]*price.Coupon, error) {
	return []*price.Coupon{{Code: key, Kind: price.Percent, Rate: 100_000, Combines: true}}, nil
}

func (anyCoupon) Uses(context.Context, int64, string, string, int64) (int64, error) { return 0, nil }

// scheduleBudget is longer than a schedule takes on a busy machine.
const scheduleBudget = 20 * time.Second

// caller is who makes a request: a customer, the holder of a token, or both. -1 means
// none. A token from modelTokens is one that redeeming a code has made.
type caller struct{ customer, token int }

func (c caller) String() string {
	switch {
	case c == caller{-1, -1}:
		return "a guest without a token"
	case c.customer < 0:
		return fmt.Sprintf("guest t%d", c.token+1)
	case c.token < 0:
		return fmt.Sprintf("c%d", c.customer+1)
	}
	return fmt.Sprintf("c%d with t%d", c.customer+1, c.token+1)
}

func (c caller) logsIn() bool { return c.customer >= 0 && c.token >= 0 }

// owner returns the caller without a token that a customer brings.
func (c caller) owner() caller {
	if c.logsIn() {
		c.token = -1
	}
	return c
}

func (c caller) shard() shard {
	if c.customer < 0 {
		return guestShard
	}
	return customerShard
}

func (c caller) auth(w *world) auth.Caller {
	who := auth.Caller{Store: w.store}
	if c.customer >= 0 {
		who.Customer = fmt.Sprintf("c%d", c.customer+1)
	}
	switch {
	case c.token >= modelTokens:
		who.Token = w.fresh[c.token-modelTokens]
	case c.token >= 0:
		who.Token = agentTokens[c.token]
	}
	return who
}

func (c caller) ref(w *world) redisstore.Ref {
	who := c.auth(w)
	if c.customer < 0 {
		return redisstore.GuestRef(w.store.ID, who.Token)
	}
	return redisstore.CustomerRef(w.store.ID, who.Customer)
}

// isCartKey reports whether an argument is a key of a cart, and not a pattern of keys.
func isCartKey(arg string) bool {
	return strings.HasPrefix(arg, "cart:{") && !strings.Contains(arg, "*")
}

// advance lets simulated time pass.
func (w *world) advance(d time.Duration) { w.passed += d }

// fallBehind makes the replica of a shard miss all later writes.
func (w *world) fallBehind(s shard) {
	r := &w.shards[s]
	r.lags, r.has, r.hasAt = true, maps.Clone(w.memory.shards[s]), w.passed
}

func (w *world) catchUp(s shard) {
	w.shards[s].lags, w.shards[s].listed, w.shards[s].has = false, true, nil
}

func (w *world) failover(s shard) {
	r := &w.shards[s]
	w.memory.shards[s] = r.has
	r.failovers++
	for _, f := range w.memory.followers {
		if f.who.shard() == s {
			f.lose()
			f.cut = true
		}
	}
	w.catchUp(s)
}

type stored struct {
	key     string
	left    time.Duration // time to live; negative for none
	members []string      // of a hash: member, value, member, value, …
}

func (w *world) look() (found []stored) {
	for sh, all := range w.memory.shards {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			h, _ := w.memory.at(key)
			left := time.Duration(-1)
			if !h.expires.IsZero() {
				left = h.expires.Sub(w.memory.now(shard(sh)))
			}
			if len(h.members) > 0 {
				found = append(found, stored{key, left, h.members})
			}
		}
	}
	return found
}

// must panics when a command of the scheduler itself fails.
func (w *world) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("the scheduler's own command: %v", err))
	}
}
