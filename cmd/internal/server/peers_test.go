package server_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"commerce/cart"
	"commerce/deploy/sample"
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
	p := *sample.Products()[1][0]
	p.ID, p.Price, p.OriginalPrice = id, 1000, 1000
	for _, edit := range edits {
		edit(&p)
	}
	s.Catalog.Put(s.ID, &p)
}

// foreign are members of other carts' requests that this service does not have. Their
// texts contain the word unheard.
const foreign = `"metadata":{"campaign":"unheard"},"attributes":[{"key":"a","value":"unheard"}],"note":"unheard",` +
	`"email":"unheard@example.com","address":{"country":"unheard"},"currency":"unheard","customer_group":"unheard",` +
	`"saved_for_later":"unheard","gift_card":"unheard","fees":[{"name":"unheard","amount":5}],` +
	`"force_new_line":true,"price":0.01,"unit_price":0.01`

func TestPeers_Adding(t *testing.T) {
	behaviors{
		"text comes back as the shopper wrote it": func(t *testing.T, s *shop) {
			const written = "<b>Tom & \"Jerry\"</b>\n\\ 50 % 😀 سارة"
			c := s.guest(t)
			quoted, _ := json.Marshal(written)
			var got struct {
				Data struct {
					Items []struct {
						CustomFields []struct{ Value string } `json:"custom_fields"`
						Notice       string
					}
				}
			}
			a := c.add(fmt.Sprintf(`{"product_id":5,"fields":{"0":%s},"notice":%[1]s}`, quoted))
			noError(t, json.Unmarshal(a.Raw, &got))
			line := got.Data.Items[0]
			assert(t, line.CustomFields[0].Value == written && line.Notice == written, "%q came back as %+v", written, line)
		},
		"a body with several products is refused": func(t *testing.T, s *shop) {
			c := s.guest(t)
			c.cart()
			for _, name := range []string{"items", "lines", "line_items", "requests"} {
				a := c.refused(422, "validation_failed", "POST", "/cart/add", `{"`+name+`":[{"product_id":1,"qty":1},{"product_id":404}]}`)
				assert(t, len(a.Body.Errors["product_id"]) != 0, "%s: names %v", name, a.Body.Errors)
			}
			c.refused(400, "malformed_json", "POST", "/cart/add", `[{"product_id":1},{"product_id":2}]`)
			c.wantLines("")
		},
		"the same content is always one line": func(t *testing.T, s *shop) {
			c := s.guest(t)
			for range 2 {
				c.add(`{"product_id":5,"fields":{"0":"a@example.com"},` + foreign + `}`)
			}
			got := c.cart()
			assert(t, len(got.Items) == 1 && got.Count == 2, "cart holds %q", got.lines())
		},
		"unknown members are neither stored nor shown": func(t *testing.T, s *shop) {
			c := s.guest(t)
			c.add(`{"product_id":1,` + foreign + `}`)
			c.ok("PATCH", "/cart/items/1", `{"quantity":2,`+foreign+`}`)
			c.ok("POST", "/cart/coupon", `{"coupon":"TEN",`+foreign+`}`)
			a := c.ok("GET", "/cart/summary", "")
			assert(t, !strings.Contains(string(a.Raw), "unheard"), "shows %s", a.Raw)
			got := a.Body.Data
			assert(t, got.lines() == "1×2" && got.Total == 89.1 && got.Currency == "SAR" && strings.Contains(string(a.Raw), `"tax":{"rate":15,`), "%s", a.Raw)
			for _, key := range s.keys(t) {
				held := fmt.Sprint(s.Redis.HGetAll(t.Context(), key).Val())
				assert(t, !strings.Contains(held, "unheard"), "Redis holds %s", held)
			}
		},
		"a product can be bought as soon as the catalog sells it": func(t *testing.T, s *shop) {
			c := s.guest(t)
			s.offer(101, func(p *cart.Product) { p.Active = false })
			c.refused(422, "product_inactive", "POST", "/cart/add", `{"product_id":101}`)
			s.offer(101)
			c.add(`{"product_id":101}`)
			c.wantLines("101×1")
		},
	}.onEachRedis(t)
}

