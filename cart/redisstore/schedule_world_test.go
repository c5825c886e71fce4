package redisstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/auth/sealed"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/cart/service"
)

// A shard is the data that one master of a cluster would hold. All guests' carts are on
// one shard and all customers' carts on the other, so that a failover can lose the latest
// writes of only one of them.
type shard int

const (
	guestShard shard = iota
	customerShard
)

func (s shard) String() string { return [...]string{"guests", "customers"}[s] }

func shardOf(key string) shard {
	if redisstore.RefOf(key).IsGuest() {
		return guestShard
	}
	return customerShard
}

// world is the environment of one schedule: its own store in a real Redis, two instances
// of the service with different clocks, and simulated time.
type world struct {
	ctx      context.Context
	client   redis.UniversalClient
	store    *store.Store
	services [2]instance

	codes [modelTakes]string         // of the hand-overs, by the number of the operation that redeems one
	fresh [modelTakes]auth.CartToken // to which these operations lead a guest without a cart

	undone auth.CartToken // to which an undo has led; "" while no client knows it

	keys   []string // every key that a command has used, in order of first use
	known  map[string]bool
	passed time.Duration // simulated time: the sum of all advances
	shards [2]replicaState
}

type instance struct {
	*service.Carts
	redis *redisstore.Store
}

// replicaState is what a shard's master sees of its one replica, and the replica's data.
type replicaState struct {
	lags      bool
	listed    bool  // by ROLE
	has       []any // its data while it lags
	hasAt     time.Duration
	lagsFrom  int64 // in the history
	failovers int
	lost      []span // when what was written was lost
}

type span struct{ from, to int64 }

type setting struct {
	skew        [2]time.Duration // of their clocks
	durable     bool             // changes wait for replicas
	minReplicas int              // 0: an instance knows the replica only because it saw it
	lines       int64            // maximum number of lines in a cart
	strategy    cart.Strategy
	ahead       time.Duration // how far the guests' Redis clock is ahead of the customers'
}

func newWorld(ctx context.Context, client redis.UniversalClient, template *redisstore.Store, scripts redisstore.Scripts, storeID int64, sold *goods, set setting) *world {
	w := &world{
		ctx: ctx, client: client, known: map[string]bool{},
		store: &store.Store{ID: storeID, Currency: "SAR", PricesIncludeTax: true},
	}
	start := time.Now()                   // from which all clocks of the instances go on with simulated time only
	random := rand.NewChaCha8([32]byte{}) // cart ids, the same in each run of a schedule
	for i := range w.shards {
		w.shards[i].listed = true
	}
	for i := range w.services {
		limits := carttest.Limits
		limits.Lines = set.lines
		own := template.Instance(redisstore.InstanceConfig{
			Durable: set.durable, MinReplicas: set.minReplicas, Scripts: scripts, Variant: set.variant(),
			Now: func() time.Time { return start.Add(set.skew[i] + w.passed) },
		})
		w.services[i] = instance{service.New(service.Config{
			Redis: own, Catalog: sold, Coupons: anyCoupon{}, Strategy: set.strategy,
			Keys: handoverKeys, Limits: limits, Rand: random, Budget: scheduleBudget, Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return time.Now().Add(set.skew[i]) },
		}), own}
	}
	return w
}

func (s *setting) variant() redisstore.Variant {
	return redisstore.Variant{GuestsAhead: s.ahead}
}

var handoverKeys, _ = sealed.New(strings.Repeat("k", 32), "")

type anyCoupon struct{}

