package server_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"commerce/auth/quota"
	"commerce/cart/service"
	"commerce/cmd/internal/server"
	"commerce/deploy/ephemeral"
)

// limited turns on the limits, for clients whose addresses a test names in
// X-Forwarded-For.
func limited(p *server.Parts) {
	p.RateLimit, p.TrustedProxies = true, []string{"127.0.0.1", "::1"}
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
	if wait, err := strconv.Atoi(refused.Header.Get("Retry-After")); err != nil || wait < 500 || wait > 600 {
		t.Errorf("Retry-After %q, want what is left of 10 minutes", refused.Header.Get("Retry-After"))
	}
	if a := c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`, "Idempotency-Key", "k"); a.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a replay: %s", a.Raw)
	}
	c.refused(412, "version_mismatch", "POST", "/cart/coupon", `{"coupon":"TEN"}`, "If-Match", `"x.1-y"`)
	c.ok("DELETE", "/cart/coupon", "")
	other.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`)
	if a := other.tries(20); a.Status != 422 {
		t.Fatalf("refusal 20 of another cart: %d %s", a.Status, a.Raw)
	}
	third := s.guest(t)
	third.add(`{"product_id":1}`)
	third.refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`) // 40 of the address
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
	if a := c.tries(20); a.Status != 422 {
		t.Fatalf("refusal 20: %d %s", a.Status, a.Raw)
	}
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

// Cart tokens can be left out or made up, so carts that hold nothing also share a limit.
func TestCouponGuesses_OfAnAddressAreLimitedWithoutACart(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), limited)
	from := []string{"X-Forwarded-For", "2001:db8:1:2::1"}
	for i := range 40 {
		token := ""
		if i%2 == 0 {
			token = "made-up-cart-token-number-" + strconv.Itoa(i)
		}
		a := s.guest(t).send("POST", "/cart/coupon", `{"coupon":"GUESS"}`, append(from, "X-Cart-Token", token)...)
		if a.Status != 422 {
			t.Fatalf("refusal %d: %d %s", i+1, a.Status, a.Raw)
		}
	}
	neighbor := "2001:db8:1:2:ffff::9" // the same subscriber
	s.guest(t).refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`, "X-Forwarded-For", neighbor)
	s.guest(t).ok("POST", "/cart/coupon", `{"coupon":"TEN"}`, "X-Forwarded-For", "2001:db8:1:3::1")
	c := s.guest(t)
	c.add(`{"product_id":1}`, from...)
	c.refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`, from...)
}

func TestCouponGuesses_OfAnAddressAreCountedForAllInstances(t *testing.T) {
	t.Parallel()
	url := ephemeral.Redis(t)
	from := []string{"X-Forwarded-For", fmt.Sprintf("2001:db8:%x:%x::1", rand.IntN(1<<16), rand.IntN(1<<16))} // other tests use this Redis too
	shared := func(p *server.Parts) {
		limited(p)
		p.Guesses = quota.New(quota.Config{Name: "coupons", Rates: []quota.Rate{service.GuessRate}, Redis: dialRedis(t, url, patient), Timeout: time.Minute})
	}
	one, other := openShop(t, url, shared), openShop(t, url, shared)
	for i := range 2 {
		c := one.guest(t)
		c.add(`{"product_id":1}`, from...)
		if a := c.tries(20, from...); a.Status != 422 {
			t.Fatalf("refusal %d: %d %s", 20*(i+1), a.Status, a.Raw)
		}
	}
	c := other.guest(t)
	c.add(`{"product_id":1}`, from...)
	a := c.refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`, from...)
	if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || wait < 1 || wait > 600 {
		t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
	}
	c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`, "X-Forwarded-For", "2001:db8:1:3::1")
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
	if n := judged.Load(); n != 20 {
		t.Errorf("%d codes were judged, want 20", n)
	}
}

func TestCouponGuesses_HaveNoLimitWithoutRateLimits(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	c := s.guest(t)
	c.add(`{"product_id":1}`)
	if a := c.tries(30); a.Status != 422 {
		t.Errorf("refusal 30: %d %s", a.Status, a.Raw)
	}
}
