package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/cart"
	"commerce/deploy/assert"
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
	s := newShop(t)
	c := s.guest(t).fill("1×2 4.p41×1")
	c.account("secret@example.com", "us")
	c = c.logIn("1001") // the share merges first
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
