package server_test

import (
	"strings"
	"testing"
	"time"

	"commerce/cart/redisstore"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

type undoneBody struct {
	GuestCart string `json:"guest_cart"`
	Adjusted  []adjustedBody
}

func undoBody(id string) string { return `{"id":"` + id + `"}` }

// undo undoes the latest merge into a customer's cart, and returns a guest with what was taken out.
func (c *shopper) undo(headers ...string) (*shopper, undoneBody, answer) {
	c.t.Helper()
	merge := c.cart().Merge
	assert.Require(c.t, merge != nil, "no merge is reported")
	a := c.ok("POST", "/cart/merge/undo", undoBody(merge.ID), headers...)
	u := decode[struct{ Data struct{ Undone undoneBody } }](c.t, a.Raw).Data.Undone
	guest := c.shop.guest(c.t)
	guest.Token = u.GuestCart
	return guest, u, a
}

// A shopper logs in on a friend's phone.
func TestUndo_GivesTheFriendsCartBack(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		friends := s.guest(t).fill("2×1 7×2")
		friends.add(`{"product_id":5,"fields":{"0":"a@example.com"},"notice":"for my mother","metadata":{"gift":"yes"}}`)
		friends.add(`{"product_id":1,"qty":2,"notice":"the friend's"}`)
		friends.redeem("TEN")
		before := friends.cart()
		s.customer(t, "1").add(`{"product_id":1,"qty":3,"metadata":{"own":"1"}}`)
		here := friends.logIn("1")
		assert.Equal(t, here.cart().lines(), "1×5 2×1 7×2 5.fFW3PSYWMezQ8o8nE×1", "after the login")

		guest, u, a := here.undo()
		assert.That(t, a.Body.Data.lines() == "1×3" && a.Body.Data.CartToken == nil && a.Header.Get("X-Cart-Token") == "" && a.Body.Data.Coupon == nil &&
			a.Body.Data.Items[0].Notice == nil && a.Body.Data.Items[0].Metadata["own"] == "1" && len(u.Adjusted) == 0, "the customer's: %s", a.Raw)
		got := guest.wantLines("1×2 2×1 7×2 5.fFW3PSYWMezQ8o8nE×1")
		assert.That(t, got.Coupon != nil && got.Total == before.Total && *got.Items[0].Notice == "the friend's" && *got.Items[3].Notice == "for my mother" &&
			got.Items[3].Metadata["gift"] == "yes" && len(got.Items[3].Fields) == 1, "the friend's: %+v", got)

		here.Token = guest.Token // the customer's client has picked it up by mistake
		here.wantLines("1×3")
		here.add(addOne)
		again, _, a := here.undo()
		assert.That(t, again.Token == guest.Token && a.Body.Data.lines() == "1×4", "a repeat: %s", a.Raw)
		guest.wantLines("1×2 2×1 7×2 5.fFW3PSYWMezQ8o8nE×1")
		guest.add(addOne)
		guest.logIn("2").wantLines("1×3 2×1 7×2 5.fFW3PSYWMezQ8o8nE×1")
		s.customer(t, "1").wantLines("1×4")
		assert.That(t, !strings.Contains(s.Log.String(), guest.Token), "the log has the token")
	})
}

func TestUndo_KeepsWhatTheShopperHasChangedSince(t *testing.T) {
	s := newShop(t)
	friends := s.guest(t).fill("1×2 2×1 7×2")
	friends.add(`{"product_id":4,"subscription_plan":41}`)
	friends.redeem("TEN")
	s.customer(t, "1").fill("1×1")
	here := friends.logIn("1")
	here.ok("PATCH", "/cart/items/1", `{"quantity":2}`)
	here.ok("PATCH", "/cart/items/2", `{"notice":"mine now"}`)
	here.ok("DELETE", "/cart/items/7", "")
	here.ok("PATCH", "/cart/items/4.p41", `{"subscription_plan":42}`)
	here.ok("DELETE", "/cart/coupon", "")
	guest, u, a := here.undo()
	assert.Equal(t, a.Body.Data.lines(), "1×1 2×1 4.p42×1", "the customer's")
	assert.That(t, guest.wantLines("1×1").Coupon == nil, "the coupon has come back")
	got := map[string][2]int64{}
	for _, a := range u.Adjusted {
		assert.Equal(t, a.Code, "changed", "code of %s", a.ItemID)
		got[a.ItemID] = [2]int64{a.Requested, a.Kept}
	}
	assert.Equal(t, got, map[string][2]int64{"1": {2, 1}, "2": {1, 0}, "7": {2, 0}, "4.p41": {1, 0}}, "adjusted")
}

