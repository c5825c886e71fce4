package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Customers and a merchant's program use two instances through haproxy while all secrets are
// replaced, as docs/runbook.md says. Not parallel, as TestPromise10_AReplacementDropsNobody.
func TestRotation_OfAllSecretsRefusesNobody(t *testing.T) {
	ephemeral.Slow(t)
	redis, database := ephemeral.StartRedis(t), ephemeral.StartPostgres(t)
	owner := database.URL
	assert.NoError(t, stock(t.Context(), commerce.compiled(t), owner))
	execSQL(t, owner, readFile(t, "../../../deploy/postgres/roles.sql"))
	command(t, commerce.compiled(t), []string{"DATABASE_URL=" + owner, "SERVICE_ROLE=commerce_service"}, "migrate", "up")
	s := &secrets{t: t, dir: t.TempDir()}
	oldRedis := ephemeral.AsUser(t, redis.URL, readFile(t, "../../../deploy/redis/users.conf"), "commerce")
	s.write("JWT_SECRET", strings.Repeat("o", 32))
	s.write("REDIS_URL", oldRedis)
	s.write("DATABASE_URL", loginAs(t, owner, "commerce_service", ""))
	instances := []*service{startService(t, s.settings()...), startService(t, s.settings()...)}

	c := &rotationCrowd{t: t, url: startHAProxy(t, instances[0], instances[1])}
	c.issuer.Store(new(strings.Repeat("o", 32)))
	c.apiToken.Store(new(apiToken(t, owner, "first")))
	stop := c.arrive(4)
	defer stop()
	c.awaitCalls()

	// The new secrets are accepted before anyone uses them.
	newRedis := addPassword(t, redis, oldRedis, "the new password")
	execSQL(t, owner, strings.Replace(inline(t, rotating, "CREATE ROLE"), "'…'", "'the new password'", 1))
	s.write("JWT_SECRET", strings.Repeat("n", 32))
	s.write("JWT_SECRET_PREVIOUS", strings.Repeat("o", 32))
	s.write("REDIS_URL", newRedis)
	s.write("DATABASE_URL", loginAs(t, owner, "commerce_service_b", "the new password"))
	replaceEach(t, instances, s.settings())

	// Those who sign or send secrets change to the new ones.
	c.awaitCalls()
	c.issuer.Store(new(strings.Repeat("n", 32)))
	oldToken := *c.apiToken.Swap(new(apiToken(t, owner, "second")))
	execSQL(t, owner, `UPDATE page_link_key SET key = uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())`)
	c.awaitCalls() // all later calls use the new ones

	// The old ones are withdrawn.
	s.remove("JWT_SECRET_PREVIOUS")
	replaceEach(t, instances, s.settings())
	id, _, _ := strings.Cut(oldToken, "|")
	command(t, commerce.compiled(t), []string{"DATABASE_URL=" + owner}, "token", "revoke", id)
	execSQL(t, owner, inline(t, rotating, "NOLOGIN"))
	removePassword(t, redis, oldRedis)
	for _, instance := range instances { // they need the new logins to open connections
		_, err := instance.terminate()
		assert.That(t, err == nil, "%v", err)
		instance.start()
		awaitRequests(t, instance)
	}
	c.awaitCalls()
	stop()
	t.Logf("%d calls, %d pages by link, %d late", c.calls.Load(), c.links.Load(), c.late.Load())

	for _, instance := range instances {
		shopper := newShopper(t, instance)
		a := shopper.as("", c.token("withdrawn", strings.Repeat("o", 32))).send("GET", "/cart", "")
		assert.That(t, a.Status == http.StatusUnauthorized, "a token of the old secret: %v", a)
		a = shopper.send("GET", "/subscriptions", "", "Authorization", "Bearer "+oldToken)
		assert.That(t, a.Status == http.StatusUnauthorized, "the old API token: %v", a)
	}
}

const rotating = "## Rotating secrets"

type secrets struct {
	t   testing.TB
	dir string
}

func (s *secrets) write(name, value string) {
	s.t.Helper()
	assert.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(value+"\n"), 0o600))
}

func (s *secrets) remove(name string) {
	s.t.Helper()
	assert.NoError(s.t, os.Remove(filepath.Join(s.dir, name)))
}

// settings name each file. They empty JWT_SECRET, which startService sets.
func (s *secrets) settings() []string {
	s.t.Helper()
	files := assert.Must(os.ReadDir(s.dir))(s.t)
	all := []string{"JWT_SECRET=", "TRUSTED_PROXIES=127.0.0.1"}
	for _, f := range files {
		all = append(all, f.Name()+"_FILE="+filepath.Join(s.dir, f.Name()))
	}
	return all
}

