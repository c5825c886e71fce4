package torture

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
)

type shopCall struct {
	who                string // guest, customer, or both: a customer with a guest's token
	method, path, body string // # in the body is a new number for each call
	keyed              bool   // with an Idempotency-Key
}

func (c shopCall) String() string {
	s := fmt.Sprintf("%s: %s %s %s", c.who, c.method, c.path, c.body)
	if c.keyed {
		s += " (keyed)"
	}
	return s
}

func everyCall() []shopCall {
	var all []shopCall
	for _, who := range []string{"guest", "customer", "both"} {
		for _, call := range [][3]string{
			{"GET", "/cart"},
			{"GET", "/cart/count"},
			{"GET", "/cart/validate"},
			{"GET", "/cart/summary"},
			{"POST", "/cart/add", `{"product_id":1001}`},
			{"POST", "/cart/add", `{"product_id":1001,"notice":"Please"}`}, // 5 keeps one line, which its ID names
			{"POST", "/cart/add", `{"product_id":4,"subscription_plan":41}`},
			{"PATCH", "/cart/items/1001", `{"quantity":3}`},
			{"PATCH", "/cart/items/5", `{"fields":{"Account email":"#@example.com"}}`},
			{"PATCH", "/cart/items/5", `{"notice":"#"}`},
			{"POST", "/cart/ops", `{"ops":[{"op":"add","product_id":1001},{"op":"edit","item":"1001","notice":"#"}],"mode":"each"}`},
			{"DELETE", "/cart/items/1002"},
			{"POST", "/cart/coupon", `{"coupon":"TEN"}`},
			{"DELETE", "/cart/coupon"},
			{"DELETE", "/cart/clear"},
			{"POST", "/cart/handover"},
		} {
			if call[1] == "/cart/handover" && who != "guest" {
				continue // refused
			}
			plain := shopCall{who: who, method: call[0], path: call[1], body: call[2]}
			all = append(all, plain)
			if plain.method != "GET" {
				plain.keyed = true
				all = append(all, plain)
			}
		}
	}
	return all
}

// regular has carts to fill and others only to clear. It is safe for concurrent use.
type regular struct {
	t      testing.TB
	name   string
	fills  map[string]*shopper // by who
	clears map[string]*shopper
	sent   atomic.Int64
}

func newRegulars(t testing.TB, client *shopper, n int, name string) (all []*regular) {
	t.Helper()
	for i := range n {
		all = append(all, newRegular(t, client, fmt.Sprint(name, "-", i)))
	}
	return all
}

// newRegular returns a client whose carts contain what the calls change.
func newRegular(t testing.TB, client *shopper, name string) *regular {
	t.Helper()
	r := &regular{t: t, name: name, fills: map[string]*shopper{}, clears: map[string]*shopper{}}
	for purpose, carts := range map[string]map[string]*shopper{"fills": r.fills, "clears": r.clears} {
		id := name + "-" + purpose
		carts["guest"] = client.as("a-regular-guests-cart-"+id, "")
		carts["customer"] = client.as("", client.customer(t, id))
		carts["both"] = client.as("a-guests-cart-to-bring-"+id, client.customer(t, id+"-both"))
		for _, c := range carts {
			r.add(c, `{"product_id":1001}`)
			r.add(c, `{"product_id":5,"fields":{"Account email":"b@example.com"}}`)
		}
	}
	return r
}

// bring fills the guest's cart, which the next calls of "both" merge.
func (r *regular) bring() {
	r.t.Helper()
	r.add(r.fills["both"].as(r.fills["both"].Token, ""), `{"product_id":1001}`)
}

// add adds to a cart. It repeats the call after a 503, which may occur on a busy machine.
func (r *regular) add(c *shopper, body string) {
	r.t.Helper()
	key := fmt.Sprint(r.name, "-add-", r.sent.Add(1))
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		a := c.send("POST", "/cart/add", body, "Idempotency-Key", key)
		if a.Status == http.StatusOK {
			return
		}
		assert.Require(r.t, a.Status == http.StatusServiceUnavailable && time.Since(began) <= startLimit, "add %s: %v", body, a)
	}
}

func (r *regular) send(call shopCall) reply {
	n, c, body := r.sent.Add(1), r.fills[call.who], call.body
	if call.path == "/cart/clear" {
		c = r.clears[call.who]
	}
	body = strings.ReplaceAll(body, "#", strconv.FormatInt(n, 10))
	if call.keyed {
		return c.send(call.method, call.path, body, "Idempotency-Key", fmt.Sprint(r.name, "-", n))
	}
	return c.send(call.method, call.path, body)
}
