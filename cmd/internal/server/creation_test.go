package server_test

import (
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"commerce/auth/limit"
	"commerce/cmd/internal/server"
	"commerce/deploy/ephemeral"
)

// creating limits a shop to n new carts an hour for each address.
func creating(n int64) func(*server.Parts) {
	return func(p *server.Parts) {
		limited(p)
		p.Creation = limit.NewQuota(limit.Config{
			Name: fmt.Sprintf("test%d", nextStore()), Rates: []limit.Rate{{Uses: n, Per: time.Hour}},
			Redis: p.Redis, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler),
		})
	}
}

// onLimitedRedis runs a test with a limit of 3 new carts, counted in each kind of Redis.
func onLimitedRedis(t *testing.T, test func(*testing.T, *shop)) {
	t.Helper()
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{
		"embedded": embeddedRedis,
		"single":   ephemeral.Redis,
		"cluster":  ephemeral.Cluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := func(p *server.Parts) { p.Redis = dialRedis(t, asService(t, url(t)), patient) }
			test(t, openShop(t, url(t), on, creating(3)))
		})
	}
}

var from = []string{"X-Forwarded-For", "192.0.2.1"}

func TestCreation_StoresNothingBeyondTheLimit(t *testing.T) {
	onLimitedRedis(t, func(t *testing.T, s *shop) {
		known := s.guest(t)
		known.cart() // with a token, but without a cart
		known.add(addOne, from...)
		s.guest(t).ok("POST", "/cart/coupon", `{"coupon":"TEN"}`, from...)
		s.guest(t).add(addOne, append(from, "Idempotency-Key", "one")...)
		for name, call := range map[string][]string{
			"an add":          {"POST", "/cart/add", addOne},
			"a keyed add":     {"POST", "/cart/add", addOne, "Idempotency-Key", "two"},
			"a stamped add":   {"POST", "/cart/add", addOne, "X-Timestamp", "1763632800000"},
			"a coupon":        {"POST", "/cart/coupon", `{"coupon":"TEN"}`},
			"an add by a new": {"POST", "/cart/add", addOne, "X-Cart-Token", ""},
		} {
			c := s.guest(t)
			c.Token = "made-up-cart-token-of-" + strconv.FormatInt(nextStore(), 10)
			refused := c.refused(429, "rate_limited", call[0], call[1], call[2], append(from, call[3:]...)...)
			wait, _ := strconv.Atoi(refused.Header.Get("Retry-After"))
			assert(t, wait >= 1 && wait <= 1200 && refused.Header.Get("X-Cart-Token") == "", "%s: headers %v", name, refused.Header)
			if got := refused.Header; got.Get("RateLimit-Limit") != "3" || got.Get("RateLimit-Remaining") != "0" || got.Get("RateLimit-Reset") != got.Get("Retry-After") {
				t.Errorf("%s: headers %v", name, refused.Header)
			}
			if got := c.cart(); got.Version != 0 || got.ExpiresAt != nil {
				t.Errorf("%s has stored %+v", name, got)
			}
		}
		known.add(addOne, from...) // a cart that exists has no limit
		known.wantLines("1×2")
		s.guest(t).add(addOne, "X-Forwarded-For", "192.0.2.2") // nor has another address
		customer := s.customer(t, "1001")
		customer.add(addOne, from...)
		customer.wantLines("1×1")
	})
}

// Everything that a refusal would hide comes first.
func TestCreation_IsJudgedLast(t *testing.T) {
	onLimitedRedis(t, func(t *testing.T, s *shop) {
		first := s.guest(t)
		first.add(addOne, append(from, "Idempotency-Key", "one")...)
		for range 2 {
			s.guest(t).add(addOne, from...)
		}
		a := first.add(addOne, append(from, "Idempotency-Key", "one")...)
		assert(t, a.Header.Get("Idempotency-Replayed") == "true", "a replay: %s", a.Raw)
		for _, call := range []struct {
			status              int
			code, path, payload string
			headers             []string
		}{
			{422, "out_of_stock", "/cart/add", `{"product_id":6}`, nil},
			{422, "validation_failed", "/cart/add", `{}`, nil},
			{422, "coupon_invalid", "/cart/coupon", `{"coupon":"OLD"}`, nil},
			{412, "version_mismatch", "/cart/add", addOne, []string{"If-Match", `"x.1-y"`}},
			{429, "rate_limited", "/cart/add", addOne, []string{"If-Match", "*"}},
		} {
			s.guest(t).refused(call.status, call.code, "POST", call.path, call.payload, append(from, call.headers...)...)
		}
		// What stores nothing has no limit.
		c := s.guest(t)
		c.Token = "made-up-cart-token-of-a-guest"
		for range 5 {
			c.ok("DELETE", "/cart/clear", "", from...)
			c.ok("DELETE", "/cart/items/1", "", from...)
			c.ok("DELETE", "/cart/coupon", "", from...)
			c.ok("GET", "/cart", "", from...)
			c.refused(404, "item_not_found", "PATCH", "/cart/items/1", `{"quantity":2}`, from...)
		}
	})
}

func TestCreation_OfAMergedGuestIsCountedAsAnyOther(t *testing.T) {
	onLimitedRedis(t, func(t *testing.T, s *shop) {
		both, guest := s.customer(t, "1001"), s.guest(t)
		for i := range 3 {
			guest.add(addOne, from...)
			both.Token = guest.Token
			a := both.ok("GET", "/cart", "", from...)
			require(t, a.Body.Data.Count == int64(i+1), "after merge %d: %s", i+1, a.Raw)
		}
		guest.refused(429, "rate_limited", "POST", "/cart/add", addOne, from...)
		both.add(addOne, from...)
	})
}

// Calls that come at the same time can exceed the limit. The client then waits longer.
func TestCreation_WhatExceedsTheLimitDelaysTheNextCarts(t *testing.T) {
	t.Parallel()
	s := openShop(t, ephemeral.Redis(t), func(p *server.Parts) {
		p.Redis = dialRedis(t, asService(t, ephemeral.Redis(t)), patient)
	}, creating(10))
	var created atomic.Int64
	at(40, func(int) {
		if s.guest(t).send("POST", "/cart/add", addOne, from...).Status == 200 {
			created.Add(1)
		}
	})
	require(t, created.Load() >= 10, "%d carts were created, want at least 10", created.Load())
	refused := s.guest(t).refused(429, "rate_limited", "POST", "/cart/add", addOne, from...)
	wait, _ := strconv.Atoi(refused.Header.Get("Retry-After"))
	earned := (created.Load() - 9) * 360 // seconds; a use comes back every 360 seconds
	assert(t, int64(wait) <= earned && int64(wait) >= earned-120, "after %d carts the client waits %ds, want about %d", created.Load(), wait, earned)
}

func TestCreation_HasNoLimitWithoutRates(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), limited)
	for range 30 {
		s.guest(t).add(addOne, from...)
	}
}
