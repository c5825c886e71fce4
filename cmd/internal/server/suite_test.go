package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"commerce/auth"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/catalog"
	"commerce/cart/money"
	"commerce/cart/redisstore"
	"commerce/cmd/internal/server"
	"commerce/cmd/internal/telemetry"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
)

func TestMain(m *testing.M) {
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)}) // it reports every failed dial
	goleak.VerifyTestMain(browserUsers{m},
		// Shared by all tests of this process.
		goleak.IgnoreAnyFunction("github.com/alicebob/miniredis/v2/server.(*Server).servePeer"),
		goleak.IgnoreAnyFunction("github.com/alicebob/miniredis/v2/server.NewServer.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).checkMinIdleConns"),
		// Ends up to a second after its pool is closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
	)
}

// jwtSecret signs every test's customers.
const jwtSecret = "a secret of the tests, 32 bytes and more"

// onEachRedis runs a test on the embedded Redis of the demo, and on what `serve` has: a real Redis
// and a real Postgres.
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

// onRealRedis runs a test that does not depend on the kind of Redis.
func onRealRedis(t *testing.T, test func(*testing.T, *shop)) {
	t.Helper()
	t.Parallel()
	test(t, openShop(t, ephemeral.Redis(t)))
}

func embeddedRedis(tb testing.TB) string {
	return "redis://" + miniredis.RunT(tb).Addr()
}

// asService returns a Redis URL for a user with only the permissions that the service
// needs.
func asService(tb testing.TB, url string) string {
	tb.Helper()
	return ephemeral.AsUser(tb, url, redisUsers(tb), "commerce")
}

// shop is a running service with its own store, so that tests can share a Redis.
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

	handler http.Handler // at URL
}

// clock is the real clock, and can be set forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) Forward(d time.Duration) { c.ahead.Add(int64(d)) }

// logBuffer collects the log.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// lastStore gives every shop its own ID, also across processes that share a Redis.
var lastStore atomic.Int64

func nextStore() int64 {
	return int64(os.Getpid())*100_000 + lastStore.Add(1)
}

// openShop starts the service on a Redis, with the sample store's products. Edits may
// change its config first.
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
	rdb := dialRedis(t, redisURL, patient)
	tokens, err := auth.NewJWT(auth.JWTConfig{Secret: []byte(jwtSecret)})
	if err != nil {
		t.Fatal(err)
	}
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
		Catalog: s.Catalog, Coupons: s.Catalog, Stores: stores, JWT: tokens,
		CartTTL:         redisstore.TTLs{Guest: 720 * time.Hour, Customer: 2160 * time.Hour},
		CartLimits:      cart.Limits{Lines: 100, Quantity: 999, LineText: 4096, CartText: 65536},
		Strategy:        cart.Sum,
		RedisBatchReads: true,
		RedisBudget:     5 * time.Second, // no 503 on a busy test machine
		Config: server.Config{
			Now:         s.Clock.Now,
			CORSOrigins: []string{"https://shop.example.com"},
			Log:         slog.New(slog.NewJSONHandler(s.Log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Metrics:     telemetry.New("test"),
		},
	}
	s.offerSubscriptions(t, &parts)
	for _, edit := range edits {
		edit(&parts)
	}
	if parts.Redis == nil {
		parts.Redis = dialRedis(t, asService(t, redisURL), patient)
	}
	parts.Metrics.ObserveRedis(parts.Redis)
	handler, err := server.Assemble(parts)
	if err != nil {
		t.Fatal(err)
	}
	s.handler = handler
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	s.URL = listener.URL + parts.BasePath
	return s
}

