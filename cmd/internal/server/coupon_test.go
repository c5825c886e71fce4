package server_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"commerce/auth"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/service"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func TestCoupon_LowersThePriceWhileItsConditionHolds(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		c.costs("add 2×2", "20 - 0 = 20 SAR", "redeem five", "20 - 5 = 15 SAR, FIVE", "set 2 1", "10 - 0 = 10 SAR, FIVE")
		warnings := c.ok("GET", "/cart/validate", "").Body.Data.Warnings
		assert.That(t, len(warnings) == 2 && warnings[1].Code == "coupon_invalid" && warnings[1].ItemID == nil, "warnings: %+v", warnings)
		c.costs("add 2×1", "20 - 5 = 15 SAR, FIVE", "redeem TEN", "20 - 2 = 18 SAR, TEN", "remove 2", "0 - 0 = 0 SAR, TEN", "add 1×2", "99 - 9.9 = 89.1 SAR, TEN", "return", "99 - 0 = 99 SAR")
	})
}

func TestCoupon_StaysInTheCartAfterItExpiresOrIsDeleted(t *testing.T) {
	s := realShop(t)
	soon := time.Now().Add(time.Hour)
	s.Catalog.PutCoupon(s.ID, &cart.Coupon{Code: "SOON", Kind: cart.Fixed, Amount: 100, Expires: soon})
	c := s.guest(t).fill("2×1")
	before := c.redeem("soon")
	s.Clock.Forward(2 * time.Hour)
	after := c.ok("GET", "/cart", "")
	assert.That(t, after.Body.Data.Discount == 0 && after.Body.Data.Coupon != nil, "expired: %s", after.Raw)
	assert.That(t, before.Header.Get("ETag") != after.Header.Get("ETag"), "the coupon expired and the ETag did not change")
	c.ok("PATCH", "/cart/items/2", `{"quantity":2}`, "If-Match", before.Header.Get("ETag"))
	s.Catalog.DeleteCoupon(s.ID, "SOON")
	vanished := c.ok("GET", "/cart", "")
	assert.That(t, vanished.Body.Data.Total == 20 && strings.Contains(string(vanished.Raw), `"coupon":{"code":"SOON","type":null,"value":null,"discount":0,"issue":{"code":"coupon_invalid","reason":"gone",`), "deleted: %s", vanished.Raw)
	c.costs("return", "20 - 0 = 20 SAR")
}

func TestCoupon_IsRemovedByAClearAndMovedByAMerge(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		guest := s.guest(t).fill("1×1")
		guest.redeem("TEN")
		customer := guest.logIn("1")
		assert.Equal(t, customer.cart().sums(), "49.5 - 4.95 = 44.55 SAR, TEN", "a cart without a coupon after the merge")
		guest.fill("1×1").redeem("FIVE")
		assert.Equal(t, customer.cart().sums(), "99 - 9.9 = 89.1 SAR, TEN", "a cart with a coupon after the merge")
		cleared := customer.ok("DELETE", "/cart/clear", "").Body.Data
		assert.That(t, cleared.Coupon == nil, "a clear left %+v", cleared.Coupon)
	})
}

