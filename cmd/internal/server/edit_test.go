package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/deploy/assert"
)

func (c *shopper) account(email, region string) string {
	c.t.Helper()
	return c.add(fmt.Sprintf(`{"product_id":5,"fields":{"Account email":%q,"Region":%q}}`, email, region)).itemID()
}

func (b cartBody) fields(t testing.TB, id string) string {
	t.Helper()
	i := slices.IndexFunc(b.Items, func(item itemBody) bool { return item.ID == id })
	assert.Require(t, i >= 0, "no line %s in %q", id, b.lines())
	var answers []string
	for _, f := range b.Items[i].Fields {
		answers = append(answers, f.Value)
	}
	return strings.Join(answers, "/")
}

// edited edits a line and returns the cart and the line's id, "" for null.
func (c *shopper) edited(item, payload string, headers ...string) (cartBody, string) {
	c.t.Helper()
	a := c.ok("PATCH", "/cart/items/"+item, payload, headers...)
	return a.Body.Data, a.itemID()
}

func TestEdit_AllPartsAtOnceOrNone(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
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
	})
}

func TestEdit_ALineThatBecomesAnotherIsAbsorbed(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
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
	})
}

// A line with an issue can be lowered or removed: only what an edit alters is judged.
func TestEdit_JudgesOnlyWhatItAlters(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
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
	})
}

// A repeat names the line that the first try made, before any line is looked up.
func TestEdit_ARepeatNamesTheLineItMade(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		c := s.guest(t)
		first := c.account("a@example.com", "sa")
		other := c.account("b@example.com", "us")
		payload := `{"fields":{"Account email":"b@example.com"}}`
		stamp := fmt.Sprint(time.Now().Unix())
		for repeat, headers := range map[string][]string{"key": {"Idempotency-Key", "k"}, "stamp": {"X-Timestamp", stamp}} {
			got, made := c.edited(first, payload, headers...)
			assert.Require(t, got.fields(t, made) == "b@example.com/Saudi Arabia" && made != other, "%s: %s made %s", repeat, first, made)
			s.pass(t, 2*time.Second)
			again := c.ok("PATCH", "/cart/items/"+first, payload, headers...)
			assert.That(t, again.replayed(t) && again.itemID() == made, "%s: replayed %v, item_id %s, want %s", repeat, again.replayed(t), again.itemID(), made)
			c.ok("DELETE", "/cart/items/"+made, "")
			again = c.ok("PATCH", "/cart/items/"+first, payload, headers...)
			assert.That(t, again.replayed(t) && again.itemID() == "", "%s, its line removed: replayed %v, item_id %s", repeat, again.replayed(t), again.itemID())
			c.refused(404, "item_not_found", "PATCH", "/cart/items/"+first, payload)
			c.account("a@example.com", "sa")
		}
	})
}

// A key that is used again after a day names the line of its new use.
func TestEdit_AnOldKeyForgetsItsLine(t *testing.T) {
	s := realShop(t)
	c := s.guest(t)
	first := c.account("a@example.com", "sa")
	_, made := c.edited(first, `{"fields":{"Region":"us"}}`, "Idempotency-Key", "k")
	s.pass(t, 23*time.Hour)
	c.add(`{"product_id":1}`, "Idempotency-Key", "keeps-the-keys")
	s.pass(t, 2*time.Hour)
	for range 2 {
		_, got := c.edited("1", `{"quantity":2}`, "Idempotency-Key", "k")
		assert.That(t, got == "1", "item_id %s, want 1; before, the key made %s", got, made)
	}
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

// A repeat names the line of its first try, whatever the catalog now makes of the request.
func TestItemID_OfARepeatDoesNotFollowTheCatalog(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		add := `{"product_id":5,"fields":{"0":"sa","1":"us"}}`
		ask := func(first, second string) {
			s.alter(5, func(p *cart.Product) { p.Fields = []cart.Field{{Name: first}, {Name: second}} })
		}
		stamp := fmt.Sprint(time.Now().Unix())
		for repeat, headers := range map[string][]string{"key": {"Idempotency-Key", "k"}, "stamp": {"X-Timestamp", stamp}} {
			c := s.guest(t)
			ask("first", "second")
			made := *c.add(add, headers...).Body.Data.ItemID
			ask("second", "first")
			other := *c.add(add).Body.Data.ItemID
			s.pass(t, 2*time.Second)
			again := c.add(add, headers...)
			assert.That(t, again.replayed(t) && again.itemID() == made && made != other, "%s: replayed %v, item_id %s, want %s, not %s", repeat, again.replayed(t), again.itemID(), made, other)
		}
	})
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