func TestPeers_Lines(t *testing.T) {
	behaviors{
		"a line whose product is gone can be removed": func(t *testing.T, s *shop) {
			c := s.guest(t)
			for id := range int64(2) {
				s.offer(201 + id)
				c.add(fmt.Sprintf(`{"product_id":%d}`, 201+id))
			}
			s.Catalog.Delete(s.ID, 201)
			s.Catalog.Delete(s.ID, 202)
			c.ok("DELETE", "/cart/items/201", "")
			c.ok("PATCH", "/cart/items/202", `{"quantity":0}`)
			c.wantLines("")
		},
		"a line that cannot be bought stays and blocks checkout": func(t *testing.T, s *shop) {
			c := s.guest(t)
			s.offer(203)
			s.offer(204)
			c.add(`{"product_id":203}`)
			c.add(`{"product_id":204}`)
			c.add(`{"product_id":1}`)
			s.offer(203, func(p *cart.Product) { p.Active = false })
			s.offer(204, func(p *cart.Product) { p.Stock = new(int64) })
			got := c.wantLines("203×1 204×1 1×1")
			assert(t, got.Items[0].Issue != nil && got.Items[1].Issue != nil && got.Items[2].Issue == nil, "issues: %+v", got.Items)
			var codes []string
			for _, i := range c.refused(400, "cart_invalid", "GET", "/cart/validate", "").Body.Data.Issues {
				codes = append(codes, *i.ItemID+" "+i.Code)
			}
			equal(t, codes, []string{"203 product_inactive", "204 out_of_stock"}, "validation")
		},
		"stock is not reserved": func(t *testing.T, s *shop) {
			s.offer(205, func(p *cart.Product) { three := int64(3); p.Stock = &three })
			one, other := s.guest(t), s.guest(t)
			for _, c := range []*shopper{one, other} {
				c.add(`{"product_id":205,"qty":3}`)
				c.ok("GET", "/cart/validate", "")
			}
			s.offer(205, func(p *cart.Product) { p.Stock = new(int64) }) // one of them bought
			other.refused(400, "cart_invalid", "GET", "/cart/validate", "")
		},
		"a line has no address to read": func(t *testing.T, s *shop) {
			c := s.guest(t)
			c.add(`{"product_id":1}`)
			c.refused(405, "method_not_allowed", "GET", "/cart/items/1", "")
		},
		"the cart itself can be cleared but not deleted": func(t *testing.T, s *shop) {
			c := s.guest(t)
			c.add(`{"product_id":1}`)
			c.refused(405, "method_not_allowed", "DELETE", "/cart", "")
			c.refused(405, "method_not_allowed", "PATCH", "/cart", `{"note":"n"}`)
			c.ok("DELETE", "/cart/clear", "")
			equal(t, c.wantLines("").Version, 2, "version after a clear")
		},
	}.onEachRedis(t)
}

func TestPeers_Login(t *testing.T) {
	behaviors{
		"lines with the same fields join and others stay": func(t *testing.T, s *shop) {
			customer, guest := s.customer(t, "301"), s.guest(t)
			for _, c := range []*shopper{customer, guest} {
				c.add(`{"product_id":5,"fields":{"0":"same@example.com","1":"us"}}`)
			}
			customer.add(`{"product_id":5,"fields":{"0":"own@example.com"}}`)
			guest.add(`{"product_id":5,"fields":{"0":"guest@example.com"}}`)
			var quantities []int64
			for _, item := range guest.logIn("301").cart().Items {
				quantities = append(quantities, item.Quantity)
			}
			assert(t, slices.Equal(quantities, []int64{2, 1, 1}), "quantities %v", quantities)
		},
		"a customer has one cart and finds it at every login": func(t *testing.T, s *shop) {
			s.customer(t, "302").add(`{"product_id":1}`)
			later := s.customer(t, "302") // another JWT
			later.add(`{"product_id":2}`)
			later.wantLines("1×1 2×1")
			s.customer(t, "302").wantLines("1×1 2×1")
		},
	}.onEachRedis(t)
}

