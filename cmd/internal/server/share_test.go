package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"pgregory.net/rapid"

	"commerce/auth"
	"commerce/cart"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func (c *shopper) share(headers ...string) string {
	c.t.Helper()
	return codeIn(c.t, c.ok("POST", "/cart/share", "", headers...))
}

func (c *shopper) shared(code string) cartBody {
	c.t.Helper()
	a := c.ok("GET", "/cart/share/"+code, "")
	assert.That(c.t, a.Body.Data.CartToken == nil && a.Header.Get("X-Cart-Token") == "" && a.Body.Data.Version == 0, "the share shows a token or a version: %s", a.Raw)
	return a.Body.Data
}

func addsShared(code string) string {
	return fmt.Sprintf(`{"mode":"each","ops":[{"op":"add_shared","code":%q}]}`, code)
}

func TestShare_ShowsTheLinesAtCurrentPrices(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		c := s.customer(t, "1001").fill("1×2 4.p41×1")
		c.account("secret@example.com", "us")
		a := c.ok("POST", "/cart/share", "{}", "Idempotency-Key", "k")
		got := linkIn(t, a)
		assert.Equal(t, got.URL, "https://shop.example.com/cart#share="+got.Code, "url")
		assert.That(t, time.Until(got.ExpiresAt.Add(-720*time.Hour)).Abs() < time.Minute && a.Header.Get("Idempotency-Replayed") == "", "%v", got)
		c.ok("DELETE", "/cart/clear", "")
		again := c.ok("POST", "/cart/share", "", "Idempotency-Key", "k")
		assert.That(t, again.Header.Get("Idempotency-Replayed") == "true" && codeIn(t, again) == got.Code, "a repeat: %v %s", again.Header, again.Raw)

		s.alter(1, func(p *cart.Product) { p.Price += 101 })
		guest := s.guest(t)
		shared := guest.shared(got.Code)
		region := cart.NewLineID(5, 0, []cart.FieldValue{{Name: "Region", Value: "us"}})
		assert.Equal(t, shared.lines(), "1×2 4.p41×1 "+string(region)+"×1", "the share")
		assert.That(t, shared.Items[0].UnitPrice == 50.51 && shared.Items[0].AddedPrice == 50.51 && len(shared.Warnings) == 0, "prices: %+v", shared)
		assert.That(t, shared.Items[2].Issue.Code == "field_missing" && *shared.ExpiresAt == got.ExpiresAt.Format(time.RFC3339), "%+v", shared)
		path := "/cart/share/" + got.Code
		tag := guest.ok("GET", path, "").Header.Get("ETag")
		assert.Equal(t, guest.send("GET", path, "", "If-None-Match", tag).Status, http.StatusNotModified, "a copy that is current")
		assert.Equal(t, guest.send("HEAD", path, "").Status, http.StatusOK, "HEAD")
		guest.refused(400, "invalid_parameter", "GET", path, "", "If-None-Match", "x")
		assert.That(t, !strings.Contains(s.Log.String(), got.Code), "the log has the code")
		s.wantTTLs(t)
	})
}

func TestShare_AddsEachLine(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		c := s.guest(t).fill("1×2 2×3 4.p42×1")
		c.account("secret@example.com", "us")
		code := c.share()
		guest := s.guest(t).fill("2×1")
		a := guest.ok("POST", "/cart/ops", addsShared(code), "Idempotency-Key", "k")
		outcomes := func(b cartBody) string {
			var words []string
			for i, o := range b.Outcomes {
				words = append(words, b.itemIDs()[i]+o.Code)
			}
			return strings.Join(words, " ")
		}
		assert.That(t, outcomes(a.Body.Data) == "1 insufficient_stock 4.p42 field_missing" && a.Body.Data.lines() == "2×1 1×2 4.p42×1" && a.Body.Data.Version == 2,
			"added: %s", a.Raw)
		assert.Equal(t, slices.Sorted(maps.Keys(a.Body.Data.Outcomes[3].Errors)), []string{"fields.Account email"}, "the fourth names")

		guest.ok("DELETE", "/cart/items/1", "")
		c.ok("DELETE", "/cart/share/"+code, "")
		again := guest.ok("POST", "/cart/ops", addsShared(code), "Idempotency-Key", "k")
		assert.That(t, again.replayed(t) && outcomes(again.Body.Data) == " insufficient_stock 4.p42 field_missing" && again.Body.Data.lines() == "2×1 4.p42×1",
			"a repeat after the share is gone: %s", again.Raw)
		for _, keyed := range [][]string{nil, {"Idempotency-Key", "new"}, {"X-Timestamp", "1"}} {
			refused := guest.refused(404, "not_found", "POST", "/cart/ops", addsShared(code), keyed...).names(t, "ops.0.code")
			assert.That(t, *refused.Body.Data.Op == 0, "op: %s", refused.Raw)
		}
		guest.refused(412, "version_mismatch", "POST", "/cart/ops", addsShared(code), "If-Match", `"x.1-y"`)
		guest.refused(409, "idempotency_conflict", "POST", "/cart/ops", addsShared(code+"x"), "Idempotency-Key", "k")

		code = s.guest(t).fill("1×1").share()
		stamped := s.guest(t)
		stamped.ok("POST", "/cart/ops", addsShared(code), "X-Timestamp", "1")
		s.pass(t, 2*time.Second)
		assert.That(t, stamped.ok("POST", "/cart/ops", addsShared(code), "X-Timestamp", "1").replayed(t), "a stamped repeat was applied")
		stamped.wantLines("1×1")
	})
}

