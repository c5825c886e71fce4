package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"commerce/auth"
	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

const linksTo = "https://shop.example.com/cart"

// open opens a link, and returns the page that it leads to and the code for it.
func (c *shopper) open(link string, headers ...string) (page, code string) {
	c.t.Helper()
	a := c.send("GET", "/ucp/"+c.shop.Key+"/buy/"+link, "", headers...)
	assert.Require(c.t, a.Status == 303 && len(a.Raw) == 0, "%s: %d %s", link, a.Status, a.Raw)
	assert.Equal(c.t, a.Header.Get("Cache-Control")+" "+a.Header.Get("Referrer-Policy"), "no-store no-referrer", "headers")
	page, code, _ = strings.Cut(a.Header.Get("Location"), "#handover=")
	return page, code
}

func TestPermalink_FillsTheCartOfWhoeverRedeemsItsCode(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		before := s.keys(t)
		page, code := s.guest(t).open("1:2,4.p41:1,~Mg:1,5:1,404:1?discounts/codes/1=NONE&discounts/codes/0=TEN&context/address_country=de")
		assert.Equal(t, page, linksTo, "page")
		preview := s.guest(t).ok("POST", redeem, `{"code":"`+code+`","preview":true}`)
		assert.Equal(t, preview.Body.Data.lines(), "1×2 4.p41×1 2×1 5×1 404×1", "the preview")
		assert.That(t, preview.Body.Data.Discount == 0 && preview.Body.Data.CartToken == nil, "a preview judges codes: %s", preview.Raw)
		assert.Equal(t, s.keys(t), before, "keys in Redis before the redemption")

		laptop := s.guest(t)
		a := laptop.ok("POST", redeem, codeBody(code), withKey(redeemerKey)...)
		const items = "1×2 4.p41×1 2×1"
		assert.Equal(t, a.Body.Data.lines(), items, "the redeemed cart")
		assert.Equal(t, a.Body.Data.Buyer.String(), "DE by agent", "the buyer's country")
		assert.That(t, a.Body.Data.Discount == 12.9, "discount of TEN: %v", a.Body.Data.Discount)
		var outcomes []string
		for _, o := range decode[struct {
			Data struct{ Outcomes []struct{ Code string } }
		}](t, a.Raw).Data.Outcomes {
			outcomes = append(outcomes, o.Code)
		}
		assert.Equal(t, outcomes, []string{"", "", "", "field_missing", "product_not_found", "", "coupon_invalid", ""}, "outcomes")
		retry := s.guest(t)
		a = retry.ok("POST", redeem, codeBody(code), withKey(redeemerKey)...)
		assert.That(t, a.Body.Data.lines() == items && retry.Token == laptop.Token && a.Header.Get("Idempotency-Replayed") == "true", "a retry: %v %s", a.Header, a.Raw)
		loggedIn := s.guest(t).logIn("1001")
		assert.Equal(t, loggedIn.ok("POST", redeem, codeBody(code), withKey(redeemerKey)...).Body.Data.lines(), items, "a retry after a login")
		loggedIn.wantLines(items)
		for _, body := range []string{codeBody(code), `{"code":"` + code + `","preview":true}`} {
			s.guest(t).refused(404, "not_found", "POST", redeem, body, withKey(redeemerKey+"x")...).names(t, "code")
		}
		s.wantTTLs(t)
	})
}

func TestPermalink_AddsToACartThatIsNotEmpty(t *testing.T) {
	s := newShop(t)
	for _, own := range []*shopper{s.guest(t).fill("2×2"), s.customer(t, "1001").fill("2×2")} {
		token := own.Token
		own.redeem("FIVE")
		_, code := s.guest(t).open("1:1?discounts/codes/0=TEN")
		stale := append(withKey(redeemerKey), "If-Match", `"x.1-y"`)
		own.refused(412, "version_mismatch", "POST", redeem, codeBody(code), stale...)
		for range 2 {
			a := own.ok("POST", redeem, codeBody(code), withKey(redeemerKey)...)
			assert.That(t, a.Body.Data.lines() == "2×2 1×1" && own.Token == token, "%s", a.Raw)
			assert.Equal(t, a.Body.Data.Coupon.Code, "FIVE", "the code that does not combine with that of the link")
		}
		own.ok("DELETE", "/cart/clear", "")
		retry := own.ok("POST", redeem, codeBody(code), withKey(redeemerKey)...)
		assert.That(t, retry.Body.Data.lines() == "" && own.Token == token, "a retry after the cart was emptied: %s", retry.Raw)
	}
	for _, codes := range []string{"discounts/codes/0=", "discounts/codes/0", "/discounts/codes/0=&discounts/codes/1=FIVE"} {
		own := s.guest(t).fill("2×2")
		own.redeem("FIVE")
		_, code := s.guest(t).open("1:1?" + codes)
		a := own.ok("POST", redeem, codeBody(code), withKey(redeemerKey)...)
		assert.That(t, a.Body.Data.lines() == "2×2 1×1" && a.Body.Data.Coupon.Code == "FIVE", "an empty code: %s", a.Raw)
	}
	_, expired := s.guest(t).open("1:1")
	s.pass(t, time.Hour)
	s.guest(t).refused(404, "not_found", "POST", redeem, codeBody(expired), withKey(redeemerKey)...)
}