func TestPeers_ApplyingCoupons(t *testing.T) {
	behaviors{
		"applying one again changes nothing": func(t *testing.T, s *shop) {
			c := s.guest(t)
			c.add(`{"product_id":1,"qty":2}`)
			first := c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`)
			again := c.ok("POST", "/cart/coupon", `{"coupon":"ten"}`)
			assert(t, first.Header.Get("ETag") == again.Header.Get("ETag") && again.Body.Data.Discount == 9.9, "first %s, again %s", first.Raw, again.Raw)
		},
		"another one replaces it": func(t *testing.T, s *shop) {
			c := s.guest(t)
			c.add(`{"product_id":1,"qty":2}`)
			c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`)
			got := c.ok("POST", "/cart/coupon", `{"coupon":"FIVE"}`).Body.Data
			assert(t, got.Coupon.Code == "FIVE" && got.Discount == 5, "%+v", got.Coupon)
		},
		"nothing is discounted without a code": func(t *testing.T, s *shop) {
			c := s.guest(t)
			got := c.add(`{"product_id":1,"qty":9}`).Body.Data
			assert(t, got.Coupon == nil && got.Discount == 0 && got.Total == 445.5, "%+v", got)
		},
		"a guest and a customer save the same": func(t *testing.T, s *shop) {
			for _, c := range []*shopper{s.guest(t), s.customer(t, "401"), s.customer(t, "402")} {
				c.add(`{"product_id":1,"qty":2,"customer_group":"vip"}`)
				got := c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`).Body.Data
				assert(t, got.Discount == 9.9 && got.Total == 89.1, "%+v", got)
			}
		},
		"a gift card's number is an unknown coupon": func(t *testing.T, s *shop) {
			c := s.guest(t)
			c.add(`{"product_id":1}`)
			c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"GIFT-1234-5678"}`)
		},
	}.onEachRedis(t)
}

func TestPeers_Discounts(t *testing.T) {
	behaviors{
		"the discount follows the lines": func(t *testing.T, s *shop) {
			c := s.guest(t)
			c.add(`{"product_id":1,"qty":2}`)
			c.add(`{"product_id":2,"qty":2}`)
			c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`)
			for _, step := range []struct {
				item     string
				discount float64
			}{{"1", 2}, {"2", 0}} {
				got := c.ok("DELETE", "/cart/items/"+step.item, "").Body.Data
				assert(t, got.Discount == step.discount && got.Coupon != nil && math.Abs(got.Total-(got.Subtotal-got.Discount)) <= 1e-9, "without line %s: %+v", step.item, got)
			}
		},
		"a free line costs nothing, and others are discounted": func(t *testing.T, s *shop) {
			c := s.guest(t)
			s.offer(402, func(p *cart.Product) { p.Price = 0 })
			c.add(`{"product_id":402,"qty":3}`)
			if got := c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`).Body.Data; got.Total != 0 || got.Discount != 0 {
				t.Errorf("alone: %+v", got)
			}
			if got := c.add(`{"product_id":2}`).Body.Data; got.Total != 9 || got.Discount != 1 {
				t.Errorf("with another: %+v", got)
			}
			c.ok("GET", "/cart/validate", "")
		},
		"a percentage counts for every item": func(t *testing.T, s *shop) {
			c := s.guest(t)
			s.offer(403)
			c.add(`{"product_id":403}`)
			c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`)
			for quantity := range 7 {
				got := c.ok("PATCH", "/cart/items/403", fmt.Sprintf(`{"quantity":%d}`, quantity+1)).Body.Data
				assert(t, got.Discount == float64(quantity+1), "%d items: %v off", quantity+1, got.Discount)
			}
		},
		"a percentage may have decimals": func(t *testing.T, s *shop) {
			s.Catalog.PutCoupon(s.ID, &cart.Coupon{Code: "EIGHTH", Kind: cart.Percent, Rate: 125_000})
			c := s.guest(t)
			c.add(`{"product_id":1}`)
			got := c.ok("POST", "/cart/coupon", `{"coupon":"EIGHTH"}`).Body.Data
			assert(t, got.Coupon.Value == 12.5 && got.Discount == 6.19, "%+v", got.Coupon)
		},
	}.onEachRedis(t)
}

func TestPeers_RemovingCoupons(t *testing.T) {
	behaviors{
		"removing one that is not there changes nothing": func(t *testing.T, s *shop) {
			c := s.guest(t)
			before := c.add(`{"product_id":1}`)
			after := c.ok("DELETE", "/cart/coupon", "")
			assert(t, before.Header.Get("ETag") == after.Header.Get("ETag"), "before %s, after %s", before.Raw, after.Raw)
		},
		"one that no longer exists can be removed": func(t *testing.T, s *shop) {
			s.Catalog.PutCoupon(s.ID, &cart.Coupon{Code: "BRIEF", Kind: cart.Fixed, Amount: 100})
			c := s.guest(t)
			c.add(`{"product_id":1}`)
			c.ok("POST", "/cart/coupon", `{"coupon":"BRIEF"}`)
			s.Catalog.DeleteCoupon(s.ID, "BRIEF")
			got := c.ok("DELETE", "/cart/coupon", "").Body.Data
			assert(t, got.Coupon == nil && got.Total == 49.5, "%+v", got)
		},
		"the cart remembers no earlier one": func(t *testing.T, s *shop) {
			c := s.guest(t)
			c.add(`{"product_id":1}`)
			c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`)
			c.ok("POST", "/cart/coupon", `{"coupon":"FIVE"}`)
			a := c.ok("DELETE", "/cart/coupon", "")
			assert(t, a.Body.Data.Coupon == nil && !strings.Contains(string(a.Raw), "TEN"), "%s", a.Raw)
		},
	}.onEachRedis(t)
}