// A merge can make a cart that has more lines than a list has operations.
func TestShare_AddsAsManyLinesAsACartHas(t *testing.T) {
	s := newShop(t)
	s.sell(100)
	c := s.guest(t)
	for i := range 100 {
		c.add(fmt.Sprintf(`{"product_id":%d}`, 101+i))
	}
	b := s.guest(t).ok("POST", "/cart/ops", addsShared(c.share())).Body.Data
	assert.That(t, b.Count == 100 && len(b.Items) == 100 && len(b.Outcomes) == 100 && b.Version == 1, "%d lines, %d outcomes", len(b.Items), len(b.Outcomes))
}

func TestShare_RefusesByMember(t *testing.T) {
	t.Parallel()
	url := embeddedRedis(t)
	s := openShop(t, url)
	owner := s.guest(t).fill("1×1")
	code := owner.share()
	guest, both := s.guest(t), s.guest(t).fill("2×1").logIn("1002")
	intruder := &shopper{t: t, shop: s, JWT: "x.y.z"}
	add := `{"op":"add_shared","code":"` + code + `"}`
	for _, c := range []struct {
		who                *shopper
		method, path, body string
		headers            []string
		status             int
		code               string
		members            []string
	}{
		{guest, "POST", "/cart/share", "", nil, 422, "cart_empty", nil},
		{s.visitor(t), "POST", "/cart/share", "", nil, 422, "cart_empty", nil},
		{owner, "POST", "/cart/share", "[]", nil, 400, "malformed_json", nil},
		{owner, "POST", "/cart/share", "{", nil, 400, "malformed_json", nil},
		{owner, "POST", "/cart/share", "{}", []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", []string{"Content-Type"}},
		{owner, "POST", "/cart/share", "", []string{"Idempotency-Key", "é"}, 400, "invalid_parameter", []string{"Idempotency-Key"}},
		{intruder, "POST", "/cart/share", "", nil, 401, "unauthenticated", []string{"Authorization"}},
		{intruder, "GET", "/cart/share/" + code, "", nil, 401, "unauthenticated", []string{"Authorization"}},
		{guest, "GET", "/cart/share/" + code + "A", "", nil, 404, "not_found", []string{"code"}},
		{guest, "GET", "/cart/share/%C3%A9", "", nil, 404, "not_found", []string{"code"}},
		{guest, "GET", "/cart/share/" + strings.Repeat("A", 4000), "", nil, 404, "not_found", []string{"code"}},
		{guest, "DELETE", "/cart/share/" + code, "", nil, 404, "not_found", []string{"code"}},
		{s.customer(t, "1001"), "DELETE", "/cart/share/" + code, "", nil, 404, "not_found", []string{"code"}},
		{both, "DELETE", "/cart/share/" + code, "", nil, 404, "not_found", []string{"code"}},
		{guest, "POST", "/cart/share/" + code, "", nil, 405, "method_not_allowed", nil},
		{guest, "POST", "/cart/ops", `{"mode":"each","ops":[{"op":"add_shared"}]}`, nil, 422, "validation_failed", []string{"ops.0.code"}},
		{guest, "POST", "/cart/ops", `{"mode":"each","ops":[{"op":"add_shared","code":7}]}`, nil, 422, "validation_failed", []string{"ops.0.code"}},
		{guest, "POST", "/cart/ops", `{"ops":[` + add + `]}`, nil, 422, "validation_failed", []string{"mode"}},
		{guest, "POST", "/cart/ops", `{"mode":"each","ops":[` + add + `,{"op":"clear"}]}`, nil, 422, "validation_failed", []string{"ops.0.op"}},
		{guest, "POST", "/cart/ops", `{"mode":"all","ops":[{"op":"clear"},` + add + `,` + add + `]}`, nil, 422, "validation_failed", []string{"mode", "ops.1.op", "ops.2.op"}},
		{guest, "POST", "/cart/ops", addsShared(""), nil, 404, "not_found", []string{"ops.0.code"}},
	} {
		a := c.who.refused(c.status, c.code, c.method, c.path, c.body, c.headers...).names(t, c.members...)
		assert.That(t, len(a.Body.Errors["mode"]) < 2, "%s: names the mode twice", c.body)
		assert.That(t, a.Header.Get("X-Cart-Token") == "", "%s %s: issues a token", c.path, c.body)
		assert.That(t, (a.Body.Data.Merge != nil) == (c.who == both), "%s %s: %s", c.path, c.body, a.Raw)
	}
	owner.ok("DELETE", "/cart/share/"+code, "not read", "Content-Type", "text/plain")
	for range 10 {
		code = owner.share()
	}
	owner.refused(422, "validation_failed", "POST", "/cart/share", "").names(t)
	openShop(t, url).guest(t).refused(404, "not_found", "GET", "/cart/share/"+code, "") // of another store
}

// Every call with a share merges first, like every other call. What others see has no report.
func TestShare_MergesFirst(t *testing.T) {
	s := newShop(t)
	friend := s.guest(t).fill("7×2").share()
	for i, call := range []func(*shopper) int{
		func(c *shopper) int { return len(c.shared(friend).Items) },
		func(c *shopper) int { return len(s.guest(t).shared(c.share()).Items) },
		func(c *shopper) int { return len(c.ok("POST", "/cart/ops", addsShared(friend)).Body.Data.Items) },
	} {
		c := s.guest(t).fill("1×1").logIn(fmt.Sprint("customer-", i))
		assert.Equal(t, call(c), 1+i/2, "lines of call %d", i)
		c.withoutToken().wantLines([]string{"1×1", "1×1", "1×1 7×2"}[i])
	}
	c := s.guest(t).fill("1×1").logIn("customer-head")
	c.send("HEAD", "/cart/share/"+friend, "")
	c.withoutToken().wantLines("")
}

func TestShare_WrongCodesAreLimitedForEachAddress(t *testing.T) {
	onEachKind(t, func(t *testing.T, url string) {
		network := fmt.Sprintf("2001:db8:%x:%x:", nextStore()>>16&0xffff, nextStore()&0xffff)
		instances := []*shop{openShop(t, url, dialed(t, url), limited), openShop(t, url, dialed(t, url), limited)}
		from := []string{"X-Forwarded-For", network + ":1"}
		owner := instances[0].guest(t)
		owner.add(addOne, from...)
		code := owner.share(from...)
		for i := range 40 {
			c := instances[i%2].guest(t)
			instances[0].guest(t).ok("GET", "/cart/share/"+code, "", from...) // a right one does not count, nor one wrong code twice
			c.refused(404, "not_found", "GET", "/cart/share/"+code+"0", "", from...)
			switch i % 3 {
			case 0:
				c.refused(404, "not_found", "GET", fmt.Sprint("/cart/share/", code, i), "", from...)
			case 1:
				c.refused(404, "not_found", "DELETE", fmt.Sprint("/cart/share/guess", i), "", from...)
			case 2:
				c.refused(404, "not_found", "POST", "/cart/ops", addsShared(fmt.Sprint("guess ", i)), from...)
			}
		}
		c, neighbor := instances[0].guest(t), []string{"X-Forwarded-For", network + "ffff::9"} // the same subscriber
		c.refused(429, "rate_limited", "GET", "/cart/share/"+code, "", neighbor...).wantWait(t, 300, 600)
		owner.refused(429, "rate_limited", "DELETE", "/cart/share/"+code, "", neighbor...)
		c.refused(429, "rate_limited", "POST", "/cart/ops", addsShared(code), neighbor...)
		elsewhere := []string{"X-Forwarded-For", "192.0.2.77"}
		keyed := append([]string{"Idempotency-Key", "k"}, elsewhere...)
		c.ok("POST", "/cart/ops", addsShared(code), keyed...)
		assert.That(t, c.ok("POST", "/cart/ops", addsShared(code), append([]string{"Idempotency-Key", "k"}, neighbor...)...).replayed(t), "a repeat was judged")
		c.ok("GET", "/cart/share/"+code, "", elsewhere...)
	})
}

func TestShare_IsNotThereWithoutAKey(t *testing.T) {
	t.Parallel()
	url := embeddedRedis(t)
	s := openShop(t, url, func(p *server.Parts) { p.Carts.Keys = nil })
	c := s.guest(t).fill("1×1")
	c.refused(404, "not_found", "POST", "/cart/share", "")
	c.refused(404, "not_found", "GET", "/cart/share/x", "")
	c.refused(404, "not_found", "DELETE", "/cart/share/x", "")
	c.refused(404, "not_found", "POST", "/cart/ops", addsShared("x")).names(t, "ops.0.code")
	c.wantLines("1×1")
}

func TestShare_WithoutRedisIsUnavailable(t *testing.T) {
	t.Parallel()
	redis := miniredis.RunT(t)
	s := openShop(t, "redis://"+redis.Addr(), hasty)
	c := s.guest(t)
	c.Token = "made-up-cart-token-of-a-guest"
	code := handoverKeys.Name() + "-code-of-26-characters"
	redis.Close()
	for _, who := range []*shopper{c, c.logIn("1001"), s.guest(t)} {
		for _, call := range [][3]string{{"POST", "/cart/share"}, {"GET", "/cart/share/" + code}, {"DELETE", "/cart/share/" + code}, {"POST", "/cart/ops", addsShared(code)}} {
			if who.Token == "" && call[1] == "/cart/share" || who.Token == "" && call[0] == "DELETE" {
				continue // it has no cart to read
			}
			a := who.refused(503, "unavailable", call[0], call[1], call[2], "Idempotency-Key", "k")
			assert.That(t, a.Header.Get("Retry-After") != "", "%s %s: no Retry-After", call[0], call[1])
		}
	}
}

// Whatever a cart has, its share stores and shows none of the shopper's texts, and not whose cart it is.
func TestShare_StoresNothingPersonal(t *testing.T) {
	t.Parallel()
	property := func(t *testing.T, s *shop) {
		s.Catalog.PutCoupon(s.ID, &cart.Coupon{Code: "PLANTED", Kind: cart.Percent, Rate: 100_000})
		rapid.Check(t, func(r *rapid.T) {
			n := nextStore()
			c := s.customer(t, fmt.Sprint("planted-customer-", n))
			if rapid.Bool().Draw(r, "guest") {
				c = &shopper{t: t, shop: s, Token: fmt.Sprint("planted-token-of-a-guest-", n)}
			}
			for i := range rapid.IntRange(1, 4).Draw(r, "lines") {
				line := map[string]any{"product_id": rapid.SampledFrom([]int{1, 4, 5}).Draw(r, "product"), "qty": rapid.IntRange(1, 9).Draw(r, "quantity")}
				switch line["product_id"] {
				case 4:
					line["subscription_plan"] = rapid.SampledFrom([]int{41, 42}).Draw(r, "plan")
				case 5:
					line["fields"] = map[string]string{"Account email": fmt.Sprint("planted", i, "@example.com"), "Region": rapid.SampledFrom([]string{"", "us", "sa"}).Draw(r, "region")}
				}
				if rapid.Bool().Draw(r, "notice") {
					line["notice"] = fmt.Sprint("planted notice ", i)
				}
				if rapid.Bool().Draw(r, "metadata") {
					line["metadata"] = map[string]string{"planted-name": "planted value"}
				}
				c.add(string(assert.Must(json.Marshal(line))(t)))
			}
			if rapid.Bool().Draw(r, "coupon") {
				c.redeem("PLANTED")
			}
			c.ok("POST", "/cart/ops", `{"ops":[{"op":"metadata","metadata":{"planted-name":"planted value"}}]}`)
			before := s.keys(t)
			code := c.share()
			text := string(s.guest(t).ok("GET", "/cart/share/"+code, "").Raw)
			for _, key := range s.keys(t) {
				if strings.Contains(key, ":s:") && !slices.Contains(before, key) {
					text += key + fmt.Sprint(s.Redis.HGetAll(t.Context(), key).Val())
				}
			}
			if strings.Contains(strings.ToLower(text), "planted") || strings.Contains(text, auth.CartToken(c.Token).Digest()) || !strings.Contains(text, ":s:") {
				r.Fatalf("the share of %q and %q: %s", c.ID, c.Token, text)
			}
		})
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		property(t, openShop(t, embeddedRedis(t)))
	})
	t.Run("as serve", func(t *testing.T) {
		slow(t)
		property(t, openShopAs(t, ephemeral.Redis(t), true))
	})
}
