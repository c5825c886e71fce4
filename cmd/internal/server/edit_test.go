package server_test

import (
	"fmt"
	"strings"
	"testing"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/deploy/assert"
)

func (c *shopper) account(email, region string) string {
	c.t.Helper()
	return c.add(fmt.Sprintf(`{"product_id":5,"fields":{"Account email":%q,"Region":%q}}`, email, region)).itemID()
}

// edited edits a line and returns the cart and the line's id, "" for null.
func (c *shopper) edited(item, payload string, headers ...string) (cartBody, string) {
	c.t.Helper()
	a := c.ok("PATCH", "/cart/items/"+item, payload, headers...)
	return a.Body.Data, a.itemID()
}

func TestEdit_AllPartsAtOnceOrNone(t *testing.T) {
	s := newShop(t)
	c := s.guest(t)
	c.add(`{"product_id":4,"subscription_plan":41,"notice":"old"}`)
	refused := c.refused(422, "plan_unavailable", "PATCH", "/cart/items/4.p41", `{"quantity":3,"subscription_plan":43,"notice":"new"}`)
	assert.That(t, len(refused.Body.Errors["subscription_plan"]) == 1, "errors name %v", refused.Body.Errors)
	c.refused(422, "quantity_out_of_range", "PATCH", "/cart/items/4.p41", `{"quantity":1000,"subscription_plan":42,"notice":"new"}`)
	left := c.wantLines("4.p41×1")
	assert.That(t, left.Version == 1 && *left.Items[0].Notice == "old", "a refusal left version %d, notice %v", left.Version, left.Items[0].Notice)
	got, id := c.edited("4", `{"qty":3,"subscription_plan":{"id":42},"notice":"new"}`)
	assert.That(t, id == "4.p42" && got.lines() == "4.p42×3" && *got.Items[0].Notice == "new" && got.Items[0].UnitPrice == 200 && got.Version == 2, "%s: %q at version %d, %+v", id, got.lines(), got.Version, got.Items[0])
	got, _ = c.edited(id, `{"notice":"\u200b "}`)
	assert.That(t, got.Items[0].Notice == nil, "a notice of invisible characters was kept")
	c.refused(422, "validation_failed", "PATCH", "/cart/items/"+id, `{"notice":"`+strings.Repeat("n", 501)+`"}`)
	got, id = c.edited(id, `{"quantity":0,"notice":7,"fields":null}`)
	assert.That(t, id == "" && len(got.Items) == 0, "removed: %q, item_id %q", got.lines(), id)
}

func TestEdit_ALineThatBecomesAnotherIsAbsorbed(t *testing.T) {
	s := newShop(t)
	c := s.guest(t)
	first := c.account("a@example.com", "")
	c.add(`{"product_id":1}`)
	second := c.account("b@example.com", "")
	c.edited(first, `{"quantity":600,"notice":"one"}`)
	c.edited(second, `{"quantity":400,"notice":"two"}`)

	before := c.cart()
	a := c.refused(422, "quantity_out_of_range", "PATCH", "/cart/items/"+second, `{"fields":{"0":"a@example.com"}}`)
	assert.That(t, len(a.Body.Errors["fields"]) == 1, "errors name %v", a.Body.Errors)
	assert.That(t, c.cart().Version == before.Version, "the refusal raised the version")
	got, id := c.edited(second, `{"fields":{"0":"a@example.com"},"quantity":399}`)
	assert.That(t, id == first && got.lines() == first+"×999 1×1" && *got.Items[0].Notice == "two" && got.Version == before.Version+1, "%s: %q at version %d, notice %v", id, got.lines(), got.Version, got.Items[0].Notice)
}

// A line with an issue can be lowered or removed: only what an edit alters is judged.
func TestEdit_JudgesOnlyWhatItAlters(t *testing.T) {
	s := newShop(t)
	c := s.guest(t)
	id := c.account("a@example.com", "us")
	c.edited(id, `{"quantity":5}`)
	for name, now := range map[string]struct {
		code   string
		status int
		set    func()
	}{
		"inactive": {"product_inactive", 422, func() { s.alter(5, func(p *cart.Product) { p.Active = false }) }},
		"gone":     {"product_not_found", 404, func() { s.Catalog.Delete(s.ID, 5) }},
	} {
		c.edited(id, `{"quantity":5}`)
		now.set()
		c.edited(id, `{"notice":"`+name+`"}`)
		c.edited(id, `{"quantity":4,"notice":"`+name+` still","fields":{"Account email":"a@example.com"}}`)
		c.edited(id, `{"quantity":3}`)
		c.refused(now.status, now.code, "PATCH", "/cart/items/"+id, `{"quantity":4}`)
		c.refused(now.status, now.code, "PATCH", "/cart/items/"+id, `{"quantity":6,"notice":"no"}`)
		c.refused(now.status, now.code, "PATCH", "/cart/items/"+id, `{"fields":{"Account email":"b@example.com"}}`)
		c.refused(now.status, now.code, "PATCH", "/cart/items/"+id, `{"subscription_plan":1}`)
		assert.Equal(t, *c.wantLines(id + "×3").Items[0].Notice, name+" still", "%s: notice", name)
		s.alter(5)
	}
	c.edited(id, `{"quantity":0}`)
	c.wantLines("")
}

func TestItemID_NamesTheLineOfAnAdd(t *testing.T) {
	s := realShop(t)
	c := s.guest(t)
	add := `{"product_id":5,"qty":2,"fields":{"1":"us","0":"a@example.com"}}`
	made := *c.add(add, "Idempotency-Key", "k").Body.Data.ItemID
	c.wantLines(made + "×2")
	assert.Equal(t, c.add(add, "Idempotency-Key", "k").itemID(), made, "item_id of a repeat")
	s.alter(5, func(p *cart.Product) { p.Active = false })
	assert.Equal(t, c.add(add, "Idempotency-Key", "k").itemID(), made, "item_id of a repeat, when the product is no longer sold")
	c.ok("DELETE", "/cart/items/"+made, "")
	assert.Equal(t, c.add(add, "Idempotency-Key", "k").itemID(), "", "item_id of a repeat, when the line is removed")
	assert.That(t, !strings.Contains(string(c.ok("DELETE", "/cart/clear", "").Raw), `"item_id"`), "a change of the whole cart names a line")
}

// A membership of which a cart may hold only perCart, with any plan.
func membership(perCart int64) *cart.Product {
	return &cart.Product{
		ID: 301, Name: locale.Named("Club"), Active: true, MinQuantity: 1, MaxPerCart: &perCart,
		Plans: []cart.Plan{{ID: 311, Duration: "monthly", Price: 100}, {ID: 312, Duration: "annually", Price: 1000}},
	}
}

// A pack that is sold from 5 on, in steps of 5.
func pack() *cart.Product {
	return &cart.Product{ID: 302, Name: locale.Named("Pack"), Active: true, MinQuantity: 5, Step: 5, Price: 10}
}
