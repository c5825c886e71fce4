package server_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/deploy/assert"
)

// combining offers six coupons of 1.00 that combine, C1 to C6.
func (s *shop) combining() *shop {
	for i := range 6 {
		s.Catalog.PutCoupon(s.ID, &price.Coupon{Code: fmt.Sprint("C", i+1), Kind: price.Fixed, Amount: 100, Combines: true})
	}
	return s
}

// codes are those that the cart holds, the oldest first.
func (b *cartBody) codes() string {
	var all []string
	for _, c := range b.Coupons {
		all = append(all, c.Code)
	}
	return strings.Join(all, " ")
}

// taken is what takes something off, in the order in which it is applied.
func (b *cartBody) taken() string {
	var all []string
	for _, d := range b.Discounts {
		all = append(all, fmt.Sprint(d.ID, " ", d.Amount))
	}
	return strings.Join(all, ", ")
}

func (c *shopper) wantCodes(codes, taken string) cartBody {
	c.t.Helper()
	b := c.cart()
	assert.That(c.t, b.codes() == codes && b.taken() == taken, "codes %q take %q, want %q: %q", b.codes(), b.taken(), codes, taken)
	return b
}

func TestDiscounts_ANewCodeReplacesWhatItDoesNotCombineWith(t *testing.T) {
	s := newShop(t).combining()
	c := s.guest(t).fill("1×2")
	for _, step := range []struct{ code, replaced, codes, taken string }{
		{"ten", "[]", "TEN", "TEN 9.9"},
		{"C2", "[TEN]", "C2", "C2 1"},
		{"extra", "[]", "C2 EXTRA", "EXTRA 4.95, C2 1"}, // percentages first
		{"c2", "[]", "C2 EXTRA", "EXTRA 4.95, C2 1"},
		{"C1", "[]", "C2 EXTRA C1", "EXTRA 4.95, C1 1, C2 1"},
		{"FIVE", "[C2 EXTRA C1]", "FIVE", "FIVE 5"},
	} {
		got := c.redeem(step.code).Body.Data
		assert.That(t, got.Replaced != nil && fmt.Sprint(got.Replaced) == step.replaced, "%s replaced %q, want %s", step.code, got.Replaced, step.replaced)
		c.wantCodes(step.codes, step.taken)
	}
	for _, key := range []string{"first", "second"} {
		first := c.redeem("C3", "Idempotency-Key", key).Body.Data
		again := c.redeem("C3", "Idempotency-Key", key)
		assert.That(t, again.Body.Data.Replaced != nil && len(again.Body.Data.Replaced) == 0, "a repeat replaced %q (the first: %q)", again.Body.Data.Replaced, first.Replaced)
	}
	assert.That(t, !strings.Contains(string(c.ok("POST", "/cart/add", `{"product_id":1}`).Raw), `"replaced"`), "an addition tells of codes")
}

// A code that is gone, expired or used up makes room for any other.
func TestDiscounts_CodesThatAreOverLeaveForANewOne(t *testing.T) {
	s := newShop(t).combining()
	s.Catalog.PutCoupon(s.ID, &price.Coupon{Code: "LAST", Kind: price.Fixed, Amount: 100, Combines: true, MaxUses: new(int64(1))})
	c := s.guest(t).fill("1×1")
	for _, code := range []string{"C1", "LAST", "C3"} {
		c.redeem(code)
	}
	s.Catalog.PutUse(s.ID, "LAST", "", 1)
	s.Catalog.DeleteCoupon(s.ID, "C1")
	got := c.wantCodes("C1 LAST C3", "C3 1")
	assert.That(t, got.Coupons[0].Issue.Reason == "gone" && got.Coupons[1].Issue.Reason == "used_up" && got.Coupon.Code == "C1", "coupons: %+v", got.Coupons)
	assert.Equal(t, c.redeem("C2").Body.Data.Replaced, []string{"C1", "LAST"}, "replaced")
	c.wantCodes("C3 C2", "C2 1, C3 1")
}

func TestDiscounts_ASixthCodeIsRefused(t *testing.T) {
	s := newShop(t).combining()
	c := s.guest(t).fill("1×1")
	for i := range cart.MaxCodes {
		c.redeem(fmt.Sprint("C", i+1))
	}
	before := c.tag()
	const list = `"ops":[{"op":"coupon","coupon":"C6"}]}`
	for path, body := range map[string]string{"/cart/coupon": `{"coupon":"C6"}`, "/cart/ops": "{" + list} {
		a := c.refused(422, "coupon_invalid", "POST", path, body)
		assert.Equal(t, a.Body.Data.Reason, "too_many", "%s: reason", path)
	}
	got := c.ok("POST", "/cart/ops", `{"mode":"each",`+list).Body.Data.Outcomes[0]
	assert.That(t, got.Code == "coupon_invalid" && got.Data.Reason == "too_many", "outcome: %+v", got)
	assert.Equal(t, c.tag(), before, "the tag")
	assert.Equal(t, c.redeem("TEN").Body.Data.Replaced, []string{"C1", "C2", "C3", "C4", "C5"}, "replaced by one that combines with none")
}