func TestCoupon_OnAnEmptyCartWaitsForLines(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.visitor(t)
		c.refused(422, "coupon_minimum", "POST", "/cart/coupon", `{"coupon":"FIVE"}`)
		c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"GAMES"}`)
		c.costs("redeem TEN", "0 - 0 = 0 SAR, TEN", "add 1×1", "49.5 - 4.95 = 44.55 SAR, TEN")
	})
}

func TestCoupon_AloneKeepsACartAliveAndMerges(t *testing.T) {
	s := realShop(t)
	guest := s.guest(t)
	guest.costs("add 1×1", "49.5 - 0 = 49.5 SAR", "redeem TEN", "49.5 - 4.95 = 44.55 SAR, TEN", "remove 1", "0 - 0 = 0 SAR, TEN")
	guest.cart()
	left := s.Redis.PTTL(t.Context(), s.keys(t)[0]).Val()
	assert.That(t, left >= 719*time.Hour, "a cart with a coupon expires in %v", left)
	got := guest.logIn("1").cart()
	assert.That(t, got.Coupon != nil && got.Merge != nil && got.Merge.Lines == 0 && got.Version == 1, "merged: %+v", got)
}

func TestCoupon_IsSafeToRepeat(t *testing.T) {
	s := realShop(t)
	c := s.guest(t).fill("1×1")
	c.redeem("TEN", "Idempotency-Key", "k")
	c.ok("DELETE", "/cart/coupon", "")
	s.Catalog.DeleteCoupon(s.ID, "TEN")
	again := c.redeem("TEN", "Idempotency-Key", "k")
	assert.That(t, again.replayed(t) && again.Body.Data.Coupon == nil, "a repeat: %s", again.Raw)
}

func TestCoupon_IsFoundAsItIsTypedOrPasted(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		for _, code := range []string{"SAVE10", "SAVE١٠", "عرض٥", "GO\u200bLD"} {
			s.Catalog.PutCoupon(s.ID, &cart.Coupon{Code: code, Kind: cart.Fixed, Amount: 100, MaxUses: new(int64(1))})
		}
		s.Catalog.PutUse(s.ID, "GO\u200bLD", "", 1)
		c := s.guest(t).fill("1×1")
		for typed, want := range map[string]string{
			"\u200f\u2066Ten\u2069": "TEN", "t\u00ade\ufeffn": "TEN", "SAVE10": "SAVE10", "SAVE١٠": "SAVE١٠", "save۱۰": "SAVE10",
			"SAVE１０\u202c": "SAVE10", "عرض5": "عرض٥", strings.Repeat("\u200b", 500) + "عرض۵": "عرض٥",
		} {
			assert.Equal(t, c.redeem(typed).Body.Data.Coupon.Code, want, "the coupon for %+q", typed)
		}
		before := c.ok("POST", "/cart/coupon", `{"coupon":"ten","code":"\u200eTEN"}`)
		again := c.ok("POST", "/cart/ops", `{"ops":[{"op":"coupon","coupon":"t\u200ben"}]}`)
		assert.Equal(t, again.Body.Data.Version, before.Body.Data.Version, "version after the same coupon in another spelling")
		assert.Equal(t, c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"code":"gold"}`).Body.Data.Reason, "used_up", "reason of a coupon whose uses have its spelling")
		spaced := strings.Repeat("A\u200b", cart.MaxCouponCode)
		c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"`+spaced+`"}`)
		for _, none := range []string{spaced + "A", "\u200b", "\\u0000TEN"} {
			c.refused(422, "validation_failed", "POST", "/cart/coupon", `{"coupon":"`+none+`"}`)
		}
	})
}

// wantIssue checks why the coupon of a cart takes nothing off; "" means that it does.
func wantIssue(t *testing.T, got cartBody, code, reason string) {
	t.Helper()
	assert.Require(t, got.Coupon != nil, "no coupon, want one with the reason %q", reason)
	issue := got.Coupon.Issue
	if reason == "" {
		assert.That(t, issue == nil && got.Discount != 0, "coupon %+v with the issue %+v, discount %v", got.Coupon, issue, got.Discount)
		return
	}
	assert.Require(t, issue != nil, "coupon %+v without an issue", got.Coupon)
	assert.Equal(t, []string{issue.Code, issue.Reason}, []string{code, reason}, "code and reason")
	assert.That(t, issue.Message != "" && got.Discount == 0 && got.Coupon.Discount == 0, "coupon %+v with the issue %+v, discount %v", got.Coupon, issue, got.Discount)
}

func TestCoupon_UnknownAndEarlyCodesHaveOneAnswer(t *testing.T) {
	c := realShop(t).guest(t).fill("1×1")
	varying := regexp.MustCompile(`"request_id":"[^"]*"|"timestamp":[0-9]+`)
	var answers []string
	for _, code := range []string{"LATER", "NOSUCH"} {
		a := c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"`+code+`"}`, "Accept-Language", "ar")
		for _, own := range []string{"X-Request-Id", "Date"} {
			a.Header.Del(own)
		}
		answers = append(answers, varying.ReplaceAllString(string(a.Raw), "")+fmt.Sprint(a.Header))
	}
	assert.Equal(t, answers[1], answers[0], "the answers to an unknown and an early code")
}

func TestCoupon_IsUsedUp(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		limit := int64(2)
		s.Catalog.PutCoupon(s.ID, &cart.Coupon{Code: "TWO", Kind: cart.Fixed, Amount: 100, MaxUses: &limit})
		s.Catalog.PutUse(s.ID, "TWO", "", 1)
		c := s.guest(t).fill("1×1")
		before := c.redeem("TWO")
		wantIssue(t, before.Body.Data, "", "")
		s.Catalog.PutUse(s.ID, "TWO", "1001", 2)
		s.Clock.Forward(time.Minute)
		ephemeral.Eventually(t, "a load in the background", func() bool { return c.cart().Discount == 0 })
		after := c.ok("GET", "/cart", "")
		wantIssue(t, after.Body.Data, "coupon_invalid", "used_up")
		assert.That(t, before.Header.Get("ETag") != after.Header.Get("ETag"), "the coupon is used up and the ETag did not change")
		assert.Equal(t, s.guest(t).refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"TWO"}`).Body.Data.Reason, "used_up", "reason")
	})
}

