package server_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"commerce/auth"
	"commerce/auth/sealed"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/catalog"
	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/cart/price"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cmd/internal/server"
	"commerce/cmd/internal/telemetry"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
)

func TestMain(m *testing.M) {
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)}) // it reports every failed dial
	goleak.VerifyTestMain(m,
		// Shared by all tests of this process.
		goleak.IgnoreAnyFunction("github.com/alicebob/miniredis/v2/server.(*Server).servePeer"),
		goleak.IgnoreAnyFunction("github.com/alicebob/miniredis/v2/server.NewServer.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).checkMinIdleConns"),
		// Ends up to a second after its pool is closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
	)
}

const jwtSecret = "a secret of the tests, 32 bytes and more"

// onEachRedis runs a test as in the demo, and as in `serve`: on a real Redis and Postgres.
func onEachRedis(t *testing.T, test func(*testing.T, *shop), edits ...func(*server.Parts)) {
	t.Helper()
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, openShop(t, embeddedRedis(t), edits...))
	})
	t.Run("as serve", func(t *testing.T) {
		t.Parallel()
		test(t, openShopAs(t, ephemeral.Redis(t), true, edits...))
	})
}

// onEachRedisAndCluster is onEachRedis, and also a cluster, for what must be atomic.
func onEachRedisAndCluster(t *testing.T, test func(*testing.T, *shop), edits ...func(*server.Parts)) {
	t.Helper()
	onEachRedis(t, test, edits...)
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		test(t, openShop(t, ephemeral.Cluster(t), edits...))
	})
}

func slow(t *testing.T) {
	t.Helper()
	t.Parallel()
	ephemeral.Slow(t)
}

// newShop opens a shop on the embedded Redis, for a test that runs beside others.
func newShop(t *testing.T, edits ...func(*server.Parts)) *shop {
	t.Helper()
	t.Parallel()
	return openShop(t, embeddedRedis(t), edits...)
}

// realShop is newShop on a real Redis, for a test that does not depend on the kind of Redis.
func realShop(t *testing.T, edits ...func(*server.Parts)) *shop {
	t.Helper()
	t.Parallel()
	return openShop(t, ephemeral.Redis(t), edits...)
}

func embeddedRedis(tb testing.TB) string {
	return "redis://" + miniredis.RunT(tb).Addr()
}

// asService returns a URL for a user with only the permissions that the service needs.
func asService(tb testing.TB, url string) string {
	tb.Helper()
	return ephemeral.AsUser(tb, url, redisUsers(tb), "commerce")
}

type shop struct {
	URL     string
	ID      int64
	Key     string // the store's publishable key
	Store   *store.Store
	Catalog shelf
	Redis   redis.UniversalClient // has all permissions, unlike the service
	JWT     *auth.JWT
	API     string // the store's API token
	Revoked string // one that was revoked
	Clock   *clock
	Log     *logBuffer
	Metrics *telemetry.Metrics

	handler http.Handler // at URL
}

// clock is the real clock, and can be set forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) Forward(d time.Duration) { c.ahead.Add(int64(d)) }

type logBuffer struct{ assert.Log }

var handoverKeys, _ = sealed.New("a key of the tests, with 32 bytes and more", "")

// lastStore gives every shop its own ID, also across processes that share a Redis.
var lastStore atomic.Int64

func nextStore() int64 {
	return int64(os.Getpid())*100_000 + lastStore.Add(1)
}

// openShop starts the service with the sample store's products and these edits.
func openShop(t testing.TB, redisURL string, edits ...func(*server.Parts)) *shop {
	t.Helper()
	return openShopAs(t, redisURL, false, edits...)
}

