package server_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/cart"
	"commerce/cart/service"
	"commerce/cmd/internal/server"
	"commerce/deploy/sample"
)

// wantIssue checks why the coupon of a cart takes nothing off; "" means that it does.
func wantIssue(t *testing.T, got cartBody, code, reason string) {
	t.Helper()
	if got.Coupon == nil {
		t.Errorf("no coupon, want one with the reason %q", reason)
		return
	}
	issue := got.Coupon.Issue
	switch {
	case reason == "" && (issue != nil || got.Discount == 0):
		t.Errorf("coupon %+v with the issue %+v, discount %v", got.Coupon, issue, got.Discount)
	case reason != "" && (issue == nil || issue.Reason != reason || issue.Code != code || issue.Message == "" || got.Discount != 0 || got.Coupon.Discount != 0):
		t.Errorf("coupon %+v with the issue %+v, discount %v; want the reason %s", got.Coupon, issue, got.Discount, reason)
	}
}

func TestCoupon_UnknownAndEarlyCodesHaveOneAnswer(t *testing.T) {
	onRealRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		c.add(`{"product_id":1}`)
		varying := regexp.MustCompile(`"request_id":"[^"]*"|"timestamp":[0-9]+`)
		var answers []string
		for _, code := range []string{"LATER", "NOSUCH"} {
			a := c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"`+code+`"}`, "Accept-Language", "ar")
			for _, own := range []string{"X-Request-Id", "Date"} {
				a.Header.Del(own)
			}
			answers = append(answers, varying.ReplaceAllString(string(a.Raw), "")+fmt.Sprint(a.Header))
		}
		equal(t, answers[1], answers[0], "the answers to an unknown and an early code")
	})
}

func TestCoupon_IsUsedUp(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		limit := int64(2)
		s.Catalog.PutCoupon(s.ID, &cart.Coupon{Code: "TWO", Kind: cart.Fixed, Amount: 100, MaxUses: &limit})
		s.Catalog.PutUse(s.ID, "TWO", "", 1)
		c := s.guest(t)
		c.add(`{"product_id":1}`)
		before := c.ok("POST", "/cart/coupon", `{"coupon":"TWO"}`)
		wantIssue(t, before.Body.Data, "", "")
		s.Catalog.PutUse(s.ID, "TWO", "1001", 2)
		s.Clock.Forward(time.Minute)
		eventually(t, func() bool { return c.cart().Discount == 0 }) // a load in the background
		after := c.ok("GET", "/cart", "")
		wantIssue(t, after.Body.Data, "coupon_invalid", "used_up")
		assert(t, before.Header.Get("ETag") != after.Header.Get("ETag"), "the coupon is used up and the ETag did not change")
		other := s.guest(t)
		a := other.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"TWO"}`)
		assert(t, a.Body.Data.Reason == "used_up", "%s", a.Raw)
	})
}

// eventually waits until a condition holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for start := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		require(t, time.Since(start) <= 20*time.Second, "not within 20 seconds")
	}
}

