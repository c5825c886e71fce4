package server_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cart/redisstore"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// redisUsers are the Redis users for operators to install.
func redisUsers(t testing.TB) string {
	t.Helper()
	return contents(t, "../../../deploy/redis/users.conf")
}

func contents(t testing.TB, file string) string {
	t.Helper()
	return string(assert.Must(os.ReadFile(file))(t))
}

// guarded is a Redis with the recommended setup: TLS, and a user with few permissions.
func guarded(t testing.TB) ephemeral.Guard {
	t.Helper()
	return ephemeral.Guard{TLS: true, Users: redisUsers(t)}
}

func TestRedisKinds_AWholeTripWithTLSAndLeastPrivilege(t *testing.T) {
	slow(t)
	for name, start := range map[string]func(testing.TB) string{
		"single":          func(t testing.TB) string { return guarded(t).StartRedis(t).URL },
		"sentinels":       func(t testing.TB) string { return guarded(t).StartSentinels(t).URL },
		"plain sentinels": func(t testing.TB) string { return ephemeral.StartSentinels(t).URL },
		"client certificates": func(t testing.TB) string {
			return ephemeral.Guard{TLS: true, ClientCertificates: true}.StartRedis(t).URL
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			openShop(t, start(t)).trip(t)
		})
	}
}

func TestRedisKinds_AClusterRedirectsWithinTLS(t *testing.T) {
	slow(t)
	cluster := guarded(t).StartCluster(t)
	s := openShop(t, cluster.URL, func(p *server.Parts) { p.Redis.Durable = true })
	s.trip(t)

	c := s.guest(t)
	added := c.addConfirmed()
	old := cluster.Nodes[s.nodeOfKey(t, cluster, s.guestKey(c.Token))]
	replica := cluster.Nodes[slices.Index(cluster.Nodes, old)+3].Admin()
	assert.NoError(t, replica.ClusterFailover(t.Context()).Err())
	ephemeral.Eventually(t, "the replica is master", func() bool {
		return strings.Contains(replica.Info(t.Context(), "replication").Val(), "role:master") &&
			strings.Contains(old.Admin().Info(t.Context(), "replication").Val(), "role:slave")
	})
	c.add(`{"product_id":1}`)
	c.wantLines(fmt.Sprintf("1×%d", added+1))
	got := old.Admin().Info(t.Context(), "errorstats").Val()
	assert.That(t, strings.Contains(got, "errorstat_MOVED:"), "the old master did not redirect: %s", got)
}

func (s *shop) trip(t testing.TB) {
	t.Helper()
	guest := s.guest(t)
	guest.add(`{"product_id":1,"qty":2}`, "Idempotency-Key", "one")
	again := guest.add(`{"product_id":1,"qty":2}`, "Idempotency-Key", "one")
	assert.That(t, again.replayed(t), "a repeat was not marked as one: %v", again.Header)
	guest.add(`{"product_id":5,"fields":{"Account email":"a@example.com"},"notice":"a gift"}`)
	guest.add(`{"product_id":2}`)
	guest.ok("PATCH", "/cart/items/1", `{"quantity":3}`)
	guest.ok("DELETE", "/cart/items/2", "")
	guest.redeem("TEN")
	guest.ok("GET", "/cart/validate", "")
	got := guest.ok("GET", "/cart/count", "").Body.Data
	assert.That(t, got.Count == 4 && got.Lines == 2, "count %d of %d lines, want 4 of 2", got.Count, got.Lines)

	customer := s.customer(t, "1001").fill("1×1")
	merged := customer.ok("GET", "/cart/summary", "", "X-Cart-Token", guest.Token).Body.Data
	assert.That(t, merged.Merge != nil && merged.Merge.Lines == 2 && merged.Count == 5 && merged.Coupon != nil, "merged: %+v", merged)
	guest.wantLines("")
	s.confirmMerges(t, customer, guest)
	guest.add(`{"product_id":7,"qty":2}`)
	added := customer.add(`{"product_id":1}`, "X-Cart-Token", guest.Token).Body.Data
	assert.That(t, added.Merge != nil && added.Merge.Lines == 1 && added.Count == 8, "merged with a change: %+v", added)
	customer.ok("DELETE", "/cart/coupon", "")
	customer.ok("DELETE", "/cart/clear", "")
	customer.wantLines("")
	assert.That(t, !strings.Contains(s.Log.String(), "NOPERM"), "the log contains NOPERM:\n%s", s.Log)
	s.confirmMerges(t, customer, guest)
}

// confirmMerges waits until replicas have confirmed what was merged: an unconfirmed merge
// delays the next one. On a busy machine a replica is late. Without the permission for WAIT,
// none ever confirms.
func (s *shop) confirmMerges(t testing.TB, customer, guest *shopper) {
	t.Helper()
	ephemeral.Eventually(t, "replicas confirm the merges", func() bool {
		claimed, err := s.Redis.Exists(t.Context(), s.guestKey(guest.Token)+":claimed").Result()
		return customer.send("GET", "/cart", "", "X-Cart-Token", guest.Token).Status == 200 && err == nil && claimed == 0
	})
}

