package server_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"commerce/cart"
	"commerce/deploy/assert"
)

func (c *shopper) handOver() string {
	c.t.Helper()
	return codeIn(c.t, c.ok("POST", "/cart/handover", ""))
}

type linkBody struct {
	Code, URL string
	ExpiresAt time.Time `json:"expires_at"`
}

func linkIn(t testing.TB, a answer) linkBody {
	t.Helper()
	return decode[struct{ Data linkBody }](t, a.Raw).Data
}

func codeIn(t testing.TB, a answer) string {
	t.Helper()
	return linkIn(t, a).Code
}

func codeBody(code string) string { return `{"code":"` + code + `"}` }

func TestHandover_MovesTheCartToAnotherDevice(t *testing.T) {
	s := newShop(t)
	phone := s.guest(t).fill("1×2 4.p41×1")
	code, token := phone.handOver(), phone.Token
	laptop := s.guest(t)
	a := laptop.ok("POST", "/cart/handover/redeem", codeBody(code), "Idempotency-Key", redeemerKey)
	assert.Equal(t, a.Body.Data.lines(), "1×2 4.p41×1", "the redeemed cart")
	assert.That(t, laptop.Token != token && a.Header.Get("X-Cart-Token") == laptop.Token && a.Header.Get("Idempotency-Replayed") == "",
		"the phone's token %s, the laptop's %s, in the header %v", token, laptop.Token, a.Header)
	laptop.fill("2×1")

	retry := s.guest(t)
	a = retry.ok("POST", "/cart/handover/redeem", codeBody(code), "Idempotency-Key", redeemerKey)
	assert.That(t, retry.Token == laptop.Token && a.Header.Get("Idempotency-Replayed") == "true" && a.Body.Data.lines() == "1×2 4.p41×1 2×1",
		"a retry: %v %s", a.Header, a.Raw)
	s.guest(t).refused(404, "not_found", "POST", "/cart/handover/redeem", codeBody(code), "Idempotency-Key", redeemerKey+"x").names(t, "code")
	phone.wantLines("")
	phone.refused(422, "cart_empty", "POST", "/cart/handover", "")
	assert.That(t, !strings.Contains(s.Log.String(), code), "the log has the code")
	for _, own := range []*shopper{s.guest(t).fill("2×1"), s.customer(t, "1001").fill("2×1")} { // who get no other token
		token := own.Token
		a := own.ok("POST", redeem, codeBody(s.guest(t).fill("1×2").handOver()), withKey(redeemerKey)...)
		assert.That(t, a.Body.Data.lines() == "2×1 1×2" && own.Token == token && a.Header.Get("X-Cart-Token") == "", "%v %s", a.Header, a.Raw)
	}
}

// Whoever has the code must not read what the shopper types afterwards, nor guess it from ids of lines.
func TestHandover_PreviewOfAChangedCartHasNoTexts(t *testing.T) {
	s := newShop(t)
	phone := s.guest(t)
	phone.add(`{"product_id":5,"fields":{"Account email":"first@example.com","Region":"us"}}`)
	preview := `{"code":"` + phone.handOver() + `","preview":true}`
	asOffered := s.guest(t).ok("POST", "/cart/handover/redeem", preview)
	assert.That(t, strings.Contains(string(asOffered.Raw), "first@example.com") && strings.Contains(string(asOffered.Raw), `"changed":false`),
		"as offered: %s", asOffered.Raw)

	typed := `{"product_id":5,"fields":{"Account email":"typed@example.com","Region":"sa"},"notice":"a typed notice","metadata":{"of-line":"typed by"}}`
	phone.add(typed)
	phone.ok("POST", "/cart/ops", `{"ops":[{"op":"metadata","metadata":{"of-cart":"typed for"}}]}`)
	s.alter(5, func(p *cart.Product) { p.Price += 500 })
	now, shown := phone.cart(), s.guest(t).ok("POST", "/cart/handover/redeem", preview)
	for _, secret := range []string{"typed", "first@", "Account email", "of-line", "of-cart", now.Items[0].ID, now.Items[1].ID} {
		assert.That(t, !strings.Contains(string(shown.Raw), secret), "shows %s: %s", secret, shown.Raw)
	}
	assert.That(t, strings.Contains(string(shown.Raw), `"changed":true`) && shown.Body.Data.Total == now.Total && shown.Body.Data.Count == 2,
		"shows %s, the cart is %+v", shown.Raw, now)
	ids := map[string]bool{}
	for _, item := range shown.Body.Data.Items {
		ids[item.ID] = true
	}
	assert.Equal(t, len(ids), 2, "different ids")
	for _, w := range shown.Body.Data.Warnings {
		assert.That(t, ids[*w.ItemID] && strings.Contains(string(w.Fix), *w.ItemID), "a warning of another line: %+v", w)
	}
	assert.Equal(t, len(shown.Body.Data.Warnings), 2, "warnings")
	moved := s.guest(t).ok("POST", "/cart/handover/redeem", strings.Replace(preview, "true", "false", 1), "Idempotency-Key", redeemerKey)
	assert.Equal(t, moved.Body.Data.lines(), now.lines(), "the redeemed cart")
}

// A used code gets the same response as one that never existed.
func TestHandover_CodesThatAreNotValidAreAlike(t *testing.T) {
	s, other := newShop(t), openShop(t, embeddedRedis(t))
	used, expired := s.guest(t).fill("1×1").handOver(), s.guest(t).fill("1×1").handOver()
	s.guest(t).ok("POST", "/cart/handover/redeem", codeBody(used), "Idempotency-Key", redeemerKey)
	s.pass(t, time.Hour)
	tampered := s.guest(t).fill("1×1").handOver()
	last := map[bool]string{true: "B", false: "A"}[strings.HasSuffix(tampered, "A")]
	answers := map[string]string{}
	ids := regexp.MustCompile(`"(request_id|timestamp)":("[^"]*"|\d+)`)
	for name, code := range map[string]string{
		"used": used, "expired": expired, "tampered": tampered[:len(tampered)-1] + last, "of another store": other.guest(t).fill("1×1").handOver(),
		"no code": "no code", "empty": "", "cut": tampered[:4], "not ASCII": "é",
	} {
		for _, more := range []string{"", `,"preview":true`} {
			a := s.guest(t).refused(404, "not_found", "POST", "/cart/handover/redeem", `{"code":"`+code+`"`+more+`}`, "Idempotency-Key", redeemerKey+"x")
			answers[ids.ReplaceAllString(string(a.Raw), "")] = name
		}
	}
	assert.That(t, len(answers) == 1, "different answers: %v", answers)
}
