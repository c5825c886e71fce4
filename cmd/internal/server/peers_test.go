package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"commerce/cart"
	"commerce/deploy/assert"
)

// The tests in this file show behaviors in which carts of other products agree or differ,
// as far as no other test shows them.

// behaviors are tests that share a shop. Each has its own shoppers and products.
type behaviors map[string]func(*testing.T, *shop)

func (b behaviors) onEachRedis(t *testing.T) {
	t.Helper()
	onEachRedis(t, func(t *testing.T, s *shop) {
		for name, shows := range b {
			t.Run(name, func(t *testing.T) { shows(t, s) })
		}
	})
}

// offer adds a plain product at 10.00 to the catalog, or replaces it.
func (s *shop) offer(id int64, edits ...func(*cart.Product)) {
	plain := func(p *cart.Product) { p.ID, p.Price, p.OriginalPrice = id, 1000, 1000 }
	s.alter(1, append([]func(*cart.Product){plain}, edits...)...)
}

// foreign are members of other carts' requests that this service does not have. Their
// texts contain the word unheard.
const foreign = `"metadata":{"campaign":"unheard"},"attributes":[{"key":"a","value":"unheard"}],"note":"unheard",` +
	`"email":"unheard@example.com","address":{"country":"unheard"},"currency":"unheard","customer_group":"unheard",` +
	`"saved_for_later":"unheard","gift_card":"unheard","fees":[{"name":"unheard","amount":5}],` +
	`"force_new_line":true,"price":0.01,"unit_price":0.01,"price_list":7`

func TestPeers_Lines(t *testing.T) {
	behaviors{
		"text comes back as the shopper wrote it": func(t *testing.T, s *shop) {
			const written = "<b>Tom & \"Jerry\"</b>\n\\ 50 % 😀 سارة"
			quoted := assert.Must(json.Marshal(written))(t)
			line := s.guest(t).add(fmt.Sprintf(`{"product_id":5,"fields":{"0":%s},"notice":%[1]s}`, quoted)).Body.Data.Items[0]
			assert.That(t, line.Fields[0].Value == written && *line.Notice == written, "%q came back as %+v", written, line)
		},
		"a body with several products is refused": func(t *testing.T, s *shop) {
			c := s.visitor(t)
			for _, name := range []string{"items", "lines", "line_items", "requests"} {
				c.refused(422, "validation_failed", "POST", "/cart/add", `{"`+name+`":[{"product_id":1,"qty":1},{"product_id":404}]}`).names(t, "product_id")
			}
			c.refused(400, "malformed_json", "POST", "/cart/add", `[{"product_id":1},{"product_id":2}]`)
			c.wantLines("")
		},
		"unknown members are neither stored nor shown, and change no price": func(t *testing.T, s *shop) {
			for _, c := range []*shopper{s.guest(t), s.customer(t, "503")} {
				c.add(`{"product_id":1,` + foreign + `}`)
				c.ok("PATCH", "/cart/items/1", `{"quantity":2,`+foreign+`}`)
				c.ok("POST", "/cart/coupon", `{"coupon":"TEN",`+foreign+`}`)
				a := c.ok("GET", "/cart/summary?currency=USD&country=US", "", "X-Currency", "USD")
				assert.Equal(t, a.Body.Data.lines()+" "+a.Body.Data.sums(), "1×2 99 - 9.9 = 89.1 SAR, TEN", "the cart")
				assert.That(t, !strings.Contains(string(a.Raw), "unheard") && strings.Contains(string(a.Raw), `"tax":{"rate":15,`), "shows %s", a.Raw)
			}
			for _, key := range s.keys(t) {
				held := fmt.Sprint(s.Redis.HGetAll(t.Context(), key).Val())
				assert.That(t, !strings.Contains(held, "unheard"), "Redis holds %s", held)
			}
		},
		"a line whose product is gone can be removed": func(t *testing.T, s *shop) {
			s.offer(201)
			s.offer(202)
			c := s.guest(t).fill("201×1 202×1")
			s.Catalog.Delete(s.ID, 201)
			s.Catalog.Delete(s.ID, 202)
			c.ok("DELETE", "/cart/items/201", "")
			c.ok("PATCH", "/cart/items/202", `{"quantity":0}`)
			c.wantLines("")
		},
		"a line that cannot be bought stays and blocks checkout, until it can": func(t *testing.T, s *shop) {
			s.offer(203)
			s.offer(204)
			c := s.guest(t).fill("203×1 204×1 1×1")
			s.offer(203, func(p *cart.Product) { p.Active = false })
			s.offer(204, func(p *cart.Product) { p.Stock = new(int64) })
			got := c.wantLines("203×1 204×1 1×1").Items
			assert.That(t, got[0].Issue != nil && got[1].Issue != nil && got[2].Issue == nil, "issues: %+v", got)
			var codes []string
			for _, i := range c.refused(400, "cart_invalid", "GET", "/cart/validate", "").Body.Data.Issues {
				codes = append(codes, *i.ItemID+" "+i.Code)
			}
			assert.Equal(t, codes, []string{"203 product_inactive", "204 out_of_stock"}, "validation")
			c.refused(422, "product_inactive", "POST", "/cart/add", `{"product_id":203}`)
			s.offer(203)
			c.add(`{"product_id":203}`)
		},
		"stock is not reserved": func(t *testing.T, s *shop) {
			s.offer(205, func(p *cart.Product) { p.Stock = new(int64(3)) })
			one, other := s.guest(t).fill("205×3"), s.guest(t).fill("205×3")
			one.ok("GET", "/cart/validate", "")
			other.ok("GET", "/cart/validate", "")
			s.offer(205, func(p *cart.Product) { p.Stock = new(int64) }) // one of them bought
			other.refused(400, "cart_invalid", "GET", "/cart/validate", "")
		},
		"an answer is always the whole cart": func(t *testing.T, s *shop) {
			c := s.guest(t).fill("1×1")
			whole := c.tag()
			for _, query := range []string{"fields=id", "_fields=items", "select[]=id", "expand=items", "include=none"} {
				assert.Equal(t, c.ok("GET", "/cart?"+query, "").Header.Get("ETag"), whole, "%s", query)
			}
		},
	}.onEachRedis(t)
}

