package redisstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"commerce/auth"
	"commerce/auth/problem"
	"commerce/auth/sealed"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/handover"
	"commerce/cart/price"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/share"
	"commerce/cart/transfer"
	"commerce/cart/ucp/agent"
	undos "commerce/cart/undo"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestMain(m *testing.M) {
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)}) // it reports every failed dial
	debug.SetGCPercent(400)                                               // schedules leave much garbage, and little else
	goleak.VerifyTestMain(m)
}

var usualTTLs = redisstore.TTLs{Guest: 720 * time.Hour, Customer: 2160 * time.Hour}

// desk is a service with a real Redis and a store of its own.
type desk struct {
	*service.Carts
	*share.Shares
	agents    *agent.Carts
	handovers *handover.Handovers
	undos     *undos.Undos
	redis     *redisstore.Store
	t         *testing.T
	store     *store.Store
	goods     *goods
	client    redis.UniversalClient
	forward   atomic.Int64 // how far its clock is ahead, in ns
	clock     func() time.Time

	token           auth.CartToken
	customer, guest redisstore.Ref // of "c", and of the guest with the token
}

var deskKeys, _ = sealed.New(strings.Repeat("k", 32), strings.Repeat("p", 32))

var lastStore atomic.Int64

// newStoreID is of a store that no other test has, also where test processes share a Redis.
func newStoreID() int64 { return int64(os.Getpid())*100_000 + lastStore.Add(1) }

// openDesk opens a desk with carts of "c" and of a guest, with lines as in wantLines.
func openDesk(t *testing.T, customers, guests string) *desk {
	t.Helper()
	url := ephemeral.Redis(t)
	d := openDeskOn(t, dial(t, asService(t, url)), time.Now)
	d.client = dial(t, url)
	d.fill(d.as("c", ""), customers)
	d.fill(d.as("", d.token), guests)
	return d
}

func (d *desk) fill(v *service.Visit, lines string) {
	d.t.Helper()
	for _, line := range strings.Fields(lines) {
		var product, quantity int64
		assert.Must(fmt.Sscanf(line, "%d×%d", &product, &quantity))(d.t)
		d.add(v, product, quantity)
	}
}

// openDeskOn opens a desk whose clock goes on from that of now.
func openDeskOn(t *testing.T, client redis.UniversalClient, now func() time.Time) *desk {
	t.Helper()
	id := newStoreID()
	d := &desk{
		t: t, client: client, clock: now, token: tokenOf("t"),
		customer: redisstore.CustomerRef(id, "c"), guest: redisstore.GuestRef(id, tokenOf("t")),
		store: &store.Store{ID: id, Currency: "SAR", PricesIncludeTax: true},
		goods: &goods{products: map[int64]*cart.Product{}},
	}
	for id := range int64(5) {
		d.goods.products[id+1] = carttest.Sold(id+1, 100)
	}
	d.redis = redisstore.New(redisstore.Config{Client: d.client, TTL: usualTTLs, Now: d.now})
	d.Carts = service.New(service.Config{
		Redis: d.redis, Catalog: d.goods, Coupons: d.goods, Limits: carttest.Limits, Strategy: transfer.Sum,
		Keys: deskKeys,
		Log:  slog.New(slog.DiscardHandler), Now: d.now,
		Budget: ephemeral.Patience(5 * time.Second),
	})
	d.Shares = share.New(d.Carts, nil)
	d.agents = agent.New(d.Carts)
	d.handovers, d.undos = handover.New(d.Carts), undos.New(d.Carts)
	return d
}

// dial returns a client that gives Redis more time than the service does: the machine may be busy.
func dial(t testing.TB, url string, change ...func(*redis.UniversalOptions)) redis.UniversalClient {
	t.Helper()
	client := assert.Must(connect.Redis(url, append([]func(*redis.UniversalOptions){ephemeral.PatientRedis}, change...)...))(t)
	t.Cleanup(func() { client.Close() })
	return client
}

// asService returns a URL for a user with only the permissions that the service needs.
func asService(t testing.TB, url string) string {
	t.Helper()
	users := assert.Must(os.ReadFile("../../deploy/redis/users.conf"))(t)
	return ephemeral.AsUser(t, url, string(users), "commerce")
}

// goods is a catalog of which one product can be made unreachable.
type goods struct {
	products map[int64]*cart.Product
	out      atomic.Int64 // the product of which every lookup fails; 0 for none
}

func (g *goods) Reachable() bool { return g.out.Load() == 0 }

func (g *goods) Products(_ context.Context, _ int64, ids []int64) (map[int64]*cart.Product, error) {
	found := map[int64]*cart.Product{}
	for _, id := range ids {
		if g.out.Load() == id {
			return nil, errors.New("unreachable")
		}
		if p := g.products[id]; p != nil {
			found[id] = p
		}
	}
	return found, nil
}

// CouponsByKey returns the only coupon, TEN.
func (g *goods) Automatic(context.Context, int64) ([]*price.Coupon, error) { return nil, nil }

