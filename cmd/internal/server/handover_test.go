package server_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"commerce/cart"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

// redeemerKey is an Idempotency-Key that is long enough to redeem a code.
const redeemerKey = "0123456789abcdef012345"

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

func TestHandover_GivesACodeForAnHour(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), atExampleTime)
	phone := s.guest(t).fill("1×2")
	before := s.keys(t)
	a := phone.ok("POST", "/cart/handover", "")
	got := linkIn(t, a)
	assert.Equal(t, got.URL, "https://shop.example.com/cart#handover="+got.Code, "url")
	assert.That(t, got.ExpiresAt.Equal(exampleTime.Add(time.Hour)), "expires at %v", got.ExpiresAt)
	assert.That(t, a.Header.Get("X-Cart-Token") == "" && a.Body.Data.CartToken == nil, "shows a token: %s", a.Raw)
	assert.Equal(t, s.keys(t), before, "keys in Redis")
}

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
}

func TestHandover_GoesToTheRedeemersOwnCart(t *testing.T) {
	s := newShop(t)
	empty := s.visitor(t)
	for name, c := range map[string]struct {
		redeemer *shopper
		want     string
		keeps    bool // the redeemer's token
	}{
		"a customer":                 {s.customer(t, "1001").fill("1×1 2×1"), "1×3 2×1", true},
		"a customer of both tokens":  {s.guest(t).fill("7×2").logIn("1002"), "7×2 1×2", true},
		"a guest":                    {s.guest(t).fill("2×1 1×1"), "2×1 1×3", true},
		"a guest with an empty cart": {empty, "1×2", false},
	} {
		phone := s.guest(t).fill("1×2")
		token := c.redeemer.Token
		a := c.redeemer.ok("POST", "/cart/handover/redeem", codeBody(phone.handOver()), "Idempotency-Key", redeemerKey)
		assert.Equal(t, a.Body.Data.lines(), c.want, "%s: cart", name)
		assert.That(t, (c.redeemer.Token == token) == c.keeps && (a.Header.Get("X-Cart-Token") == "") == c.keeps && c.redeemer.Token != phone.Token,
			"%s: token %q, then %q: %v", name, token, c.redeemer.Token, a.Header)
		c.redeemer.wantLines(c.want)
		phone.wantLines("")
	}
}