func TestPeers_Prices(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		s.offer(402, func(p *cart.Product) { p.Price = 0 })
		s.offer(403)
		s.Catalog.PutCoupon(s.ID, &cart.Coupon{Code: "EIGHTH", Kind: cart.Percent, Rate: 125_000})
		for name, calls := range map[string][]string{
			"nothing is discounted without a code": {"add 1×9", "445.5 - 0 = 445.5 SAR"},
			"another coupon replaces one, and the cart remembers none": {
				"add 1×2", "99 - 0 = 99 SAR", "redeem TEN", "99 - 9.9 = 89.1 SAR, TEN", "redeem FIVE", "99 - 5 = 94 SAR, FIVE", "return", "99 - 0 = 99 SAR",
			},
			"the discount follows the lines": {
				"add 1×2", "99 - 0 = 99 SAR", "redeem TEN", "99 - 9.9 = 89.1 SAR, TEN", "add 2×2", "119 - 11.9 = 107.1 SAR, TEN",
				"remove 1", "20 - 2 = 18 SAR, TEN", "remove 2", "0 - 0 = 0 SAR, TEN",
			},
			"a free line costs nothing, and others are discounted": {
				"add 402×3", "0 - 0 = 0 SAR", "redeem TEN", "0 - 0 = 0 SAR, TEN", "add 2×1", "10 - 1 = 9 SAR, TEN",
			},
			"a percentage counts for every item": {
				"add 403×1", "10 - 0 = 10 SAR", "redeem TEN", "10 - 1 = 9 SAR, TEN", "set 403 2", "20 - 2 = 18 SAR, TEN",
				"set 403 3", "30 - 3 = 27 SAR, TEN", "set 403 4", "40 - 4 = 36 SAR, TEN", "set 403 5", "50 - 5 = 45 SAR, TEN",
				"set 403 6", "60 - 6 = 54 SAR, TEN", "set 403 7", "70 - 7 = 63 SAR, TEN",
			},
			"a percentage may have decimals": {"add 1×1", "49.5 - 0 = 49.5 SAR", "redeem EIGHTH", "49.5 - 6.19 = 43.31 SAR, EIGHTH"},
			"a unit price does not depend on the quantity": {
				"add 403×1", "10 - 0 = 10 SAR", "set 403 10", "100 - 0 = 100 SAR", "set 403 100", "1000 - 0 = 1000 SAR", "set 403 999", "9990 - 0 = 9990 SAR",
			},
		} {
			t.Run(name, func(t *testing.T) {
				c := s.guest(t)
				c.costs(calls...)
				if c.cart().Count > 0 {
					c.ok("GET", "/cart/validate", "")
				}
			})
		}
	})
}

func TestPeers_Coupons(t *testing.T) {
	behaviors{
		"applying one again changes nothing": func(t *testing.T, s *shop) {
			c := s.guest(t).fill("1×2")
			assert.Equal(t, c.redeem("TEN").Header.Get("ETag"), c.redeem("ten").Header.Get("ETag"), "the ETag after the first and the second")
			assert.Equal(t, c.cart().Discount, 9.9, "discount")
		},
		"removing one that is not there changes nothing": func(t *testing.T, s *shop) {
			c := s.guest(t).fill("1×1")
			before := c.tag()
			assert.Equal(t, c.ok("DELETE", "/cart/coupon", "").Header.Get("ETag"), before, "the ETag after")
		},
		"a line costs what the catalog says now": func(t *testing.T, s *shop) {
			s.offer(501)
			c := s.guest(t).fill("501×2")
			s.offer(501, func(p *cart.Product) { p.Price = 1250 })
			got := c.cart()
			assert.That(t, got.Items[0].AddedPrice == 10 && got.Items[0].UnitPrice == 12.5 && got.Total == 25, "%+v", got)
			warnings := c.ok("GET", "/cart/validate", "").Body.Data.Warnings
			assert.That(t, len(warnings) == 1 && warnings[0].Code == "price_changed", "warnings: %+v", warnings)
		},
	}.onEachRedis(t)
}

func TestPeers_CouponOfAnotherStoreIsUnknown(t *testing.T) {
	t.Parallel()
	one, other := openMall(t, false)
	one.guest(t).fill("1×1").redeem("TEN")
	other.guest(t).fill("21×1").refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"TEN"}`)
}