func TestPeers_CouponOfAnotherStoreIsUnknown(t *testing.T) {
	t.Parallel()
	one, other := openMall(t, nil)
	c := one.guest(t)
	c.add(`{"product_id":1}`)
	c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`)
	there := other.guest(t)
	there.add(`{"product_id":21}`)
	there.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"TEN"}`)
}

func TestPeers_Prices(t *testing.T) {
	behaviors{
		"a line costs what the catalog says now": func(t *testing.T, s *shop) {
			c := s.guest(t)
			s.offer(501)
			c.add(`{"product_id":501,"qty":2}`)
			s.offer(501, func(p *cart.Product) { p.Price = 1250 })
			got := c.cart()
			assert(t, got.Items[0].UnitPrice == 12.5 && got.Total == 25, "%+v", got)
			warnings := c.ok("GET", "/cart/validate", "").Body.Data.Warnings
			assert(t, len(warnings) == 1 && warnings[0].Code == "price_changed", "warnings: %+v", warnings)
		},
		"a unit price does not depend on the quantity": func(t *testing.T, s *shop) {
			c := s.guest(t)
			s.offer(502)
			c.add(`{"product_id":502}`)
			for _, quantity := range []int64{1, 10, 100, 999} {
				got := c.ok("PATCH", "/cart/items/502", fmt.Sprintf(`{"quantity":%d}`, quantity)).Body.Data
				assert(t, got.Items[0].UnitPrice == 10 && got.Total == float64(10*quantity), "%d: %+v", quantity, got.Items[0])
			}
		},
		"a price does not depend on the shopper": func(t *testing.T, s *shop) {
			for _, c := range []*shopper{s.guest(t), s.customer(t, "503")} {
				got := c.add(`{"product_id":1,"customer_group":"vip","price_list":7}`).Body.Data
				assert(t, got.Total == 49.5, "%+v", got)
			}
		},
		"a cart has its store's currency": func(t *testing.T, s *shop) {
			c := s.guest(t)
			c.add(`{"product_id":1}`)
			got := c.ok("GET", "/cart?currency=USD&country=US", "", "X-Currency", "USD").Body.Data
			assert(t, got.Currency == "SAR" && got.Total == 49.5, "%+v", got)
		},
	}.onEachRedis(t)
}

func TestPeers_Requests(t *testing.T) {
	behaviors{
		"an answer is always the whole cart": func(t *testing.T, s *shop) {
			c := s.guest(t)
			c.add(`{"product_id":1}`)
			whole := c.ok("GET", "/cart", "").Header.Get("ETag")
			for _, query := range []string{"fields=id", "_fields=items", "select[]=id", "expand=items", "include=none"} {
				equal(t, c.ok("GET", "/cart?"+query, "").Header.Get("ETag"), whole, "%s", query)
			}
		},
		"other resources do not exist": func(t *testing.T, s *shop) {
			c := s.guest(t)
			for _, path := range []string{
				"/carts", "/cart/batch", "/cart/add-items", "/cart/note", "/cart/attributes", "/cart/metadata", "/cart/email", "/cart/customer",
				"/cart/address", "/cart/currency", "/cart/saved", "/cart/cross-sells", "/cart/fees", "/cart/gift-cards", "/cart/store-credit",
				"/cart/lock", "/cart/reserve", "/cart/checkout", "/cart/history", "/cart/items", "/webhooks",
			} {
				for _, method := range []string{http.MethodGet, http.MethodPost} {
					c.refused(404, "not_found", method, path, "")
				}
			}
		},
	}.onEachRedis(t)
}
