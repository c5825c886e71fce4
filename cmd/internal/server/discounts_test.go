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

func TestDiscounts_ASixthCodeIsRefused(t *testing.T) {
	s := newShop(t).combining()
	c := s.guest(t).fill("1×1")
	for i := range cart.MaxCodes {
		c.redeem(fmt.Sprint("C", i+1))
	}
	a := c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"C6"}`)
	assert.Equal(t, a.Body.Data.Reason, "too_many", "reason")
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
	s := newShop(t).combining()
	guest, customer := s.guest(t).fill("1×1"), s.customer(t, "1").fill("2×1")
	guest.redeem("C1")
	customer.redeem("C2")
	here := guest.logIn("1")
	here.wantCodes("C2 C1", "C1 1, C2 1")
	back, _, _ := here.undo()
	here.wantCodes("C2", "C2 1")
	back.redeem("TEN") // which combines with none
	back.logIn("1").wantCodes("C2", "C2 1")
}
