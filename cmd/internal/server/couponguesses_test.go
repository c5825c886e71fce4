package server_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"commerce/auth/limit"
	"commerce/cart/service"
	"commerce/cmd/internal/server"
	"commerce/deploy/ephemeral"
)

// limited turns on the limits, for clients whose addresses a test names in
// X-Forwarded-For.
func limited(p *server.Parts) {
	p.RateLimit, p.TrustedProxies = true, []string{"127.0.0.1", "::1"}
	p.Guesses = service.NewGuesses(limit.Config{Redis: p.Redis, Timeout: time.Minute, Now: p.Now, Log: slog.New(slog.DiscardHandler)})
}

// tries sends n codes that the store does not have and returns the last answer.
func (c *shopper) tries(n int, headers ...string) (last answer) {
	c.t.Helper()
	for range n {
		last = c.send("POST", "/cart/coupon", `{"coupon":"GUESS"}`, headers...)
	}
	return last
}

func TestCouponGuesses_AreLimitedForEachAddressAndCart(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), limited)
	c, other := s.guest(t), s.guest(t)
	c.add(`{"product_id":1}`)
	other.add(`{"product_id":1}`)
	c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`, "Idempotency-Key", "k")
	if a := c.tries(20); a.Status != 422 {
		t.Fatalf("refusal 20: %d %s", a.Status, a.Raw)
	}
	refused := c.refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`)
	wait, err := strconv.Atoi(refused.Header.Get("Retry-After"))
	assert(t, err == nil && wait >= 500 && wait <= 600, "Retry-After %q, want what is left of 10 minutes", refused.Header.Get("Retry-After"))
	if a := c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`, "Idempotency-Key", "k"); a.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a replay: %s", a.Raw)
	}
	c.refused(412, "version_mismatch", "POST", "/cart/coupon", `{"coupon":"TEN"}`, "If-Match", `"x.1-y"`)
	c.ok("DELETE", "/cart/coupon", "")
	other.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`)
	c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`, "X-Forwarded-For", "192.0.2.7")
}

func TestCouponGuesses_DoNotCountCodesThatApply(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), limited)
	c := s.customer(t, "1001")
	c.add(`{"product_id":1}`)
	for range 30 {
		c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`)
	}
	for range 30 { // neither of these calls judges a code
		c.refused(412, "version_mismatch", "POST", "/cart/coupon", `{"coupon":"GUESS"}`, "If-Match", `"x.1-y"`)
		c.refused(422, "validation_failed", "POST", "/cart/coupon", `{}`)
	}
	a := c.tries(20)
	require(t, a.Status == 422, "refusal 20: %d %s", a.Status, a.Raw)
	c.refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"GUESS"}`)
}

// An empty cart with a token has its own limit: codes refused for other carts do not count.
func TestCouponGuesses_OfAnEmptyCartCountByItsToken(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), limited)
	c, other := s.guest(t), s.guest(t)
	c.cart()
	other.cart()
	if a := c.tries(20); a.Status != 422 {
		t.Fatalf("refusal 20: %d %s", a.Status, a.Raw)
	}
	c.refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`)
	if a := other.tries(20); a.Status != 422 {
		t.Fatalf("refusal 20 of another cart: %d %s", a.Status, a.Raw)
	}
}

// Carts cost nothing and cart tokens can be made up, so all carts of an address share a limit,
// at all instances.
func TestCouponGuesses_OfAnAddressAreLimitedWhateverTheCart(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{
		"embedded": embeddedRedis, "single": ephemeral.Redis, "cluster": ephemeral.Cluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis, network := url(t), fmt.Sprintf("2001:db8:%x:%x:", os.Getpid()&0xffff, nextStore()&0xffff)
			on := func(p *server.Parts) { p.Redis = dialRedis(t, asService(t, redis), patient) }
			instances := []*shop{openShop(t, redis, on, limited), openShop(t, redis, on, limited)}
			from := []string{"X-Forwarded-For", network + ":1"}
			for i := range 40 {
				c := instances[i%2].guest(t)
				switch i % 3 {
				case 0:
					c.add(addOne, from...)
				case 1:
					c.Token = "made-up-cart-token-number-" + strconv.Itoa(i)
				}
				c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`, from...)
				c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"GUESS"}`, from...)
			}
			for _, s := range instances {
				c := s.guest(t)
				c.add(addOne, from...)
				neighbor := network + "ffff::9" // the same subscriber
				refused := c.refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`, "X-Forwarded-For", neighbor)
				wait, err := strconv.Atoi(refused.Header.Get("Retry-After"))
				assert(t, err == nil && wait >= 300 && wait <= 600, "Retry-After %q, want what is left of 10 minutes", refused.Header.Get("Retry-After"))
				equal(t, refused.Header.Get("RateLimit-Limit"), "40", "RateLimit-Limit")
				c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`, "X-Forwarded-For", "192.0.2."+strconv.FormatInt(s.ID%250, 10))
			}
		})
	}
}

func TestCouponGuesses_AtTheSameTimeCannotPassTheLimit(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), limited)
	c := s.customer(t, "1001")
	c.add(`{"product_id":1}`)
	var judged atomic.Int64
	at(60, func(int) {
		if s.with(t, c).tries(1).Status != http.StatusTooManyRequests {
			judged.Add(1)
		}
	})
	equal(t, judged.Load(), 20, "codes that were judged")
}

func TestCouponGuesses_HaveNoLimitWithoutRateLimits(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	c := s.guest(t)
	c.add(`{"product_id":1}`)
	a := c.tries(30)
	assert(t, a.Status == 422, "refusal 30: %d %s", a.Status, a.Raw)
}
