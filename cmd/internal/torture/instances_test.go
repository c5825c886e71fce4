package torture

import (
	"fmt"
	"net/http"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// A shopper's requests alternate between two instances, and nothing shows it: each sees what
// the other has just changed, in the same words.
func TestInstances_AShopperSwitchesAtEachRequest(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	redis, database := ephemeral.StartRedis(t), catalog(t)
	settings := []string{"REDIS_URL=" + redis.URL, "DATABASE_URL=" + database, "TRUSTED_PROXIES=127.0.0.1"}
	instances := []*service{startService(t, settings...), startService(t, settings...)}
	url := startHAProxy(t, instances[0], instances[1])
	s := &switching{t: t, shopper: shopperAt(t, func() string { return url })}
	var before [2]int
	for i, instance := range instances {
		before[i] = instance.served()
	}

	s.Token = "a-shopper-who-switches-instances"
	for n := range int64(20) {
		s.change("POST", "/cart/add", `{"product_id":1001}`, 2*n+1, n+1)
		s.refused("PATCH", "/cart/items/1002", `{"quantity":1}`)
		s.change("PATCH", "/cart/items/1001", fmt.Sprintf(`{"quantity":%d,"notice":"number %d"}`, n+1, n), 2*n+2, n+1)
	}
	s.JWT = customer(t, "switching")
	login := s.send("GET", "/cart", "")
	assert.Require(t, login.Status == http.StatusOK && login.Cart.Merge != nil && login.Cart.Count == 20, "login: %v", login)
	report := login.Cart.Merge.ID
	if a := s.send("GET", "/cart", ""); a.Status != http.StatusOK || a.Cart.Merge == nil || a.Cart.Merge.ID != report || a.Cart.Count != 20 {
		t.Errorf("after the login: %v", a)
	}

	for i, instance := range instances {
		served := instance.served() - before[i]
		assert.That(t, served >= s.sent/5, "instance %d served %v of %v requests: the shopper did not switch", i, served, s.sent)
	}
}

// switching is a shopper who makes one request at a time. haproxy gives them to the instances
// in turns.
type switching struct {
	t *testing.T
	*shopper
	sent int
}

func (s *switching) send(method, path, body string, headers ...string) reply {
	s.sent++
	return s.shopper.send(method, path, body, headers...)
}

// refused makes a change of a line that does not exist.
func (s *switching) refused(method, path, body string) {
	s.t.Helper()
	a := s.send(method, path, body)
	assert.Require(s.t, a.Code == "item_not_found", "%s %s: %v, want item_not_found", method, path, a)
}

// change makes a change and repeats it. Then it reads the cart so often that each instance
// shows it.
func (s *switching) change(method, path, body string, version, count int64) {
	s.t.Helper()
	key := []string{"Idempotency-Key", fmt.Sprint("switch-", s.sent)}
	a := s.send(method, path, body, key...)
	assert.Require(s.t, a.Status == http.StatusOK && a.Cart.Version == version && a.Cart.Count == count && !a.replayed(),
		"%s %s %s: %v, want version %d with %d pieces", method, path, body, a, version, count)
	again := s.send(method, path, body, key...)
	assert.Require(s.t, again.replayed() && again.Cart.Version == version,
		"repeated %s %s: %v, want a replay of version %d", method, path, again, version)
	tag := a.Header.Get("ETag")
	for range 2 {
		if read := s.send("GET", "/cart", ""); read.Header.Get("ETag") != tag || read.Cart.Count != count {
			s.t.Fatalf("read after %s %s: %s %v, want %s", method, path, read.Header.Get("ETag"), read, tag)
		}
		if same := s.send("GET", "/cart", "", "If-None-Match", tag); same.Status != http.StatusNotModified {
			s.t.Fatalf("conditional read after %s %s: %v, want 304", method, path, same)
		}
	}
}