// nameOn adds a number to a name, so that the key of its cart is on the given node of a cluster.
func (s *shop) nameOn(
	t testing.TB, cluster *ephemeral.RedisCluster, node int, name string, key func(string) string,
) string {
	t.Helper()
	for i := range 1000 {
		if numbered := fmt.Sprint(name, "-", i); s.nodeOfKey(t, cluster, key(numbered)) == node {
			return numbered
		}
	}
	t.Fatalf("no %s on node %d", name, node)
	return ""
}

func (s *shop) nodeOfKey(t testing.TB, cluster *ephemeral.RedisCluster, key string) int {
	t.Helper()
	master := assert.Must(s.Redis.(*redis.ClusterClient).MasterForKey(t.Context(), key))(t)
	return slices.IndexFunc(cluster.Nodes, func(node *ephemeral.Server) bool {
		return strings.Contains(node.URL, master.Options().Addr)
	})
}

// answerLimit is for a response while Redis is down. A request that hangs takes 5 s.
const answerLimit = 4500 * time.Millisecond

func TestRedisKinds_ARedisThatRefusesEveryUserIs503(t *testing.T) {
	slow(t)
	locked := guarded(t).StartRedis(t)
	foreign := assert.Must(url.Parse(guarded(t).StartRedis(t).URL))(t).Query().Get("ca_file")
	mutual := ephemeral.Guard{TLS: true, ClientCertificates: true}.StartRedis(t)
	sentinels := guarded(t).StartSentinels(t)
	for name, test := range map[string]struct {
		url  string
		edit func(*url.URL, url.Values)
		log  string // what an operator reads
	}{
		"wrong password":                 {locked.URL, func(u *url.URL, _ url.Values) { u.User = url.UserPassword("commerce", "not-the-password") }, "WRONGPASS"},
		"no user":                        {locked.URL, func(u *url.URL, _ url.Values) { u.User = nil }, "NOAUTH"},
		"another authority":              {locked.URL, func(_ *url.URL, q url.Values) { q.Set("ca_file", foreign) }, "certificate signed by unknown authority"},
		"the system's authorities":       {locked.URL, func(_ *url.URL, q url.Values) { q.Del("ca_file") }, "certificate signed by unknown authority"},
		"another name":                   {locked.URL, func(u *url.URL, _ url.Values) { u.Host = "localhost:" + u.Port() }, "certificate is not valid for any names, but wanted to match localhost"},
		"plain where TLS is spoken":      {locked.URL, func(u *url.URL, q url.Values) { u.Scheme = "redis"; q.Del("ca_file") }, ""},  // the server closes the connection
		"TLS where none is spoken":       {ephemeral.Redis(t), func(u *url.URL, _ url.Values) { u.Scheme = "rediss" }, ""},           // the server waits for the line's end
		"no certificate of its own":      {mutual.URL, func(_ *url.URL, q url.Values) { q.Del("cert_file"); q.Del("key_file") }, ""}, // "certificate required", or a closed connection where the client writes first
		"wrong password of the sentinel": {sentinels.URL, func(_ *url.URL, q url.Values) { q.Set("sentinel_password", "not-the-password") }, "WRONGPASS"},
		"unknown master":                 {sentinels.URL, func(_ *url.URL, q url.Values) { q.Set("master", "other") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := assert.Must(url.Parse(test.url))(t)
			query := u.Query()
			test.edit(u, query)
			u.RawQuery = query.Encode()
			s := openShop(t, u.String(), asServed(t, u.String(), 0))
			c := s.guest(t)
			c.Token = strings.Repeat("token", 6)
			refused := func(method, path, body string) {
				start := time.Now()
				a := c.refused(503, "unavailable", method, path, body)
				took := time.Since(start)
				assert.That(t, took <= answerLimit && a.Header.Get("Retry-After") != "", "%s %s: after %v, %v", method, path, took, a.Header)
			}
			refused("POST", "/cart/add", `{"product_id":1}`)
			// A single call may time out before it gets the reason.
			ephemeral.Eventually(t, "the log says "+test.log, func() bool {
				refused("GET", "/cart", "")
				return strings.Contains(s.Log.String(), test.log)
			})
			log := s.Log.String()
			password, _ := u.User.Password()
			for _, secret := range []string{password, query.Get("sentinel_password")} {
				assert.That(t, secret == "" || !strings.Contains(log, secret), "the log holds a password:\n%s", log)
			}
		})
	}
}

// asServed gives a shop the service's own timeouts, which are shorter than in other tests. A budget
// per request is given Patience, like the timeouts beside it; 0 is the default, without Patience.
func asServed(t testing.TB, redisURL string, budget time.Duration) func(*server.Parts) {
	return func(p *server.Parts) {
		p.Carts.Budget = ephemeral.Patience(budget)
		p.Redis.Client = dialRedis(t, redisURL, func(o *redis.UniversalOptions) {
			if budget != 0 {
				o.DialTimeout, o.PoolTimeout = ephemeral.Patience(o.DialTimeout), ephemeral.Patience(o.PoolTimeout)
				o.ReadTimeout, o.WriteTimeout = ephemeral.Patience(o.ReadTimeout), ephemeral.Patience(o.WriteTimeout)
			}
		})
	}
}