// Each redeemed code stores a mark, whoever redeems it.
func TestPermalink_CountsEachRedemptionOnceAsANewCart(t *testing.T) {
	s := limitedShop(t, creating(2))
	c := s.guest(t)
	code := func() string {
		_, code := s.guest(t).open("1:1", elsewhere...)
		return code
	}
	first := code()
	for _, code := range []string{first, code()} {
		c.ok("POST", redeem, codeBody(code), append(from, withKey(redeemerKey)...)...)
	}
	before := s.keys(t)
	retry := s.guest(t)
	retry.ok("POST", redeem, codeBody(first), append(from, withKey(redeemerKey)...)...)
	assert.Equal(t, retry.Token, c.Token, "the token that a retry gets, which creates nothing")
	for _, redeemer := range []*shopper{c, s.guest(t), s.customer(t, "1001")} {
		redeemer.refused(429, "rate_limited", "POST", redeem, codeBody(code()), append(from, withKey(redeemerKey)...)...)
	}
	assert.Equal(t, c.send("GET", "/ucp/"+s.Key+"/buy/1:1", "", from...).Status, 429, "status of a link")
	assert.Equal(t, s.keys(t), before, "keys in Redis after these refusals")
	c.wantLines("1×2")
}

func TestPermalink_ReadsURLsAsTheProtocolSays(t *testing.T) {
	s := newShop(t)
	c := s.guest(t)
	for link, want := range map[string]string{
		"1:1?utm_source=a%20b&color=x&color=y&continue_to=/a&continue_to=/b":             "?color=x&color=y&utm_source=a+b",
		"1:1?access_token=a&API_KEY=b&code=c&keyword=d&session=e":                        "",
		"1:1?buyer/email=a%40b&/line_items/0/quantity=9&attribution/x=1&ucp=1&id=":       "",
		"~MQ:1?%2Fbuyer/email=a&buyer/unknown=b":                                         "",
		"1:1?utm_content=a;b&c;d":                                                        "?c%3Bd=&utm_content=a%3Bb",
		"1%3A2%2C7:2":                                                                    "",
		"1:9007199254740991,x:1," + strings.TrimSuffix(strings.Repeat("1:1,", 400), ","): "",
	} {
		page, code := c.open(link)
		assert.That(t, page == linksTo+want && code != "", "%s leads to %s with %q", link, page, code)
	}
	for _, link := range []string{
		"1", "1:", ":1", "1:0", "1:01", "1:-1", "1:+1", "1:1.5", "1:9007199254740992", "1:x", "1:1,", ",1:1", "1:1,,1:1", "1:1:1", "a b:1", "%C3%A9:1", "a%2Fb:1",
		"~:1", "~M:1", "~MR:1", "~MQ==:1", "~MQ%0A:1", "~_w:1", "~AA:1", "1:1?a=%zz", "1:1?a=%00", "1:1?a=%0A", "1:1?%ff=a",
		"1:1?buyer/email=a&buyer/email=b", "1:1?buyer/email=a&/buyer/email=b", "1:1?a=" + strings.Repeat("a", 8<<10), strings.Repeat("1:1,", 500) + "1:1",
	} {
		a := c.send("GET", "/ucp/"+s.Key+"/buy/"+link, "")
		fault := decode[struct{ Code, Content string }](t, a.Raw)
		assert.That(t, a.Status == 400 && fault.Code == "invalid_parameter" && fault.Content != "", "%.50s: %d %s", link, a.Status, a.Raw)
		page, code := c.open(link, "Accept", "text/html,*/*;q=0.8")
		assert.That(t, page == linksTo && code == "", "%.50s leads a browser to %s with %q", link, page, code)
	}
	c.Token = ""
	for _, other := range []string{"/ucp/none/buy/1:1", "/ucp/" + s.Key + "/buy/", "/ucp/" + s.Key + "/buy"} {
		assert.Equal(t, c.send("GET", other, "").Status, 404, "status of %s", other)
	}
}

func TestPermalink_NeedsAPage(t *testing.T) {
	pageless := store.Store{ID: nextStore(), PublicKeys: []string{fmt.Sprint("pk_pageless_", nextStore())}, Host: "pageless.example.com", Currency: "USD", Locale: "en"}
	paged := pageless
	paged.ID, paged.Host, paged.CartURL = nextStore(), "paged.example.com", "https://shop.example.com/?page=cart"
	paged.PublicKeys = []string{fmt.Sprint("pk_paged_", nextStore())}
	s := newShop(t, func(p *server.Parts) { p.Stores = auth.NewMemoryStores(money.Known, &pageless, &paged) })
	for of, want := range map[*store.Store]string{&pageless: "", &paged: "https://shop.example.com/?page=cart&x=1"} {
		a := s.guest(t).send("GET", "/ucp/"+of.PublicKeys[0]+"/buy/1:1?page=other&x=1", "")
		page, _, _ := strings.Cut(a.Header.Get("Location"), "#")
		assert.Equal(t, page, want, "page of %+v", of)
		assert.Equal(t, a.Status, map[bool]int{true: 404, false: 303}[want == ""], "status")
	}
}
