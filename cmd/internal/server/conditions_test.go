package server_test

import (
	"strings"
	"testing"
	"time"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/money"
)

func TestETag_ChangesWithTheShownCart(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		tag := func(headers ...string) string { return c.tag(headers...) }
		version := func(tag string) string { before, _, _ := strings.Cut(tag, "-"); return before }
		assert(t, s.guest(t).tag() != "", "a new cart has no ETag")
		added := c.add(`{"product_id":1}`).Header.Get("ETag")
		first := tag()
		assert(t, added == first && first == s.with(t, c).tag(), "one cart, two tags: %s and %s", added, first)
		before := c.cart().ExpiresAt
		s.Clock.Forward(time.Hour)
		after := c.cart().ExpiresAt
		assert(t, *before != *after && tag() == first, "the tag changes with expires_at")
		arabic := tag("Accept-Language", "ar")
		s.Catalog.Put(s.ID, &cart.Product{ID: 1, Name: locale.Named("Game credit"), Active: true, MinQuantity: 1, Price: 9900})
		dearer := tag()
		c.add(`{"product_id":2}`)
		grown := tag()
		assert(t, first != arabic && first != dearer && dearer != grown && arabic != dearer, "%s, in Arabic %s, dearer %s, grown %s", first, arabic, dearer, grown)
		assert(t, version(first) == version(arabic) && version(first) == version(dearer) && version(dearer) != version(grown), "%s, in Arabic %s, dearer %s, grown %s", first, arabic, dearer, grown)
		other := s.guest(t).fill("1×1")
		same := other.add(`{"product_id":2}`).Header.Get("ETag")
		assert(t, version(same) != version(grown), "two carts at one version: %s", same)
	})
}

func TestIfNoneMatch_SavesTheBody(t *testing.T) {
	s := newShop(t)
	c := s.guest(t).fill("1×1")
	for _, path := range []string{"/cart", "/cart/summary"} {
		whole := c.ok("GET", path, "")
		tag := whole.Header.Get("ETag")
		for _, held := range [][]string{
			{tag}, {"W/" + tag}, {"*"}, {`"x.1-y", ` + tag}, {tag + `,"x.1-y"`}, {` W/"a" ,, W/` + tag + " ,"}, {`"a,b", ` + tag}, {`"x.1-y"`, tag},
		} {
			var headers []string
			for _, value := range held {
				headers = append(headers, "If-None-Match", value)
			}
			for _, method := range []string{"GET", "HEAD"} {
				a := c.send(method, path, "", headers...)
				assert(t, a.Status == 304 && len(a.Raw) == 0, "%s %s %q: got %d with %d bytes", method, path, held, a.Status, len(a.Raw))
				for _, header := range []string{"ETag", "Cache-Control", "Vary"} {
					equal(t, a.Header.Get(header), whole.Header.Get(header), "%s with 304 and with 200", header)
				}
			}
		}
		for _, held := range []string{`"x.1-y"`, `W/"x.1-y"`, strings.Replace(tag, "-", "", 1), tag[:len(tag)-2] + `"`} {
			c.ok("GET", path, "", "If-None-Match", held)
		}
		c.ok("GET", path, "", "If-None-Match", tag, "Accept-Language", "ar")
		for _, broken := range brokenTags(tag) {
			c.refused(400, "invalid_parameter", "GET", path, "", "If-None-Match", broken).names(t, "If-None-Match")
		}
	}
	tag := c.tag()
	c.ok("GET", "/cart/count", "", "If-None-Match", tag)
	c.ok("GET", "/cart/validate", "", "If-None-Match", tag)
	c.add(`{"product_id":1}`)
	c.ok("GET", "/cart", "", "If-None-Match", tag)
}

// brokenTags are not valid lists of entity tags.
func brokenTags(tag string) []string {
	bare := strings.Trim(tag, `"`)
	return []string{
		"", ",", bare, `"` + bare, bare + `"`, tag + tag, tag + " " + tag, tag + ";" + tag, `* , ` + tag, tag + ", *",
		"w/" + tag, "W/" + bare, "W/*", "W/ " + tag, "'" + bare + "'", `"a b"`, "null",
	}
}

func TestIfMatch_RefusesAChangeToAnOldVersion(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		stale := c.add(`{"product_id":1}`).Header.Get("ETag")
		c.add(`{"product_id":2}`)
		calls := [][3]string{
			{"POST", "/cart/add", `{"product_id":1}`},
			{"PATCH", "/cart/items/1", `{"quantity":5}`},
			{"DELETE", "/cart/items/1"},
			{"DELETE", "/cart/items/99"},
			{"DELETE", "/cart/clear"},
		}
		strange := s.guest(t).fill("1×1")
		elsewhere := strange.add(`{"product_id":1}`).Header.Get("ETag")
		for _, call := range calls {
			for _, tag := range []string{stale, "W/" + stale, stale + `, "x.2-y"`, elsewhere, `"x"`, `""`} {
				a := c.refused(412, "version_mismatch", call[0], call[1], call[2], "If-Match", tag)
				assert(t, a.Body.Data.lines() == "1×1 2×1" && a.Body.Data.Version == 2 && a.Header.Get("ETag") != "", "%v: does not show the cart: %s", call, a.Raw)
				assert(t, len(a.Body.Errors["If-Match"]) != 0, "%v: names %v", call, a.Body.Errors)
			}
			for _, broken := range brokenTags(stale) {
				c.refused(400, "invalid_parameter", call[0], call[1], call[2], "If-Match", broken)
			}
		}
		c.wantLines("1×1 2×1")

		for i, form := range []string{"%", "W/%", `"x.1-y", %`, "%, %", "*"} {
			tag := c.tag("Accept-Language", "ar")
			s.Catalog.Put(s.ID, &cart.Product{ID: 1, Name: locale.Named("P"), Active: true, MinQuantity: 1, Price: money.Amount(100 + i)})
			c.add(`{"product_id":1}`, "If-Match", strings.ReplaceAll(form, "%", tag))
		}
		c.wantLines("1×6 2×1")
	})
}

func TestIfMatch_WorksForACartThatWasNeverUsed(t *testing.T) {
	s := newShop(t)
	c := s.guest(t)
	unused := c.tag()
	c.add(`{"product_id":1}`, "If-Match", unused)
	a := c.refused(412, "version_mismatch", "POST", "/cart/add", `{"product_id":1}`, "If-Match", unused)
	assert(t, a.Body.Data.lines() == "1×1", "shows %s", a.Raw)
	fresh := s.guest(t).refused(412, "version_mismatch", "POST", "/cart/add", `{"product_id":1}`, "If-Match", `"x.3-y"`)
	assert(t, fresh.Body.Data.CartToken == nil && fresh.Header.Get("X-Cart-Token") == "", "a refusal issued a token: %s", fresh.Raw)
}