// If nothing is left to take out, no cart is stored.
func TestUndo_OfWhatIsGoneStoresNoCart(t *testing.T) {
	s := newShop(t)
	here := s.guest(t).fill("1×2").logIn("1")
	here.cart()
	here.ok("DELETE", "/cart/clear", "")
	before, version := len(s.keys(t)), here.cart().Version
	guest, u, a := here.undo()
	assert.That(t, len(u.Adjusted) == 1 && a.Body.Data.Version == version && len(s.keys(t)) == before, "%s, keys %v", a.Raw, s.keys(t))
	guest.wantLines("")
}

func TestUndo_RefusesByMember(t *testing.T) {
	s := newShop(t)
	const path = "/cart/merge/undo"
	owner := s.guest(t).fill("1×1").logIn("1")
	id := owner.cart().Merge.ID
	for name, c := range map[string]struct {
		who    *shopper
		body   string
		status int
		code   string
		member string
	}{
		"a guest":               {s.guest(t), undoBody(id), 401, "unauthenticated", "Authorization"},
		"no body":               {owner, "", 400, "malformed_json", ""},
		"no id":                 {owner, `{}`, 422, "validation_failed", "id"},
		"a number":              {owner, `{"id":5}`, 422, "validation_failed", "id"},
		"an empty id":           {owner, `{"id":""}`, 404, "not_found", "id"},
		"no merge":              {owner, undoBody("AAAAAAAAAA"), 404, "not_found", "id"},
		"no ID":                 {owner, undoBody(strings.Repeat("}:*", 3000)), 404, "not_found", "id"},
		"another customer's":    {s.customer(t, "2"), undoBody(id), 404, "not_found", "id"},
		"a customer of no cart": {s.customer(t, "3"), undoBody(id), 404, "not_found", "id"},
	} {
		a := c.who.refused(c.status, c.code, "POST", path, c.body)
		if c.member != "" {
			assert.That(t, len(a.Body.Errors[c.member]) == 1, "%s: %s", name, a.Raw)
		}
	}
	owner.wantLines("1×1")
}

func TestUndo_EndsAfterQuarterOfAnHour(t *testing.T) {
	s := realShop(t)
	here := s.guest(t).fill("1×1").logIn("1")
	id := here.cart().Merge.ID
	key := redisstore.CustomerRef(s.ID, "1").String()
	var came string
	for _, k := range s.keys(t) {
		if strings.Contains(k, key) && strings.HasSuffix(k, ":came") {
			came = k
		}
	}
	left := s.Redis.PTTL(t.Context(), came).Val()
	assert.That(t, left > 14*time.Minute && left <= 15*time.Minute, "%q lives for %v", came, left)
	here.cart()
	assert.That(t, s.Redis.PTTL(t.Context(), came).Val() <= left, "a read has renewed it")
	assert.NoError(t, s.Redis.Del(t.Context(), came).Err())
	here.refused(404, "not_found", "POST", "/cart/merge/undo", undoBody(id)).names(t, "id")
	here.wantLines("1×1")
}

func TestUndo_IsNotThereWithoutAKey(t *testing.T) {
	s := newShop(t, func(p *server.Parts) { p.Carts.Keys = nil })
	here := s.guest(t).fill("1×1").logIn("1")
	here.refused(404, "not_found", "POST", "/cart/merge/undo", undoBody(here.cart().Merge.ID))
	for _, k := range s.keys(t) {
		assert.That(t, !strings.Contains(k, ":came:"), "%s is stored for nothing", k)
	}
}

func TestUndo_CountsAsACart(t *testing.T) {
	onLimitedRedis(t, func(t *testing.T, s *shop) {
		friends := s.guest(t)
		friends.add(addOne, from...)
		for range 2 {
			s.guest(t).add(addOne, from...)
		}
		here := friends.logIn("1")
		body := undoBody(here.cart().Merge.ID)
		here.refused(429, "rate_limited", "POST", "/cart/merge/undo", body, from...).wantWait(t, 1, 1200)
		here.wantLines("1×1")
		here.ok("POST", "/cart/merge/undo", body, "X-Forwarded-For", "192.0.2.2")
		here.ok("POST", "/cart/merge/undo", body, from...) // a repeat stores nothing
		here.wantLines("")
	})
}