func (g *goods) CouponsByKey(_ context.Context, _ int64, key string) ([]*price.Coupon, error) {
	if key != "TEN" {
		return nil, nil
	}
	return []*price.Coupon{{Code: key, Kind: price.Percent, Rate: 100_000}}, nil
}

func (g *goods) Uses(context.Context, int64, string, string, int64) (int64, error) { return 0, nil }

func (d *desk) now() time.Time { return d.clock().Add(time.Duration(d.forward.Load())) }

// as begins a call of a customer, or of a guest for customer "". A guest needs a token.
func (d *desk) as(customer string, token auth.CartToken) *service.Visit {
	d.t.Helper()
	return assert.Must(d.Visit(auth.Caller{Store: d.store, Customer: customer, Token: token}))(d.t)
}

func tokenOf(name string) auth.CartToken {
	return auth.CartToken(name + strings.Repeat("_", 22))
}

// change makes a change as the API does: it merges a waiting cart first.
func (d *desk) change(v *service.Visit, change func() (service.Changed, error)) *cart.MergeReport {
	d.t.Helper()
	d.Merge(d.t.Context(), v, "")
	_, err := change()
	refused, ok := errors.AsType[*problem.Error](err)
	assert.Require(d.t, err == nil || ok && refused.Code != problem.Unavailable, "%v", err)
	return v.Merge()
}

func (d *desk) add(v *service.Visit, product, quantity int64) *cart.MergeReport {
	d.t.Helper()
	return d.change(v, func() (service.Changed, error) {
		return d.Add(d.t.Context(), v, redisstore.Conditions{}, cart.Addition{ProductID: product, Quantity: quantity})
	})
}

func (d *desk) clear(v *service.Visit) *cart.MergeReport {
	d.t.Helper()
	return d.change(v, func() (service.Changed, error) {
		return d.Do(d.t.Context(), v, redisstore.Conditions{}, service.Op{Clear: true})
	})
}

func (d *desk) read(v *service.Visit) (cart.Cart, *cart.MergeReport) {
	d.t.Helper()
	return assert.Must(d.Read(d.t.Context(), v))(d.t).Cart, v.Merge()
}

// wantLines reads a cart and compares its lines, as "id×quantity …" in cart order.
func (d *desk) wantLines(sh *service.Visit, want string) {
	d.t.Helper()
	got, _ := d.read(sh)
	assert.Equal(d.t, linesOf(got), want, "the cart holds")
}

func linesOf(c cart.Cart) string {
	parts := make([]string, len(c.Lines))
	for i, l := range c.Lines {
		parts[i] = fmt.Sprintf("%s×%d", l.ID, l.Quantity)
	}
	return strings.Join(parts, " ")
}

func (d *desk) ttl(key string) time.Duration {
	d.t.Helper()
	return assert.Must(d.client.PTTL(d.t.Context(), key).Result())(d.t)
}

func (d *desk) keys() []string {
	d.t.Helper()
	return assert.Must(d.client.Keys(d.t.Context(), fmt.Sprintf("cart:{%d:*", d.store.ID)).Result())(d.t)
}

// pass ages all stamps, notes and idempotency keys in this store, and shortens TTLs.
func (d *desk) pass(by time.Duration) {
	d.t.Helper()
	d.forward.Add(int64(by))
	assert.NoError(d.t, carttest.Age(d.t.Context(), d.client, by, d.keys()...))
}

func newNote() string { return "m" + rand.Text()[:10] }

// wantSettled fails if a merge left a claimed cart, a note or a key without a TTL.
func (d *desk) wantSettled() {
	d.t.Helper()
	isNote := func(member string) bool { return strings.HasPrefix(member, "m") }
	for _, key := range d.keys() {
		assert.That(d.t, d.ttl(key) >= 0, "%s has no TTL", key)
		assert.That(d.t, !strings.HasSuffix(key, ":claimed"), "%s still exists", key)
		if isCart := strings.Contains(key, ":c:") && strings.HasSuffix(key, "}"); isCart && slices.ContainsFunc(d.client.HKeys(d.t.Context(), key).Val(), isNote) {
			d.t.Errorf("%s still has a note", key)
		}
	}
}

// openStore opens the store of an instance of the service.
func openStore(t *testing.T) *redisstore.Store {
	t.Helper()
	return redisstore.New(redisstore.Config{Client: dial(t, asService(t, ephemeral.Redis(t))), TTL: usualTTLs, Undoable: true})
}

// claims reports whether a command sets a guest's cart aside.
func claims(cmd redis.Cmder) bool { return slices.Contains(cmd.Args(), any("RENAME")) }

// finish ends the claim of a guest's cart, if it is still that one.
func finish(d *desk, guest redisstore.Ref, c redisstore.Claimed) {
	d.t.Helper()
	_ = assert.Must(d.redis.Finish(d.t.Context(), guest, c))(d.t)
}
