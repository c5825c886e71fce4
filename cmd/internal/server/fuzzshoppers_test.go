package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/sample"
)

// FuzzShoppers makes a sequence of calls of a guest and of a customer, who may bring the guest's
// cart, while products change. Three bytes describe a step: who does what, with what, and under
// which conditions.
func FuzzShoppers(f *testing.F) {
	const customer, both, argument = 1, 3, 0
	do := func(who byte, act shopperAct) byte { return who + byte(act)<<2 }
	f.Add([]byte{do(0, actAdd), 0, 0, do(0, actAdd), 1, 0, do(both, actRead), argument, 0, do(both, actRead), argument, 0})
	f.Add([]byte{do(0, actAdd), 3, 1, do(customer, actAdd), 3, 1, do(both, actAdd), 3, 1, do(both, actRemove), 0, 2, do(0, actAdd), 3, 1})
	f.Add([]byte{do(0, actAdd), 4, 0, do(0, actEdit), 5, 4, do(0, actEdit), 8, 8, do(0, actSetQuantity), 0, 16, do(0, actClear), 0, 1})
	f.Add([]byte{do(0, actAdd), 1, 0, do(0, actRedeem), 0, 0, do(0, actOffer), 9, 0, do(both, actRead), 3, 32, do(customer, actReturn), 0, 0})
	f.Add([]byte{do(customer, actAdd), 7, 16, do(0, actWait), 0, 0, do(customer, actAdd), 7, 16, do(0, actOffer), 1, 0, do(customer, actRead), 2, 64})
	f.Add([]byte{do(0, actAdd), 0, 0, do(both, actRead), argument, 0, do(0, actAdd), 1, 0, do(customer, actRead), argument, 0})
	s := openFuzzedAs(f, false)
	f.Fuzz(func(t *testing.T, steps []byte) {
		s.begin(t)
		p := &pair{t: t, shop: s, guest: s.guest(t), customer: s.customer(t, "1001")}
		p.guest.Token = strings.Repeat("token", 5)
		for _, product := range sample.Products()[1] {
			s.Catalog.Put(s.ID, product)
		}
		p.look()
		for n := 0; len(steps) >= 3 && n < 12; n++ {
			p.step(steps[0], steps[1], steps[2])
			steps = steps[3:]
		}
	})
}

// pair is a guest and a customer, and their carts after the last step.
type pair struct {
	t               *testing.T
	shop            *shop
	guest, customer *shopper

	carts [2]cartBody // of the guest and the customer
	tags  [2]string   // their ETags
}

type shopperAct byte

const (
	actRead shopperAct = iota
	actAdd
	actSetQuantity
	actEdit
	actRemove
	actClear
	actRedeem
	actReturn // the coupon
	actOffer  // the store changes a product
	actWait
	shopperActs
)

// step makes the step that three bytes describe, and compares the carts before and after it.
func (p *pair) step(what, with, under byte) {
	p.t.Helper()
	act := shopperAct(what>>2) % shopperActs
	switch act {
	case actOffer:
		p.offer(with)
		return
	case actWait:
		p.shop.pass(p.t, []time.Duration{2 * time.Second, time.Hour}[with%2])
		p.look()
		return
	}
	who := int(what & 1)
	c := p.shop.with(p.t, []*shopper{p.guest, p.customer}[who])
	brought := who == 1 && what&2 != 0
	if brought {
		c.Token = p.guest.Token
	}
	method, path, body := p.call(act, who, with)
	before := p.carts
	a := c.fuzzed(method, path, []byte(body), p.conditions(method, who, under)...)
	p.look()
	p.judge(method+" "+path+" "+body, who, brought, method != http.MethodGet, before, a)
}

func (p *pair) call(act shopperAct, who int, with byte) (method, path, body string) {
	item := "/cart/items/1"
	if items := p.carts[who].Items; len(items) > 0 {
		item = "/cart/items/" + items[int(with)%len(items)].ID
	}
	fields := []string{`{"0":"a@example.com"}`, `{"0":"b@example.com","Region":"us"}`, `{"Region":"sa"}`, `{"1":null}`}[with/8%4]
	plan := 41 + int(with/8%2)
	switch act {
	case actAdd:
		product, quantity := 1+int(with%10), []int{1, 2, 3, 5, 10}[with/10%5]
		body = fmt.Sprintf(`{"product_id":%d,"qty":%d`, product, quantity)
		switch product {
		case 4:
			body += fmt.Sprintf(`,"subscription_plan":%d`, plan)
		case 9:
			body += fmt.Sprintf(`,"subscription_plan":{"id":%d}`, plan+50)
		case 5:
			body += `,"fields":` + fields
		}
		return "POST", "/cart/add", body + "}"
	case actSetQuantity:
		return "PATCH", item, fmt.Sprintf(`{"quantity":%d}`, []int{0, 1, 2, 3, 5, 6, 999, 1000}[with/8%8])
	case actEdit:
		return "PATCH", item, []string{
			`{"notice":"n"}`, `{"notice":null}`, `{"fields":` + fields + `}`, fmt.Sprintf(`{"subscription_plan":%d}`, plan),
			`{"fields":` + fields + `,"quantity":2}`,
		}[with/4%5]
	case actRemove:
		return "DELETE", item, ""
	case actClear:
		return "DELETE", "/cart/clear", ""
	case actRedeem:
		return "POST", "/cart/coupon", fmt.Sprintf(`{"coupon":%q}`, []string{"TEN", "five", "OLD", "none"}[with%4])
	case actReturn:
		return "DELETE", "/cart/coupon", ""
	}
	return "GET", []string{"/cart", "/cart/count", "/cart/validate", "/cart/summary"}[with%4], ""
}