// openShopAs is openShop with the store in Postgres, or in memory.
func openShopAs(t testing.TB, redisURL string, postgres bool, edits ...func(*server.Parts)) *shop {
	t.Helper()
	id := nextStore()
	store := *sample.Stores()[0]
	store.ID, store.PublicKeys = id, []string{"pk_" + time.Now().Format("150405.000000000")}
	store.CartURL = "https://shop.example.com/cart"
	rdb := dialRedis(t, redisURL, ephemeral.PatientRedis)
	tokens := assert.Must(auth.NewJWT(auth.JWTConfig{Secret: []byte(jwtSecret)}))(t)
	s := &shop{
		ID: id, Key: store.PublicKeys[0], Store: &store, Redis: rdb, JWT: tokens, Clock: &clock{}, Log: &logBuffer{},
	}
	var stores auth.StoreDirectory
	if postgres {
		s.Catalog, stores = newInPostgres(t, &store)
	} else {
		s.Catalog, stores = catalog.NewMemory(nil), auth.NewMemoryStores(money.Known, &store)
	}
	for _, p := range sample.Products()[1] {
		s.Catalog.Put(id, p)
	}
	for _, coupon := range sample.Coupons(time.Now())[1] {
		s.Catalog.PutCoupon(id, coupon)
	}
	for _, use := range sample.CouponUses() {
		s.Catalog.PutUse(id, use.Code, use.Customer, use.Order)
	}
	parts := server.Parts{
		Stores: stores, JWT: tokens, UCP: true, TrustProfiles: true,
		Redis: redisstore.Config{TTL: redisstore.TTLs{Guest: 720 * time.Hour, Customer: 2160 * time.Hour}},
		Carts: service.Config{
			Catalog: s.Catalog, Coupons: s.Catalog,
			Limits: cart.Limits{Lines: 100, Quantity: 999, LineText: 4096, CartText: 65536}, Keys: handoverKeys,
			Budget: ephemeral.Patience(5 * time.Second), // no 503 on a busy machine
		},
		Config: server.Config{
			Now:         s.Clock.Now,
			Deadline:    ephemeral.Patience(5 * time.Second),
			CORSOrigins: []string{"https://shop.example.com"},
			Log:         slog.New(slog.NewJSONHandler(s.Log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Metrics:     telemetry.New("test"),
		},
	}
	s.offerSubscriptions(t, &parts)
	for _, edit := range edits {
		edit(&parts)
	}
	if parts.Redis.Client == nil {
		parts.Redis.Client = dialRedis(t, asService(t, redisURL), ephemeral.PatientRedis)
	}
	parts.Metrics.ObserveRedis(parts.Redis.Client)
	s.Metrics, s.handler = parts.Metrics, assert.Must(server.Assemble(parts))(t)
	listener := httptest.NewServer(s.handler)
	t.Cleanup(listener.Close)
	s.URL = listener.URL + parts.BasePath
	return s
}

func dialRedis(t testing.TB, url string, edits ...func(*redis.UniversalOptions)) redis.UniversalClient {
	t.Helper()
	client := assert.Must(connect.Redis(url, edits...))(t)
	t.Cleanup(func() { client.Close() })
	return client
}

func (s *shop) keys(t testing.TB) []string {
	t.Helper()
	var mu sync.Mutex
	var keys []string
	scan := func(ctx context.Context, node *redis.Client) error {
		it := node.Scan(ctx, 0, fmt.Sprintf("cart:{%d:*", s.ID), 1000).Iterator()
		for it.Next(ctx) {
			mu.Lock()
			keys = append(keys, it.Val())
			mu.Unlock()
		}
		return it.Err()
	}
	var err error
	switch client := s.Redis.(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(t.Context(), scan)
	case *redis.Client:
		err = scan(t.Context(), client)
	}
	assert.NoError(t, err)
	return keys
}

func (s *shop) pass(t testing.TB, by time.Duration) {
	t.Helper()
	s.Clock.Forward(by)
	assert.NoError(t, carttest.Age(t.Context(), s.Redis, by, s.keys(t)...))
}

func (s *shop) wantTTLs(t testing.TB) {
	t.Helper()
	for _, key := range s.keys(t) {
		assert.That(t, s.Redis.PTTL(t.Context(), key).Val() > 0, "%s has no TTL", key)
	}
}

// dump returns all carts of the shop as Redis has them.
func (s *shop) dump(t testing.TB) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, key := range s.keys(t) {
		all[key] = assert.Must(s.Redis.HGetAll(t.Context(), key).Result())(t)
	}
	return all
}

func (s *shop) guestKey(token string) string {
	return fmt.Sprintf("cart:{%d:g:%s}", s.ID, auth.CartToken(token).Digest())
}

// customerKey returns the key of a customer's cart, for a short and plain customer ID.
func (s *shop) customerKey(id string) string { return fmt.Sprintf("cart:{%d:c:%s}", s.ID, id) }

// shelf is a catalog that tests change: in memory, or the one of `serve`.
type shelf interface {
	service.Catalog
	service.Coupons
	Put(store int64, p *cart.Product)
	Delete(store, id int64)
	PutCoupon(store int64, c *price.Coupon)
	DeleteCoupon(store int64, code string)
	PutUse(store int64, code, customer string, order int64)
}

// inPostgres is the catalog of `serve`: rows in a database, behind the cache. A change shows
// immediately, as if the database had sent its message.
type inPostgres struct {
	*catalog.Cache
	t     testing.TB
	store *store.Store
	db    *pgxpool.Pool
}

func newInPostgres(t testing.TB, store *store.Store) (*inPostgres, auth.StoreDirectory) {
	t.Helper()
	db := ephemeral.MigratedPool(t)
	patience := ephemeral.Patience(10 * time.Second) // a busy machine would otherwise show the state before a Put
	s := &inPostgres{t: t, store: store, db: db, Cache: catalog.NewCache(catalog.CacheConfig{
		Source: catalog.NewPostgres(db), Patience: patience,
	})}
	s.write(nil, nil)
	return s, auth.NewPostgresStores(auth.PostgresStoresConfig{DB: db, KnownCurrency: money.Known, Patience: patience})
}

// Put fills in the required columns that tests of the cart leave out.
func (s *inPostgres) Put(store int64, p *cart.Product) {
	s.t.Helper()
	whole := *p
	if whole.Slug == "" {
		whole.Slug, whole.Type = "product", "digital"
	}
	whole.MinQuantity = max(p.MinQuantity, 1)
	whole.Plans = slices.Clone(p.Plans)
	for i := range whole.Plans {
		whole.Plans[i].Duration = cmp.Or(whole.Plans[i].Duration, period.Monthly)
	}
	s.Delete(store, p.ID)
	s.write([]*cart.Product{&whole}, nil)
}

func (s *inPostgres) Delete(store, id int64) {
	s.t.Helper()
	s.exec("DELETE FROM products WHERE (store_id, id) = ($1, $2)", store, id)
}

func (s *inPostgres) PutCoupon(_ int64, c *price.Coupon) {
	s.t.Helper()
	s.write(nil, []*price.Coupon{c})
}

func (s *inPostgres) DeleteCoupon(store int64, code string) {
	s.t.Helper()
	s.exec("DELETE FROM coupons WHERE (store_id, code) = ($1, $2)", store, code)
}

func (s *inPostgres) PutUse(store int64, code, customer string, order int64) {
	s.t.Helper()
	s.exec("INSERT INTO coupon_uses (store_id, code, customer, order_id) VALUES ($1, $2, nullif($3, ''), $4)", store, code, customer, order)
	time.Sleep(time.Microsecond) // later loads are newer than the change
}

func (s *inPostgres) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.db.Exec(context.WithoutCancel(s.t.Context()), sql, args...)
	assert.Require(s.t, err == nil, "%s: %v", sql, err)
	s.InvalidateAll()
}

func (s *inPostgres) write(products []*cart.Product, coupons []*price.Coupon) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	assert.NoError(s.t, pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		return sample.WriteStores(ctx, tx, []*store.Store{s.store},
			map[int64][]*cart.Product{s.store.ID: products}, map[int64][]*price.Coupon{s.store.ID: coupons})
	}))
	s.InvalidateAll()
	time.Sleep(time.Microsecond) // later loads are newer than the change
}