func TestHandover_PreviewChangesNothing(t *testing.T) {
	s := newShop(t)
	phone := s.guest(t).fill("1×2")
	code, version := phone.handOver(), phone.cart().Version
	before := len(s.keys(t))
	body := `{"code":"` + code + `","preview":true,"keep_agent":null}`
	for _, c := range []*shopper{s.guest(t), s.customer(t, "1001"), s.visitor(t)} {
		token := c.Token
		a := c.ok("POST", "/cart/handover/redeem", body)
		assert.That(t, a.Body.Data.lines() == "1×2" && a.Body.Data.CartToken == nil && a.Header.Get("X-Cart-Token") == "" && c.Token == token,
			"shows %v %s", a.Header, a.Raw)
		c.wantLines("")
	}
	assert.That(t, len(s.keys(t)) == before && phone.wantLines("1×2").Version == version, "the preview has changed something: %q", s.keys(t))
	s.guest(t).ok("POST", "/cart/handover/redeem", codeBody(code), "Idempotency-Key", redeemerKey)
	s.guest(t).refused(404, "not_found", "POST", "/cart/handover/redeem", body)
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

func TestHandover_RefusesByMember(t *testing.T) {
	s := newShop(t)
	code := s.guest(t).fill("1×1").handOver()
	const offer, redeem = "/cart/handover", "/cart/handover/redeem"
	guest, customer := s.guest(t), s.customer(t, "1001").fill("1×1")
	both := s.guest(t).fill("2×1").logIn("1002")
	intruder := &shopper{t: t, shop: s, JWT: "x.y.z"}
	for _, c := range []struct {
		who        *shopper
		path, body string
		key        string
		status     int
		code       string
		members    []string
	}{
		{guest, offer, "", "", 422, "cart_empty", nil},
		{customer, offer, "", "", 422, "guest_only", nil},
		{both, offer, "", "", 422, "guest_only", nil},
		{intruder, offer, "[]", "", 401, "unauthenticated", []string{"Authorization"}},
		{guest, offer, "[]", "", 400, "malformed_json", nil},
		{guest, offer, "{", "", 400, "malformed_json", nil},
		{guest, redeem, "{", "short", 400, "malformed_json", nil},
		{guest, redeem, "", redeemerKey, 400, "malformed_json", nil},
		{intruder, redeem, "{", redeemerKey, 401, "unauthenticated", []string{"Authorization"}},
		{guest, redeem, `{}`, "", 422, "validation_failed", []string{"code"}},
		{guest, redeem, `{"code":null}`, redeemerKey, 422, "validation_failed", []string{"code"}},
		{guest, redeem, `{"code":7,"preview":"yes","keep_agent":1}`, redeemerKey, 422, "validation_failed", []string{"code", "keep_agent", "preview"}},
		{guest, redeem, codeBody(code), "", 400, "invalid_parameter", []string{"Idempotency-Key"}},
		{guest, redeem, codeBody(code), redeemerKey[1:], 400, "invalid_parameter", []string{"Idempotency-Key"}},
		{guest, redeem, codeBody(code), "00000000-0000-0000-0000-000000000000", 400, "invalid_parameter", []string{"Idempotency-Key"}},
		{guest, redeem, `{"code":"` + code + `","preview":true}`, "not visible é", 400, "invalid_parameter", []string{"Idempotency-Key"}},
	} {
		var headers []string
		if c.key != "" {
			headers = []string{"Idempotency-Key", c.key}
		}
		a := c.who.refused(c.status, c.code, "POST", c.path, c.body, headers...).names(t, c.members...)
		assert.That(t, a.Header.Get("X-Cart-Token") == "", "%s %s: issues a token", c.path, c.body)
		assert.That(t, (a.Body.Data.Merge != nil) == (c.who == both), "%s %s: %s", c.path, c.body, a.Raw)
	}
	guest.refused(415, "unsupported_media_type", "POST", offer, "{}", "Content-Type", "text/plain")
	guest.refused(405, "method_not_allowed", "GET", redeem, "")
	s.guest(t).ok("POST", redeem, codeBody(code), "Idempotency-Key", redeemerKey) // no refusal has used it up
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

func TestHandover_IsNotThereWithoutAKey(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.Carts.Keys = nil })
	c := s.guest(t).fill("1×1")
	for _, path := range []string{"/cart/handover", "/cart/handover/redeem"} {
		c.refused(404, "not_found", "POST", path, `{"code":"x"}`, "Idempotency-Key", redeemerKey)
		response, _ := exchange(t, c.request("GET", path, nil)) // the document has this path, so a 404 is not one of GET
		assert.Equal(t, response.StatusCode, http.StatusNotFound, "GET %s", path)
	}
	c.wantLines("1×1")
}

// A code is sealed without Redis, but the cart is not read without it.
func TestHandover_WithoutRedisIsUnavailable(t *testing.T) {
	t.Parallel()
	redis := miniredis.RunT(t)
	s := openShop(t, "redis://"+redis.Addr(), hasty)
	phone, redeemers := s.guest(t).fill("1×1"), []*shopper{s.guest(t), s.customer(t, "1001"), s.visitor(t)}
	code := phone.handOver()
	redis.Close()
	unavailable := func(c *shopper, path, body string) {
		t.Helper()
		a := c.refused(503, "unavailable", "POST", path, body, "Idempotency-Key", redeemerKey)
		assert.That(t, a.Header.Get("Retry-After") != "", "no Retry-After")
	}
	unavailable(phone, "/cart/handover", "")
	for _, c := range redeemers {
		unavailable(c, "/cart/handover/redeem", codeBody(code))
		unavailable(c, "/cart/handover/redeem", `{"code":"`+code+`","preview":true}`)
	}
}