func (p *pair) conditions(method string, who int, under byte) (headers []string) {
	if key := under & 3; key != 0 && method != http.MethodGet {
		headers = append(headers, "Idempotency-Key", fmt.Sprint("k", key))
	}
	switch under >> 2 & 3 {
	case 1:
		headers = append(headers, "If-Match", p.tags[who])
	case 2:
		headers = append(headers, "If-Match", p.tags[1-who])
	case 3:
		headers = append(headers, "If-Match", "*")
	}
	if under&16 != 0 {
		headers = append(headers, "X-Timestamp", "1763632800")
	}
	if under&32 != 0 {
		headers = append(headers, "If-None-Match", p.tags[who])
	}
	if under&64 != 0 {
		headers = append(headers, "Accept-Language", "ar")
	}
	return headers
}

func (p *pair) offer(with byte) {
	products := sample.Products()[1]
	product := *products[int(with)%len(products)]
	stock := int64(1)
	switch with / 8 % 4 {
	case 0:
		product.Active = !product.Active
	case 1:
		product.Stock = &stock
	case 2:
		product.Price += 101
	case 3:
		product.Fields, product.Plans = nil, nil
	}
	p.shop.Catalog.Put(p.shop.ID, &product)
	p.look()
}

func (p *pair) look() {
	p.t.Helper()
	guest, customer := p.shop.guest(p.t), p.shop.with(p.t, p.customer)
	guest.Token, customer.Token = p.guest.Token, ""
	for i, c := range []*shopper{guest, customer} {
		a := c.ok("GET", "/cart", "")
		a.Body.Data.sound(p.t)
		p.carts[i], p.tags[i] = a.Body.Data, a.Header.Get("ETag")
	}
}

// judge compares a call's effect with its answer. brought: the customer brought the guest's cart.
func (p *pair) judge(call string, who int, brought, change bool, before [2]cartBody, a answer) {
	p.t.Helper()
	merge := a.Body.Data.Merge
	merged := brought && merge != nil && merge.Code == nil // without the token, the report is of an earlier merge
	changed := change && a.Status == http.StatusOK && !a.replayed(p.t)
	for i, after := range p.carts {
		var may int64 // how much the version may grow
		if changed && i == who {
			may++
		}
		if merged {
			may++
		}
		grown := after.Version - before[i].Version
		unlike := grown < 0 || grown > may || grown == 0 && after.lines() != before[i].lines()
		if brought && i == 0 && (merged || before[i].lines() == "") {
			unlike = unlike && after.Version != 0 || len(after.Items) > 0 // an empty cart is merged without a report
		}
		assert.Require(p.t, !unlike, "%s: %d %s, and the cart became %q at version %d, was %q at version %d", call, a.Status, a.Raw, after.lines(), after.Version, before[i].lines(), before[i].Version)
	}
	got := a.Body.Data
	assert.Require(p.t, a.Status != http.StatusOK || got.Items == nil || got.lines() == p.carts[who].lines() && got.Version == p.carts[who].Version && got.Total == p.carts[who].Total, "%s: showed %q, then the cart holds %q", call, a.Raw, p.carts[who].lines())
	if merged && !change {
		p.wantAll(before)
	}
}

func (p *pair) wantAll(before [2]cartBody) {
	p.t.Helper()
	after := map[string]int64{}
	for _, item := range p.carts[1].Items {
		after[item.ID] = item.Quantity
	}
	for _, item := range before[0].Items {
		assert.Require(p.t, after[item.ID] != 0, "%s of the guest is not in %q", item.ID, p.carts[1].lines())
	}
	for _, item := range before[1].Items {
		assert.Require(p.t, after[item.ID] >= item.Quantity, "%s×%d of the customer is not in %q", item.ID, item.Quantity, p.carts[1].lines())
	}
}