func TestRedisUsers_TheServiceCanAccessOnlyItsCarts(t *testing.T) {
	t.Parallel()
	redisServer := guarded(t).StartRedis(t)
	admin := redisServer.Admin()
	assert.NoError(t, admin.HSet(t.Context(), "session:1", "user", "1001").Err())
	service := dialRedis(t, redisServer.URL, ephemeral.PatientRedis)
	for _, command := range [][]any{
		{"hgetall", "session:1"},
		{"hset", "session:1", "user", "1002"},
		{"rename", "cart:{1:g:a}", "session:1"},
		{"eval", "return redis.call('HGETALL', KEYS[1])", 1, "session:1"},
		{"eval", "return redis.call('HGETALL', 'session:1')", 0},
		{"eval", "return redis.call('KEYS', '*')", 0},
		{"keys", "*"},
		{"scan", 0},
		{"randomkey"},
		{"dbsize"},
		{"get", "cart:{1:g:a}"},
		{"flushall"},
		{"script", "flush"},
		{"config", "get", "*"},
		{"monitor"},
		{"client", "list"},
		{"acl", "list"},
		{"publish", "channel", "message"},
		{"cluster", "failover"},
		{"replicaof", "no", "one"},
		{"shutdown", "nosave"},
	} {
		err := service.Do(t.Context(), command...).Err()
		// Redis 7.0 words NOPERM in a script differently.
		assert.That(t, err != nil && (redis.HasErrorPrefix(err, "NOPERM") || strings.Contains(err.Error(), "The user executing the script can't")), "%v: %v, want NOPERM", command, err)
	}
	assert.Equal(t, admin.HGetAll(t.Context(), "session:1").Val(), map[string]string{"user": "1001"}, "the other key")
}

func TestRedisUsers_SupportFindsAndErases(t *testing.T) {
	t.Parallel()
	redisServer := guarded(t).StartRedis(t)
	s := openShop(t, redisServer.URL)
	guest, customer := s.guest(t), s.customer(t, "1001")
	guest.add(`{"product_id":1}`, "Idempotency-Key", "one")
	customer.ok("GET", "/cart", "", "X-Cart-Token", guest.Token)

	support := dialRedis(t, strings.Replace(redisServer.URL, "//commerce:", "//support:", 1))
	carts := redisstore.New(redisstore.Config{Client: support, TTL: redisstore.TTLs{Guest: time.Hour, Customer: time.Hour}})
	ref := redisstore.CustomerRef(s.ID, "1001")
	held, err := carts.Erase(t.Context(), ref)
	assert.That(t, err == nil && len(held) == 4, "erased %+v, %v, want a cart, its idempotency keys, its merged quantities and what the merge has brought", held, err)
	assert.Equal(t, len(assert.Must(carts.Holdings(t.Context(), ref))(t)), 0, "keys that are left")
	customer.wantLines("")
}

// If a command were added to a script but not to the users, every cart call would fail for
// those who use them. So the two must be equal.
func TestRedisUsers_HaveThePermissionsThatTheServiceNeeds(t *testing.T) {
	t.Parallel()
	want := map[string]bool{
		"ping": true, "client|setname": true, "cluster|slots": true, "command": true, "asking": true, // go-redis
		"eval": true, "evalsha": true, "hgetall": true, "exists": true, "pttl": true, // redisstore
		"role": true, "wait": true, "cluster|nodes": true, // merges, DURABILITY=replica
		"info":    true,                                                                                                     // the check of every minute
		"publish": true, "spublish": true, "subscribe": true, "ssubscribe": true, "unsubscribe": true, "sunsubscribe": true, // streams of events
	}
	scripts := []string{"../../../cart/redisstore/commit.lua", "../../../auth/limit/quota.lua", "../../../auth/limit/window.lua"}
	calls := regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)
	for _, script := range scripts {
		text := contents(t, script)
		all := strings.Count(text, "redis.call(") + strings.Count(text, "redis.pcall(") - strings.Count(text, "call(ARGV[i],")
		assert.That(t, all == len(calls.FindAllString(text, -1)), "%s: a call whose command this test cannot parse", script)
		for _, call := range calls.FindAllStringSubmatch(text, -1) {
			want[strings.ToLower(call[1])] = true
		}
	}
	writes := regexp.MustCompile(`(?:\.write\(|c\.writes, )"([A-Z]+)"`) // ARGV of commit.lua
	for _, source := range assert.Must(filepath.Glob("../../../cart/redisstore/*.go"))(t) {
		for _, write := range writes.FindAllStringSubmatch(contents(t, source), -1) {
			want[strings.ToLower(write[1])] = true
		}
	}
	got := map[string]bool{}
	for line := range strings.Lines(redisUsers(t)) {
		if rules, ok := strings.CutPrefix(line, "user commerce on ~cart:* ~limit:* &cart:* "); ok {
			for rule := range strings.FieldsSeq(rules) {
				got[strings.TrimPrefix(rule, "+")] = true
			}
		}
	}
	assert.Equal(t, got, want, "permissions of user commerce")
}
