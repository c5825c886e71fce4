package server_test

import (
	"fmt"
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
