package server_test

import (
	"strings"
	"testing"

	"commerce/auth/locale"
	"commerce/cart"
)

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

func TestBounds_AllLinesOfAProductShareItsMaximumPerCart(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		s.Catalog.Put(s.ID, membership(2))
		c := s.guest(t).fill("301.p311×1 301.p312×1")
		a := c.refused(422, "quantity_out_of_range", "POST", "/cart/add", `{"product_id":301,"qty":1,"subscription_plan":311}`)
		text := a.Body.Errors["qty"]
		assert(t, len(text) == 1 && strings.Contains(text[0], "2"), "errors %v", a.Body.Errors)
		c.refused(422, "quantity_out_of_range", "PATCH", "/cart/items/301.p311", `{"quantity":2}`)
		c.edited("301.p311", `{"subscription_plan":312}`)
		c.wantLines("301.p312×2")

		s.Catalog.Put(s.ID, membership(1))
		a = c.refused(400, "cart_invalid", "GET", "/cart/validate", "")
		issues := a.Body.Data.Issues
		assert(t, len(issues) == 1 && issues[0].Code == "above_max_quantity", "issues %+v", issues)
		c.edited("301.p312", `{"quantity":1}`)
		c.ok("GET", "/cart/validate", "")
	})
}

func TestBounds_ALineGrowsInSteps(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		s.Catalog.Put(s.ID, pack())
		c := s.guest(t)
		c.refused(422, "quantity_out_of_range", "POST", "/cart/add", `{"product_id":302,"qty":6}`)
		c.fill("302×5 302×10")
		c.refused(422, "quantity_out_of_range", "POST", "/cart/add", `{"product_id":302,"qty":4}`)
		c.refused(422, "quantity_out_of_range", "PATCH", "/cart/items/302", `{"quantity":13}`)
		c.edited("302", `{"quantity":10}`)
		got := c.wantLines("302×10")
		assert(t, got.Items[0].Issue == nil, "issue %+v", got.Items[0].Issue)
		changed := pack()
		changed.Step = 4
		s.Catalog.Put(s.ID, changed)
		a := c.refused(400, "cart_invalid", "GET", "/cart/validate", "")
		issues := a.Body.Data.Issues
		assert(t, len(issues) == 1 && issues[0].Code == "off_step" && issues[0].Requested == 10, "issues %+v", issues)
		c.edited("302", `{"notice":"still"}`)
		c.edited("302", `{"quantity":9}`)
		c.ok("GET", "/cart/validate", "")
	})
}

func TestBounds_AMergeCutsToThem(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		s.Catalog.Put(s.ID, membership(4))
		s.Catalog.Put(s.ID, pack())
		customer, guest := s.customer(t, "bounds"), s.guest(t)
		customer.fill("301.p311×3 302×10")
		guest.fill("301.p312×3 302×5")
		changed := pack()
		changed.Step, changed.MaxQuantity = 4, new(int64(14))
		s.Catalog.Put(s.ID, changed)

		customer.Token = guest.Token
		got := customer.cart()
		assert(t, got.lines() == "301.p311×3 302×13 301.p312×1", "merged to %q", got.lines())
		codes := map[string]string{}
		for _, cut := range got.Merge.Adjusted {
			codes[cut.ItemID] = cut.Code
		}
		assert(t, len(codes) == 2 && codes["301.p312"] == "above_max_quantity" && codes["302"] == "above_max_quantity", "adjusted %+v", got.Merge.Adjusted)
		customer.ok("GET", "/cart/validate", "")
	})
}
