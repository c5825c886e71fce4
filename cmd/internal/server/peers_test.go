package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"commerce/cart"
	"commerce/deploy/assert"
)

// Behaviors in which carts of other products agree or differ, as far as no other test has them.

func (s *shop) offer(id int64, edits ...func(*cart.Product)) {
	plain := func(p *cart.Product) { p.ID, p.Price, p.OriginalPrice = id, 1000, 1000 }
	s.alter(1, append([]func(*cart.Product){plain}, edits...)...)
}

// foreign are members of other carts' requests, with texts that contain the word unheard.
const foreign = `"meta":{"campaign":"unheard"},"attributes":[{"key":"a","value":"unheard"}],"note":"unheard",` +
	`"email":"unheard@example.com","address":{"country":"unheard"},"currency":"unheard","customer_group":"unheard",` +
	`"saved_for_later":"unheard","gift_card":"unheard","fees":[{"name":"unheard","amount":5}],` +
	`"force_new_line":true,"price":0.01,"unit_price":0.01,"price_list":7`

func TestPeers_Lines(t *testing.T) {
	s := realShop(t)
	for name, shows := range map[string]func(*testing.T, *shop){
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
	} {
		t.Run(name, func(t *testing.T) { shows(t, s) })
	}
}

func TestPeers_CouponOfAnotherStoreIsUnknown(t *testing.T) {
	t.Parallel()
	one, other := openMall(t, false)
	one.guest(t).fill("1×1").redeem("TEN")
	other.guest(t).fill("21×1").refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"TEN"}`)
}