func TestDiscounts_ACodeIsRemovedByItsName(t *testing.T) {
	s := newShop(t).combining()
	s.Catalog.PutCoupon(s.ID, &price.Coupon{Code: "c&ü 1", Kind: price.Fixed, Amount: 100, Combines: true})
	c := s.guest(t).fill("1×1")
	for _, code := range []string{"C1", "C2", "C3", "c&ü 1"} {
		c.redeem(code)
	}
	tag := c.tag()
	for _, query := range []string{"?code=", "?code=C1&code=C2", "?code=C1&code=C1", "?code=%20", "?code", "?code=%zz", "?code=C1;x", "?a=%&code=C1"} {
		c.refused(400, "invalid_parameter", "DELETE", "/cart/coupon"+query, "").names(t, "code")
	}
	c.ok("DELETE", "/cart/coupon?code=TEN", "")
	c.ok("DELETE", "/cart/items/9?code=C1&code=C2", "")
	assert.Equal(t, c.tag(), tag, "the tag")

	c.ok("DELETE", "/cart/coupon?code=c2", "", "Idempotency-Key", "one")
	c.wantCodes("C1 C3 c&ü 1", "C1 1, C3 1, c&ü 1 1")
	c.refused(409, "idempotency_conflict", "DELETE", "/cart/coupon?code=C1", "", "Idempotency-Key", "one")
	c.refused(409, "idempotency_conflict", "DELETE", "/cart/coupon", "", "Idempotency-Key", "one")
	c.redeem("C2")
	c.refused(400, "invalid_parameter", "DELETE", "/cart/coupon?code=100%", "")
	c.ok("DELETE", "/cart/coupon?code=c2", "", "Idempotency-Key", "one")
	c.ok("DELETE", "/cart/coupon?code="+url.QueryEscape("C&ü 1"), "")
	c.ok("POST", "/cart/ops", `{"ops":[{"op":"coupon","remove":"c1"},{"op":"coupon","remove":"NOT HELD"}]}`)
	c.wantCodes("C3 C2", "C2 1, C3 1")
	c.ok("DELETE", "/cart/coupon", "")
	c.wantCodes("", "")
}

func TestDiscounts_AnAutomaticOneNeedsNoCode(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		name := locale.Name{Own: "10 % from 3", Others: map[locale.Locale]string{locale.Ar: "10% عند 3"}}
		s.Catalog.PutCoupon(s.ID, &price.Coupon{Code: "AUTO", Name: name, Kind: price.Percent, Rate: 100_000, Automatic: true, Combines: true, MinQuantity: 3})
		c := s.guest(t)
		assert.Equal(t, len(c.cart().Offers), 0, "offers of an empty cart")
		c.fill("1×1")
		assert.Equal(t, c.wantCodes("", "").Offers, []offerBody{{Name: name.Own, Quantity: 2}}, "offers")
		a := c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"AUTO"}`)
		assert.Equal(t, a.Body.Data.Reason, "gone", "why its key is no code")

		c.add(`{"product_id":1,"qty":2}`)
		got := c.wantCodes("", "AUTO 14.85")
		only := got.Discounts[0]
		assert.That(t, only.Code == nil && only.Automatic && only.Name == name.Own && only.Lines[0].ItemID == "1" && only.Lines[0].Amount == 14.85 &&
			len(got.Offers) == 0 && got.Discount == 14.85 && got.Items[0].Discount == 14.85, "cart: %+v", got)
		c.redeem("PLUS")
		c.wantCodes("PLUS", "AUTO 14.85, PLUS 2")
		c.redeem("TEN")
		c.wantCodes("TEN", "TEN 14.85") // of equal ones, that with a code
		s.Catalog.PutCoupon(s.ID, &price.Coupon{Code: "AUTO", Name: name, Kind: price.Percent, Rate: 200_000, Automatic: true, MinQuantity: 3})
		got = c.wantCodes("TEN", "AUTO 29.7")
		assert.Equal(t, got.Coupons[0].Issue.Reason, "not_combined", "why the code takes nothing off")
		summary := c.ok("GET", "/cart/summary", "", "Accept-Language", "ar").Body.Data
		assert.That(t, summary.Discounts[0].Name == "10% عند 3" && summary.Discount == 29.7, "summary: %+v", summary.Discounts)

		known := c.ok("GET", "/cart", "")
		s.Catalog.DeleteCoupon(s.ID, "AUTO")
		c.ok("GET", "/cart", "", "If-None-Match", known.Header.Get("ETag"))
		c.wantCodes("TEN", "TEN 14.85")
	})
}

// An undo gives the codes back that the login brought.
func TestDiscounts_CodesMoveWithTheCart(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		s.combining()
		guest := s.guest(t).fill("1×1")
		for _, code := range []string{"C1", "C2", "C3"} {
			guest.redeem(code)
		}
		customer := s.customer(t, "1").fill("2×1")
		for _, code := range []string{"C4", "C2", "C5"} {
			customer.redeem(code)
		}
		here := guest.logIn("1")
		here.wantCodes("C4 C2 C5 C1 C3", "C1 1, C2 1, C3 1, C4 1, C5 1")
		here.ok("DELETE", "/cart/coupon?code=C3", "")
		back, _, _ := here.undo()
		here.wantCodes("C4 C2 C5", "C2 1, C4 1, C5 1")
		back.wantCodes("C1", "C1 1")

		// One that combines with none stays alone.
		back.redeem("TEN")
		back.logIn("1").wantCodes("C4 C2 C5", "C2 1, C4 1, C5 1")

		moved := s.guest(t)
		other := s.guest(t).fill("1×1")
		other.redeem("C6")
		moved.ok("POST", "/cart/handover/redeem", codeBody(other.handOver()), "Idempotency-Key", redeemerKey)
		moved.wantCodes("C6", "C6 1")
	})
}
