package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"commerce/deploy/ephemeral"
)

// quickly makes a call without a connection, and without comparing its answer with the
// OpenAPI document: for tests that make thousands.
func (c *shopper) quickly(method, path, payload string, headers ...string) answer {
	r := httptest.NewRequest(method, path, strings.NewReader(payload))
	r.Header.Set("Content-Type", "application/json")
	c.identify(r.Header)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	c.shop.handler.ServeHTTP(w, r)
	a := answer{Status: w.Code, Header: w.Header(), Raw: w.Body.Bytes()}
	_ = json.Unmarshal(a.Raw, &a.Body)
	return a
}

// surely repeats a call with its key until it is not answered with a 503 or 504.
func (c *shopper) surely(method, path, payload string, headers ...string) answer {
	for {
		if a := c.quickly(method, path, payload, headers...); a.Status < http.StatusInternalServerError {
			return a
		}
	}
}

// order is what one checkout sells: quantities by product.
type order map[int64]int64

// checkOut places an order as docs/cart.md describes it. It sells nothing when the cart is
// empty or has changed since it was read. Every third time, the reply to the clear is
// lost, and it asks again.
func (c *shopper) checkOut(n int) (order, error) {
	read := c.quickly("GET", "/cart/summary", "")
	if read.Status != http.StatusOK || len(read.Body.Data.Items) == 0 {
		return nil, nil
	}
	placing := order{}
	for _, item := range read.Body.Data.Items {
		placing[item.ProductID] += item.Quantity
	}
	clears := []string{"If-Match", read.Header.Get("ETag"), "Idempotency-Key", fmt.Sprintf("order-%d", n)}
	cleared := c.surely("DELETE", "/cart/clear", "", clears...)
	if n%3 == 0 {
		again := c.surely("DELETE", "/cart/clear", "", clears...)
		if again.Status != cleared.Status {
			return nil, fmt.Errorf("the clear was answered %d, its repeat %d", cleared.Status, again.Status)
		}
	}
	switch cleared.Status {
	case http.StatusOK:
		return placing, nil
	case http.StatusPreconditionFailed:
		return nil, nil
	}
	return nil, fmt.Errorf("clear: %d %s", cleared.Status, cleared.Raw)
}

// A shopper's devices add while checkout sells and clears. What is added between the read
// and the clear is neither sold nor lost.
func TestCheckout_ClearsExactlyWhatItSold(t *testing.T) {
	ephemeral.Slow(t)
	s := realShop(t)
	const adders, adds = 20, 500 // fewer than a line may hold
	s.sell(adders)
	c := s.visitor(t)
	ordered := make(chan struct{}) // closed after the first order
	var adding sync.WaitGroup
	for i := range adders {
		adding.Go(func() {
			add := fmt.Sprintf(`{"product_id":%d}`, 101+i)
			for n := range adds {
				if n == adds/2 { // or no order might find the cart as it was read
					select {
					case <-ordered:
					case <-t.Context().Done():
						return
					}
				}
				if a := c.surely("POST", "/cart/add", add, "Idempotency-Key", fmt.Sprintf("add-%d-%d", i, n)); a.Status != http.StatusOK {
					t.Errorf("add: %d %s", a.Status, a.Raw)
					return
				}
			}
		})
	}
	var done atomic.Bool
	go func() { adding.Wait(); done.Store(true) }()
	sold, orders, stale := order{}, 0, 0
	for n, last := 0, false; ; n++ {
		last = done.Load()
		placed := must(c.checkOut(n))(t)
		for product, quantity := range placed {
			sold[product] += quantity
		}
		if placed != nil {
			if orders++; orders == 1 {
				close(ordered)
			}
		} else {
			stale++
		}
		if last {
			break
		}
	}
	t.Logf("%d orders, %d attempts sold nothing", orders, stale)
	for i := range int64(adders) {
		equal(t, sold[101+i], adds, "product %d: sold", 101+i)
	}
	left := c.cart()
	assert(t, len(left.Items) == 0 && orders >= 2, "%q left after %d orders", left.lines(), orders)
}