func dialRedis(t testing.TB, url string, edits ...func(*redis.UniversalOptions)) redis.UniversalClient {
	t.Helper()
	client, err := connect.Redis(url, edits...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// patient sets long Redis timeouts, for a machine that runs many tests at once. Timeouts
// have their own tests.
func patient(o *redis.UniversalOptions) {
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = 5*time.Second, 5*time.Second, 5*time.Second, 5*time.Second
}

// shopper is one client: it keeps its cart token, like the published client.
type shopper struct {
	t     testing.TB
	shop  *shop
	Token string // of a guest's cart
	JWT   string
	ID    string // of the customer
}

func (s *shop) guest(t testing.TB) *shopper { return &shopper{t: t, shop: s} }

func (s *shop) customer(t testing.TB, id string) *shopper {
	return &shopper{t: t, shop: s, JWT: s.token(t, id), ID: id}
}

func (s *shop) token(t testing.TB, customer string) string {
	t.Helper()
	token, err := s.JWT.Sign(s.ID, customer, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// answer is a response that matches the OpenAPI document.
type answer struct {
	Status int
	Header http.Header
	Raw    []byte
	Body   body
}

// body has the members of responses that tests check.
type body struct {
	Success bool                `json:"success"`
	Message string              `json:"message"`
	Code    string              `json:"code"`
	Errors  map[string][]string `json:"errors"`
	Data    cartBody            `json:"data"`
}

type cartBody struct {
	CartToken *string    `json:"cart_token"`
	Items     []itemBody `json:"items"`
	Count     int64      `json:"count"`
	Lines     int64      `json:"lines"`
	Subtotal  float64    `json:"subtotal"`
	Discount  float64    `json:"discount_amount"`
	Coupon    *struct {
		Code     string  `json:"code"`
		Type     string  `json:"type"`
		Value    float64 `json:"value"`
		Discount float64 `json:"discount"`
		Issue    *struct {
			Code    string `json:"code"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"issue"`
	} `json:"coupon"`
	Reason    string     `json:"reason"` // of a refused coupon
	TaxAmount float64    `json:"tax_amount"`
	Total     float64    `json:"total"`
	Currency  string     `json:"currency"`
	Version   int64      `json:"version"`
	ExpiresAt *string    `json:"expires_at"`
	Merge     *mergeBody `json:"merge"`
	ItemID    *string    `json:"item_id"`
	Shipping  *struct {
		Required bool    `json:"required"`
		Cost     float64 `json:"cost"`
	} `json:"shipping"`
	Tax *struct {
		Rate     *float64      `json:"rate"`
		Amount   float64       `json:"amount"`
		Included bool          `json:"included"`
		Lines    []taxLineBody `json:"lines"`
	} `json:"tax"`
	PaymentRequired *bool `json:"payment_required"`
	PaymentMethods  []struct {
		ID string `json:"id"`
	} `json:"payment_methods"`
	Valid    *bool       `json:"valid"`
	Errors   []string    `json:"errors"`
	Issues   []issueBody `json:"issues"`
	Warnings []issueBody `json:"warnings"`
}

type taxLineBody struct {
	Rate   float64 `json:"rate"`
	Base   float64 `json:"base"`
	Amount float64 `json:"amount"`
}

type itemBody struct {
	ID         string     `json:"id"`
	ProductID  int64      `json:"product_id"`
	Name       string     `json:"name"`
	Quantity   int64      `json:"quantity"`
	UnitPrice  float64    `json:"unit_price"`
	TotalPrice float64    `json:"total_price"`
	AddedPrice float64    `json:"added_price"`
	Discount   float64    `json:"discount"`
	Notice     *string    `json:"notice"`
	Issue      *issueBody `json:"issue"`
	Fields     []struct {
		Name   string  `json:"name"`
		Value  string  `json:"value"`
		Option *string `json:"option"`
	} `json:"custom_fields"`
}

type issueBody struct {
	ItemID    *string `json:"item_id"`
	ProductID *int64  `json:"product_id"`
	Code      string  `json:"code"`
	Message   string  `json:"message"`
	Requested int64   `json:"requested"`
	Available *int64  `json:"available"`
}

type mergeBody struct {
	Lines    int64     `json:"lines"`
	ID       string    `json:"id"`
	At       time.Time `json:"at"`
	Adjusted []struct {
		ItemID    string `json:"item_id"`
		Requested int64  `json:"requested"`
		Kept      int64  `json:"kept"`
		Code      string `json:"code"`
	} `json:"adjusted"`
	Code *string `json:"code"`
}

// send makes one call. body is JSON text, "" for none; headers are name, value, …, and
// replace those that the shopper would send.
func (c *shopper) send(method, path, payload string, headers ...string) answer {
	c.t.Helper()
	var content io.Reader
	if payload != "" {
		content = strings.NewReader(payload)
	}
	r, err := http.NewRequestWithContext(context.Background(), method, c.shop.URL+path, content)
	if err != nil {
		c.t.Fatal(err)
	}
	if payload != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("X-Public-Key", c.shop.Key)
	if c.Token != "" {
		r.Header.Set("X-Cart-Token", c.Token)
	}
	if c.JWT != "" {
		r.Header.Set("Authorization", "Bearer "+c.JWT)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(headers); i += 2 {
		if !seen[headers[i]] {
			r.Header.Del(headers[i])
		}
		seen[headers[i]] = true
		r.Header.Add(headers[i], headers[i+1])
	}
	return c.do(r)
}

func (c *shopper) do(r *http.Request) answer {
	c.t.Helper()
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		c.t.Fatalf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err == nil {
		err = uncompressed(response, &raw)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	response.Body = io.NopCloser(bytes.NewReader(raw))
	if err := conforms(r, response, c.shop.basePath(r)); err != nil {
		c.t.Fatalf("%s %s does not match the OpenAPI document: %v", r.Method, r.URL.Path, err)
	}
	if response.Header.Get("X-Request-Id") == "" {
		c.t.Errorf("%s %s: no X-Request-Id", r.Method, r.URL.Path)
	}
	a := answer{Status: response.StatusCode, Header: response.Header, Raw: raw}
	if len(raw) > 0 && strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(raw, &a.Body); err != nil && a.Body.Code == "" {
			c.t.Fatalf("%s %s: %v in %s", r.Method, r.URL.Path, err, raw)
		}
	}
	if token := a.Body.Data.CartToken; token != nil && c.JWT == "" {
		c.Token = *token
	}
	return a
}

// ok makes a call that must succeed.
func (c *shopper) ok(method, path, payload string, headers ...string) answer {
	c.t.Helper()
	a := c.send(method, path, payload, headers...)
	if a.Status != http.StatusOK {
		c.t.Fatalf("%s %s %s: %d %s", method, path, payload, a.Status, a.Raw)
	}
	return a
}

// refused makes a call that must fail with this status and code, and returns it.
func (c *shopper) refused(status int, code, method, path, payload string, headers ...string) answer {
	c.t.Helper()
	a := c.send(method, path, payload, headers...)
	if a.Status != status || a.Body.Code != code {
		c.t.Fatalf("%s %s %.200s: got %d %s, want %d %s: %s", method, path, payload, a.Status, a.Body.Code, status, code, a.Raw)
	}
	if a.Body.Message == "" {
		c.t.Fatalf("%s %s: no message", method, path)
	}
	return a
}

func (c *shopper) add(payload string, headers ...string) answer {
	c.t.Helper()
	return c.ok("POST", "/cart/add", payload, headers...)
}

func (c *shopper) cart() cartBody {
	c.t.Helper()
	return c.ok("GET", "/cart", "").Body.Data
}

// lines formats a cart as "id×quantity …", in cart order.
func (b cartBody) lines() string {
	parts := make([]string, len(b.Items))
	for i, item := range b.Items {
		n, _ := json.Marshal(item.Quantity)
		parts[i] = item.ID + "×" + string(n)
	}
	return strings.Join(parts, " ")
}

func (c *shopper) wantLines(want string) cartBody {
	c.t.Helper()
	got := c.cart()
	if got.lines() != want {
		c.t.Errorf("cart holds %q, want %q", got.lines(), want)
	}
	return got
}