// A guest may redeem a coupon that the customer has used up. The login then takes its
// discount away, and says why.
func TestCoupon_LimitOfACustomerCountsAfterTheLogin(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		sub := "user@example.com|١٢٣" // not a Redis key as it is
		s.Catalog.PutUse(s.ID, "ONCE", sub, 1)
		guest := s.guest(t).fill("1×1")
		wantIssue(t, guest.redeem("ONCE").Body.Data, "", "")
		customer := guest.logIn(sub)
		merged := customer.cart()
		assert.Require(t, merged.Merge != nil && merged.Coupon != nil, "merged: %+v", merged)
		wantIssue(t, merged, "coupon_invalid", "used_up")
		validation := customer.ok("GET", "/cart/validate", "").Body.Data
		n := len(validation.Warnings)
		assert.That(t, n != 0 && validation.Warnings[n-1].Code == "coupon_invalid", "warnings %+v", validation.Warnings)
		other := s.customer(t, "another").fill("1×1")
		wantIssue(t, other.redeem("ONCE").Body.Data, "", "")
		again := s.customer(t, "1002").fill("1×1") // of the sample
		assert.Equal(t, again.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"ONCE"}`).Body.Data.Reason, "used_up", "reason")
	})
}

type unknownUses struct{ service.Coupons }

func (unknownUses) Uses(context.Context, int64, string, string, int64) (int64, error) {
	return 0, errors.New("connection refused")
}

func TestCoupon_CountsAsUnusedWhileItsUsesAreUnknown(t *testing.T) {
	c := newShop(t, func(p *server.Parts) { p.Carts.Coupons = unknownUses{p.Carts.Coupons} }).customer(t, "1002").fill("1×1")
	wantIssue(t, c.redeem("ONCE").Body.Data, "", "")
	wantIssue(t, c.cart(), "", "")
}

func inCurrency(t *testing.T, code string) *shop {
	t.Helper()
	return openShop(t, embeddedRedis(t), func(p *server.Parts) {
		other := *assert.Must(p.Stores.Sole(t.Context()))(t)
		other.Currency = code
		p.Stores = auth.NewMemoryStores(money.Known, &other)
		p.APITokens = auth.NewAPITokens(auth.APITokensConfig{Source: auth.MemoryAPITokens{}, Stores: p.Stores})
	})
}

func TestCart_OfAStoreInAnUnknownCurrencyIsUnavailable(t *testing.T) {
	t.Parallel()
	s := inCurrency(t, "XYZ")
	c := s.guest(t)
	cause := fmt.Sprintf(`"kind":"currency","err":"store %d: unknown currency \"XYZ\""`, s.ID)
	for minutes := range 3 {
		for _, call := range cartCalls[:5] {
			a := c.refused(503, "unavailable", call[0], call[1], call[2])
			assert.That(t, a.Header.Get("Retry-After") == "60" && strings.Contains(a.Body.Message, "currency"), "%s: %s", call[1], a.Raw)
		}
		log := s.Log.String()
		assert.That(t, strings.Count(log, cause) == minutes+1 && strings.Count(log, `"XYZ`) == minutes+1, // request IDs may have the letters
			"after %d minutes the log names the cause %d times:\n%s", minutes, strings.Count(log, cause), log)
		s.Clock.Forward(time.Minute)
	}
}

func TestCart_ShowsTheRightDecimalsOfANewISOCurrency(t *testing.T) {
	t.Parallel()
	for code, formatted := range map[string]string{"XCG": "Cg.49.50", "BGN": "BGN\u00a049.50"} {
		a := inCurrency(t, code).guest(t).add(`{"product_id":1}`) // 4950 minor units
		got := a.Body.Data
		assert.That(t, got.Total == 49.5 && got.Currency == code && strings.Contains(string(a.Raw), formatted), "%s: %s", code, a.Raw)
	}
}
