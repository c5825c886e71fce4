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
	"commerce/cart/money"
	"commerce/cart/price"
	"commerce/cart/service"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

func TestCoupon_LowersThePriceWhileItsConditionHolds(t *testing.T) {
	s := newShop(t)
	c := s.guest(t)
	c.costs("add 2×2", "20 - 0 = 20 SAR", "redeem five", "20 - 5 = 15 SAR, FIVE", "set 2 1", "10 - 0 = 10 SAR, FIVE")
	warnings := c.ok("GET", "/cart/validate", "").Body.Data.Warnings
	assert.That(t, len(warnings) == 2 && warnings[1].Code == "coupon_invalid" && warnings[1].ItemID == nil, "warnings: %+v", warnings)
	c.costs("add 2×1", "20 - 5 = 15 SAR, FIVE", "redeem TEN", "20 - 2 = 18 SAR, TEN", "remove 2", "0 - 0 = 0 SAR, TEN", "add 1×2", "99 - 9.9 = 89.1 SAR, TEN", "return", "99 - 0 = 99 SAR")
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

// Of coupons whose codes look alike, each has its own uses.
func TestCoupon_StaysInTheCartWhenItIsUsedUpOrDeleted(t *testing.T) {
	s := newShop(t)
	const gold, twin = "GOLD", "GO\u200bLD"
	for _, code := range []string{gold, twin} {
		s.Catalog.PutCoupon(s.ID, &price.Coupon{Code: code, Kind: price.Fixed, Amount: 100, MaxUses: new(int64(1))})
	}
	s.Catalog.PutUse(s.ID, twin, "", 1)
	c := s.guest(t).fill("1×1")
	assert.Equal(t, c.redeem("gold").Body.Data.Discount, 1, "discount before the use")
	s.Catalog.PutUse(s.ID, gold, "1001", 2)
	got := c.cart()
	assert.That(t, got.Discount == 0 && got.Coupon.Issue != nil && got.Coupon.Issue.Reason == "used_up", "after the use: %+v", got)
	s.Catalog.DeleteCoupon(s.ID, gold)
	s.Catalog.DeleteCoupon(s.ID, twin)
	gone := c.ok("GET", "/cart", "")
	assert.That(t, strings.Contains(string(gone.Raw), `"coupon":{"code":"GOLD","type":null,"value":null,"discount":0,"issue":{"code":"coupon_invalid","reason":"gone",`), "deleted: %s", gone.Raw)
}

type unknownUses struct{ service.Coupons }

func (unknownUses) Uses(context.Context, int64, string, string, int64) (int64, error) {
	return 0, errors.New("connection refused")
}

func TestCoupon_CountsAsUnusedWhileItsUsesAreUnknown(t *testing.T) {
	c := newShop(t, func(p *server.Parts) { p.Carts.Coupons = unknownUses{p.Carts.Coupons} }).customer(t, "1002").fill("1×1")
	assert.That(t, c.redeem("ONCE").Body.Data.Discount > 0 && c.cart().Discount > 0, "takes nothing off")
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