func (anyCoupon) CouponsByKey(_ context.Context, _ int64, key string) ([]*cart.Coupon, error) {
	return []*cart.Coupon{{Code: key, Kind: cart.Percent, Rate: 100_000}}, nil
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
	case c.token == undoneToken && w.undone != "":
		who.Token = w.undone
	case c.token >= modelTokens:
		who.Token = w.fresh[c.token-modelTokens]
	case c.token >= 0:
		who.Token = tokenOf(fmt.Sprintf("t%d", c.token+1))
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

func (w *world) know(cmds []redis.Cmder) {
	for _, cmd := range cmds {
		for _, arg := range cmd.Args() {
			if key, ok := arg.(string); ok && isCartKey(key) && !w.known[key] {
				w.known[key] = true
				w.keys = append(w.keys, key)
			}
		}
	}
}

// isCartKey reports whether an argument is a key of a cart, and not a pattern of keys.
func isCartKey(arg string) bool {
	return strings.HasPrefix(arg, "cart:{") && !strings.Contains(arg, "*")
}

func (w *world) keysOf(s shard) []string {
	var keys []string
	for _, key := range w.keys {
		if shardOf(key) == s {
			keys = append(keys, key)
		}
	}
	return keys
}

// advance lets simulated time pass. Redis' clock cannot be set, so everything in Redis
// becomes older instead. Commands in flight become older when they arrive (see ageTimes).
func (w *world) advance(d time.Duration) {
	w.passed += d
	w.age(w.keys, d)
}

func (w *world) age(keys []string, d time.Duration) {
	w.must(carttest.Age(w.ctx, w.client, d, keys...))
}

var dumpLua = redis.NewScript(`
local all = {}
for i, key in ipairs(KEYS) do
  all[i] = { key, redis.call('DUMP', key), redis.call('PTTL', key) }
end
return all`)

// restoreLua replaces KEYS by the keys in ARGV: key, dump, ms left, …
var restoreLua = redis.NewScript(`
for _, key in ipairs(KEYS) do redis.call('DEL', key) end
for i = 1, #ARGV, 3 do
  redis.call('RESTORE', ARGV[i], math.max(ARGV[i + 2], 0), ARGV[i + 1])
end`)

// fallBehind makes the replica of a shard miss all later writes.
func (w *world) fallBehind(s shard) {
	has, err := dumpLua.Run(w.ctx, w.client, w.keysOf(s)).Slice()
	w.must(err)
	r := &w.shards[s]
	r.lags, r.has, r.hasAt = true, has, w.passed
}

func (w *world) catchUp(s shard) {
	w.shards[s].lags, w.shards[s].listed, w.shards[s].has = false, true, nil
}

func (w *world) failover(s shard) {
	r := &w.shards[s]
	var all []any
	var keys []string
	for _, entry := range r.has {
		e := entry.([]any)
		if e[1] != nil {
			all = append(all, e...)
			keys = append(keys, e[0].(string))
		}
	}
	w.must(ignoreNil(restoreLua.Run(w.ctx, w.client, w.keysOf(s), all...).Err()))
	w.age(keys, w.passed-r.hasAt)
	r.failovers++
	w.catchUp(s)
}

var lookLua = redis.NewScript(`
local all = {}
for i, key in ipairs(KEYS) do
  local hash = redis.call('TYPE', key).ok == 'hash'
  all[i] = { redis.call('PTTL', key), hash and redis.call('HGETALL', key) or {} }
end
return all`)

type stored struct {
	key     string
	left    time.Duration // time to live; negative for none
	members []string      // of a hash: member, value, member, value, …
}

func (w *world) look() []stored {
	all, err := lookLua.Run(w.ctx, w.client, w.keys).Slice()
	w.must(err)
	var found []stored
	for i, entry := range all {
		e := entry.([]any)
		if ms := e[0].(int64); ms != -2 {
			found = append(found, stored{w.keys[i], time.Duration(ms) * time.Millisecond, redisstore.Texts(e[1].([]any))})
		}
	}
	return found
}

func (w *world) end() {
	if len(w.keys) > 0 {
		w.must(w.client.Del(w.ctx, w.keys...).Err())
	}
}

// must panics when a command of the scheduler itself fails.
func (w *world) must(err error) {
	if err := ignoreNil(err); err != nil {
		panic(fmt.Sprintf("the scheduler's own command: %v", err))
	}
}

func ignoreNil(err error) error {
	if err == redis.Nil {
		return nil
	}
	return err
}
