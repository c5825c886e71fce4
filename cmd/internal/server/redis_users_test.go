package server_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"commerce/cart/redisstore"
	"commerce/deploy/connect"
)

func TestRedisUsers_TheServiceCanAccessOnlyItsCarts(t *testing.T) {
	t.Parallel()
	redisServer := guarded(t).StartRedis(t)
	admin := redisServer.Admin()
	noError(t, admin.HSet(t.Context(), "session:1", "user", "1001").Err())
	service := must(connect.Redis(redisServer.URL))(t)
	defer service.Close()
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
		assert(t, err != nil && (redis.HasErrorPrefix(err, "NOPERM") || strings.Contains(err.Error(), "The user executing the script can't")), "%v: %v, want NOPERM", command, err)
	}
	got := admin.HGetAll(t.Context(), "session:1").Val()
	assert(t, cmp.Equal(got, map[string]string{"user": "1001"}), "the other key holds %v", got)
}

func TestRedisUsers_SupportFindsAndErases(t *testing.T) {
	t.Parallel()
	redisServer := guarded(t).StartRedis(t)
	s := openShop(t, redisServer.URL)
	guest, customer := s.guest(t), s.customer(t, "1001")
	guest.add(`{"product_id":1}`, "Idempotency-Key", "one")
	customer.ok("GET", "/cart", "", "X-Cart-Token", guest.Token)

	support := must(connect.Redis(strings.Replace(redisServer.URL, "//commerce:", "//support:", 1)))(t)
	defer support.Close()
	carts := redisstore.New(redisstore.Config{Client: support, TTL: redisstore.TTLs{Guest: time.Hour, Customer: time.Hour}})
	ref := redisstore.CustomerRef(s.ID, "1001")
	held, err := carts.Erase(t.Context(), ref)
	assert(t, err == nil && len(held) == 3, "erased %+v, %v, want a cart, its idempotency keys and its merged quantities", held, err)
	if left, err := carts.Holdings(t.Context(), ref); err != nil || len(left) != 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
	customer.wantLines("")
}

// If a command were added to a script but not to the users, every cart call would fail for
// those who use them. So the two must be equal.
func TestRedisUsers_HaveThePermissionsThatTheServiceNeeds(t *testing.T) {
	t.Parallel()
	want := map[string]bool{
		"ping": true, "client|setname": true, "cluster|slots": true, "command": true, "asking": true, // go-redis
		"eval": true, "evalsha": true, "hgetall": true, "exists": true, // redisstore
		"role": true, "wait": true, "cluster|nodes": true, // merges, DURABILITY=replica
	}
	scripts, err := filepath.Glob("../../../cart/redisstore/lua/*.lua")
	require(t, err == nil && len(scripts) != 0, "scripts: %v, %v", scripts, err)
	scripts = append(scripts, "../../../auth/limit/quota.lua", "../../../auth/limit/window.lua")
	calls := regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)
	for _, script := range scripts {
		text := contents(t, script)
		all := strings.Count(text, "redis.call(") + strings.Count(text, "redis.pcall(")
		assert(t, all == len(calls.FindAllString(text, -1)), "%s: a call whose command this test cannot parse", script)
		for _, call := range calls.FindAllStringSubmatch(text, -1) {
			want[strings.ToLower(call[1])] = true
		}
	}
	got := map[string]bool{}
	for line := range strings.Lines(redisUsers(t)) {
		if rules, ok := strings.CutPrefix(line, "user commerce on ~cart:* ~limit:* "); ok {
			for rule := range strings.FieldsSeq(rules) {
				got[strings.TrimPrefix(rule, "+")] = true
			}
		}
	}
	equal(t, got, want, "permissions of user commerce")
}