// A guest may redeem a coupon that the customer has used up. The login then takes its
// discount away, and says why.
func TestCoupon_LimitOfACustomerCountsAfterTheLogin(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		sub := "user@example.com|١٢٣" // not a Redis key as it is
		s.Catalog.PutUse(s.ID, "ONCE", sub, 1)
		guest := s.guest(t)
		guest.add(`{"product_id":1}`)
		wantIssue(t, guest.ok("POST", "/cart/coupon", `{"coupon":"ONCE"}`).Body.Data, "", "")
		customer := s.customer(t, sub)
		customer.Token = guest.Token
		merged := customer.cart()
		require(t, merged.Merge != nil && merged.Coupon != nil, "merged: %+v", merged)
		wantIssue(t, merged, "coupon_invalid", "used_up")
		validation := customer.ok("GET", "/cart/validate", "").Body.Data
		n := len(validation.Warnings)
		assert(t, n != 0 && validation.Warnings[n-1].Code == "coupon_invalid", "warnings %+v", validation.Warnings)
		other := s.customer(t, "another")
		other.add(`{"product_id":1}`)
		wantIssue(t, other.ok("POST", "/cart/coupon", `{"coupon":"ONCE"}`).Body.Data, "", "")
		again := s.customer(t, "1002") // of the sample
		again.add(`{"product_id":1}`)
		a := again.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"ONCE"}`)
		assert(t, a.Body.Data.Reason == "used_up", "%s", a.Raw)
	})
}

// unknownUses is a source of coupons that can no longer count uses.
type unknownUses struct{ service.Coupons }

func (unknownUses) Uses(context.Context, int64, string, string, int64) (int64, error) {
	return 0, errors.New("connection refused")
}

func TestCoupon_CountsAsUnusedWhileItsUsesAreUnknown(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.Coupons = unknownUses{p.Coupons} })
	c := s.customer(t, "1002")
	c.add(`{"product_id":1}`)
	wantIssue(t, c.ok("POST", "/cart/coupon", `{"coupon":"ONCE"}`).Body.Data, "", "")
	wantIssue(t, c.cart(), "", "")
}

func TestTax_IsByProduct(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		untaxed, low := *sample.Products()[1][1], *sample.Products()[1][4]
		untaxed.TaxRate, untaxed.Stock, low.TaxRate, low.Fields = new(int64), nil, ptr(int64(50_000)), nil
		s.Catalog.Put(s.ID, &untaxed)
		s.Catalog.Put(s.ID, &low)
		c := s.guest(t)
		empty := c.ok("GET", "/cart/summary", "").Body.Data
		assert(t, *empty.Tax.Rate == 15 && len(empty.Tax.Lines) == 0 && !*empty.PaymentRequired, "an empty cart: %+v, payment %t", empty.Tax, *empty.PaymentRequired)
		c.add(`{"product_id":2,"qty":2}`) // 20.00
		single := c.ok("GET", "/cart/summary", "").Body.Data
		if diff := cmp.Diff([]taxLineBody{{Rate: 0, Base: 20, Amount: 0}}, single.Tax.Lines); diff != "" || single.Tax.Rate == nil || *single.Tax.Rate != 0 {
			t.Errorf("one rate (-want +got):\n%s", diff)
		}
		c.add(`{"product_id":5}`) // 15.00
		c.add(`{"product_id":1}`) // 49.50
		c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`)
		got := c.ok("GET", "/cart/summary", "").Body.Data
		want := []taxLineBody{{Rate: 15, Base: 38.74, Amount: 5.81}, {Rate: 5, Base: 12.86, Amount: 0.64}, {Rate: 0, Base: 18}}
		if diff := cmp.Diff(want, got.Tax.Lines); diff != "" || got.Tax.Rate != nil || got.Tax.Amount != 6.45 || got.TaxAmount != 6.45 {
			t.Errorf("rate %v, tax %v and %v, lines (-want +got):\n%s", got.Tax.Rate, got.Tax.Amount, got.TaxAmount, diff)
		}
		assert(t, got.Total == 76.05 && *got.PaymentRequired, "total %v, payment %t", got.Total, *got.PaymentRequired)
	})
}

func ptr[T any](v T) *T { return &v }

func TestSummary_NeedsNoPaymentForACartThatCostsNothing(t *testing.T) {
	onRealRedis(t, func(t *testing.T, s *shop) {
		s.Catalog.PutCoupon(s.ID, &cart.Coupon{Code: "FREE", Kind: cart.Percent, Rate: 1_000_000})
		c := s.guest(t)
		c.add(`{"product_id":1}`)
		c.ok("POST", "/cart/coupon", `{"coupon":"FREE"}`)
		got := c.ok("GET", "/cart/summary", "").Body.Data
		assert(t, !*got.PaymentRequired && got.Total == 0, "total %v, payment %t", got.Total, *got.PaymentRequired)
	})
}

func TestCart_ShowsThePriceWhenALineWasAdded(t *testing.T) {
	onRealRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		c.add(`{"product_id":1}`)
		dearer := *sample.Products()[1][0]
		dearer.Price, dearer.OriginalPrice = 5950, 5950
		s.Catalog.Put(s.ID, &dearer)
		got := c.cart().Items[0]
		assert(t, got.AddedPrice == 49.5 && got.UnitPrice == 59.5, "added at %v, costs %v", got.AddedPrice, got.UnitPrice)
	})
}