func replaceEach(t *testing.T, instances []*service, settings []string) {
	t.Helper()
	for _, instance := range instances {
		_, err := instance.terminate()
		assert.That(t, err == nil, "%v", err)
		instance.settings = settings
		instance.start()
		awaitRequests(t, instance)
	}
}

// rotationCrowd is customers and a merchant's program. None of their calls may fail.
type rotationCrowd struct {
	t        *testing.T
	url      string
	issuer   atomic.Pointer[string] // the secret that signs customers' tokens
	apiToken atomic.Pointer[string]

	calls, links, failed, late atomic.Int64
	rounds                     []atomic.Int64 // complete rounds of each client
}

func (c *rotationCrowd) arrive(n int) (stop func()) {
	var stopped atomic.Bool
	var all sync.WaitGroup
	c.rounds = make([]atomic.Int64, n+1)
	client := shopperAt(c.t, func() string { return c.url })
	for i := range n + 1 {
		round := func() { c.shop(client, fmt.Sprint("customer-", i)) }
		if i == n {
			round = func() { c.read(client) }
		}
		all.Go(func() {
			for !stopped.Load() {
				round()
				c.rounds[i].Add(1)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	return sync.OnceFunc(func() { stopped.Store(true); all.Wait() })
}

// awaitCalls waits until each client has made a whole round that begins after the call.
func (c *rotationCrowd) awaitCalls() {
	c.t.Helper()
	for i := range c.rounds {
		for from, began := c.rounds[i].Load(), time.Now(); c.rounds[i].Load() < from+2; time.Sleep(5 * time.Millisecond) {
			assert.Require(c.t, time.Since(began) <= startLimit, "client %d makes no calls for %v", i, startLimit)
		}
	}
}

func (c *rotationCrowd) token(customer, secret string) string {
	return signJWT(c.t, jwt.SigningMethodHS256, []byte(secret), claimsOf(storeOne, customer))
}

func (c *rotationCrowd) check(what string, a reply) bool {
	c.calls.Add(1)
	assert.That(c.t, a.Status == http.StatusOK || c.failed.Add(1) > 20, "%s: %v", what, a)
	return a.Status == http.StatusOK
}

// shop adds a product and removes it, with one token of the issuer.
func (c *rotationCrowd) shop(client *shopper, name string) {
	customer := client.as("", c.token(name, *c.issuer.Load()))
	c.check("add", customer.send("POST", "/cart/add", `{"product_id":1001}`))
	c.check("read", customer.send("GET", "/cart", ""))
	c.check("clear", customer.send("DELETE", "/cart/clear", ""))
}

// mostLate is how many of thousands of reads may find no connection to Postgres in time, and are repeated.
const mostLate = 20

func (c *rotationCrowd) read(client *shopper) {
	path, authorization := "/subscriptions?per_page=10", "Bearer "+*c.apiToken.Load()
	for path != "" {
		a := client.send("GET", path, "", "Authorization", authorization)
		if a.Status == http.StatusServiceUnavailable && c.late.Add(1) <= mostLate { // a busy machine: 300 ms for Postgres are few
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if !c.check(path, a) {
			return
		}
		var page struct {
			Data struct {
				Next string `json:"next_page_url"`
			}
		}
		if err := json.Unmarshal(a.Raw, &page); err != nil {
			c.t.Errorf("%s: %v", path, err)
			return
		}
		if path = ""; page.Data.Next != "" {
			path = strings.TrimPrefix(page.Data.Next, c.url)
			c.links.Add(1)
		}
	}
}

func apiToken(t *testing.T, database, name string) string {
	t.Helper()
	return command(t, commerce.compiled(t), []string{"DATABASE_URL=" + database}, "token", "store", "--store", "1", "--name", name)
}

func loginAs(t *testing.T, database, name, password string) string {
	t.Helper()
	u := assert.Must(url.Parse(database))(t)
	u.User = url.UserPassword(name, password)
	return u.String()
}

// addPassword gives the user of a Redis URL one more password, and returns the URL with that.
func addPassword(t *testing.T, redis *ephemeral.Server, old, password string) string {
	t.Helper()
	u := assert.Must(url.Parse(old))(t)
	follow(t, t.TempDir(), redisCLI+strings.Replace(inline(t, rotating, ">new"), ">new", ">"+password, 1), "REDIS_ADMIN_URL="+redis.URL)
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String()
}

func removePassword(t *testing.T, redis *ephemeral.Server, old string) {
	t.Helper()
	u := assert.Must(url.Parse(old))(t)
	password, _ := u.User.Password()
	follow(t, t.TempDir(), redisCLI+strings.Replace(inline(t, rotating, "<old"), "<old", "<"+password, 1), "REDIS_ADMIN_URL="+redis.URL)
}

func execSQL(t *testing.T, database, statements string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	db := assert.Must(pgx.Connect(ctx, database))(t)
	defer db.Close(context.Background())
	_, err := db.PgConn().Exec(ctx, statements).ReadAll()
	assert.Require(t, err == nil, "%.60s: %v", statements, err)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	return string(assert.Must(os.ReadFile(path))(t))
}

const jwtIssuer = "https://login.example.com"

func bearers(t testing.TB, apiTokens apiTokens) []bearer {
	one, two := customerToken(t, 1, "1001"), customerToken(t, 2, "1001")
	return append(programBearers(apiTokens), []bearer{
		{name: "none"},
		{name: "Basic", values: []string{"Basic c3RhZ2luZzpzZWNyZXQ="}, kind: basic},
		customerBearer("customer", 1, "1001", one),
		customerBearer("the other store's customer", 2, "1001", two),
		customerBearer("neighbor", 1, "1002", customerToken(t, 1, "1002")),
		customerBearer("customer without a cart", 1, "7777", customerToken(t, 1, "7777")),
		customerBearer("customer, store as text", 1, "1001", customerToken(t, "1", "1001")),
		customerBearer("customer without a store", 0, "1001", customerToken(t, nil, "1001")),
		customerBearer("customer of an unknown store", 99, "1001", customerToken(t, 99, "1001")),
		badBearer("expired", customerToken(t, 1, "1001", "exp", time.Now().Add(-time.Hour).Unix())),
		badBearer("another issuer", customerToken(t, 1, "1001", "iss", "https://evil.example.com")),
		badBearer("another secret", signJWT(t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), claimsOf(1, "1001"))),
		badBearer("alg none", signJWT(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claimsOf(1, "1001"))),
		badBearer("another customer's claims", tampered(one, claimsOf(1, "1002"))),
		badBearer("another store's claims", tampered(one, claimsOf(2, "1001"))),
		badBearer("malformed", "not.a.token"),
		badBearer("empty", ""),
		{name: "two customers", values: []string{"Bearer " + one, "Bearer " + two}, kind: invalid},
	}...)
}

type apiTokens struct{ one, two, revoked string }

func programBearers(tokens apiTokens) []bearer {
	id, _, _ := strings.Cut(tokens.two, "|")
	_, secret, _ := strings.Cut(tokens.one, "|")
	const noToken = "not a valid API token"
	return []bearer{
		{name: "API token", values: []string{"Bearer " + tokens.one}, kind: storeProgram, store: storeOne},
		{name: "the other store's API token", values: []string{"Bearer " + tokens.two}, kind: storeProgram, store: storeTwo},
		{name: "revoked API token", values: []string{"Bearer " + tokens.revoked}, kind: invalid, refused: noToken},
		{name: "the other API token's id", values: []string{"Bearer " + id + "|" + secret}, kind: invalid, refused: noToken},
		{name: "unknown API token", values: []string{"Bearer 99999999|" + secret}, kind: invalid, refused: noToken},
		{name: "malformed API token", values: []string{"Bearer " + id + "|short"}, kind: invalid, refused: noToken},
		{name: "two API tokens", values: []string{"Bearer " + tokens.one, "Bearer " + tokens.two}, kind: invalid},
	}
}

func customerBearer(name string, store int64, sub, token string) bearer {
	return bearer{name: name, values: []string{"Bearer " + token}, kind: customerJWT, store: store, sub: sub}
}

func badBearer(name, token string) bearer {
	return bearer{name: name, values: []string{"Bearer " + token}, kind: invalid}
}

// claimsOf returns a customer's claims. store is nil for none.
func claimsOf(store any, sub string, edits ...any) jwt.MapClaims {
	claims := jwt.MapClaims{"sub": sub, "iss": jwtIssuer, "exp": time.Now().Add(time.Hour).Unix()}
	if store != nil {
		claims["store_id"] = store
	}
	for i := 0; i+1 < len(edits); i += 2 {
		claims[edits[i].(string)] = edits[i+1]
	}
	return claims
}

func customerToken(t testing.TB, store any, sub string, edits ...any) string {
	t.Helper()
	return signJWT(t, jwt.SigningMethodHS256, []byte(jwtSecret), claimsOf(store, sub, edits...))
}

func signJWT(t testing.TB, method jwt.SigningMethod, key any, claims jwt.Claims) string {
	t.Helper()
	return assert.Must(jwt.NewWithClaims(method, claims).SignedString(key))(t)
}

func tampered(token string, claims jwt.MapClaims) string {
	parts := strings.Split(token, ".")
	unsigned, _ := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SigningString() // claims are plain values
	return unsigned + "." + parts[2]
}
