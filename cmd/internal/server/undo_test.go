package server_test

import (
	"strings"
	"testing"

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
		friends := s.guest(t).fill("1×2 2×1 4.p41×1")
		friends.add(`{"product_id":1,"notice":"the friend's"}`)
		friends.redeem("TEN")
		s.customer(t, "1").fill("1×3")
		here := friends.logIn("1")
		assert.Equal(t, here.cart().lines(), "1×6 2×1 4.p41×1", "after the login")
		here.ok("PATCH", "/cart/items/4.p41", `{"subscription_plan":42}`)

		guest, u, a := here.undo()
		got := a.Body.Data
		assert.That(t, got.lines() == "1×3 4.p42×1" && got.CartToken == nil && a.Header.Get("X-Cart-Token") == "" && got.Coupon == nil && got.Items[0].Notice == nil,
			"the customer's: %s", a.Raw)
		assert.Equal(t, u.Adjusted, []adjustedBody{{ItemID: "4.p41", Requested: 1, Kept: 0, Code: "changed"}}, "adjusted")
		back := guest.wantLines("1×3 2×1")
		assert.That(t, back.Coupon != nil && *back.Items[0].Notice == "the friend's", "the friend's: %+v", back)

		here.Token = guest.Token // the customer's client has picked it up by mistake
		here.wantLines("1×3 4.p42×1")
		again, _, _ := here.undo()
		assert.Equal(t, again.Token, guest.Token, "the guest's cart of a repeat")
		guest.logIn("2").wantLines("1×3 2×1")
		assert.That(t, !strings.Contains(s.Log.String(), guest.Token), "the log has the token")
	})
}
