package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"commerce/cmd/bench/results"
)

// Numbers of lines: a usual cart, and a large one.
const (
	fewLines  = 5
	manyLines = 50
)

// usualRead is the case that other reads are compared with.
const usualRead = "guest, 5 lines"

// benchGet measures GET /cart.
func benchGet(ctx context.Context, s *stage) (results.Benchmark, error) {
	return cartBench{"get", twice("floor-ping", "floor-get"), []cartCase{
		{usualRead, reading("/cart", fewLines, (*shop).newGuest), cpuOf("floor-get", 0.9)},
		{"guest, 50 lines", reading("/cart", manyLines, (*shop).newGuest), cpuOf(usualRead, 4)},
		{"guest, 5 lines, 304", unchanged, cpuOf(usualRead, 0.7)},
		{"customer, 5 lines", reading("/cart", fewLines, (*shop).newCustomer), cpuOf(usualRead, 1.1)},
		{"customer with a merged token, 5 lines", reading("/cart", fewLines, (*shop).newMerged), cpuOf(usualRead, 1.25)},
	}}.run(ctx, s)
}

// benchCount measures GET /cart/count.
func benchCount(ctx context.Context, s *stage) (results.Benchmark, error) {
	return cartBench{"count", twice("floor-get"), []cartCase{
		{usualRead, reading("/cart/count", fewLines, (*shop).newGuest), cpuOf("floor-get", 0.6)},
		{"guest, 50 lines", reading("/cart/count", manyLines, (*shop).newGuest), nil},
		{"customer, 5 lines", reading("/cart/count", fewLines, (*shop).newCustomer), nil},
	}}.run(ctx, s)
}

// benchAdd measures changes of a guest's cart of five lines: adds that increase a
// quantity, and PATCH.
func benchAdd(ctx context.Context, s *stage) (results.Benchmark, error) {
	inRedis := results.Comparison{Cost: results.StoreCPU, Of: "floor-add", AtMost: new(1.0)}
	return cartBench{"add", twice("floor-add"), []cartCase{
		{"add", adding(plain), append(cpuOf("floor-add", 1.1), inRedis)},
		{"add, X-Timestamp", adding(stamped), cpuOf("add", 1.1)},
		{"add, Idempotency-Key", adding(keyed), cpuOf("floor-add", 0)},
		{"patch", patching(plain), cpuOf("floor-add", 1.1)},
		{"patch, X-Timestamp", patching(stamped), cpuOf("patch", 1.1)},
		{"patch, Idempotency-Key", patching(keyed), cpuOf("floor-add", 0)},
	}}.run(ctx, s)
}

// cpuOf compares CPU with another case. A target of 0 means none.
func cpuOf(other string, atMost float64) []results.Comparison {
	c := results.Comparison{Cost: results.CPU, Of: other}
	if atMost > 0 {
		c.AtMost = &atMost
	}
	return []results.Comparison{c}
}

// reading returns clients that repeat a GET, each on its own cart.
func reading(path string, lines int, newShopper func(*shop, context.Context, int) (http.Header, error)) func(*shop) clients {
	return func(s *shop) clients {
		return func(ctx context.Context) (*client, error) {
			header, err := newShopper(s, ctx, lines)
			if err != nil {
				return nil, err
			}
			return same(s.server.url+path, header)(ctx)
		}
	}
}

// unchanged returns clients that repeat GET /cart with the ETag of the cart.
func unchanged(s *shop) clients {
	return func(ctx context.Context) (*client, error) {
		header, err := s.newGuest(ctx, fewLines)
		if err != nil {
			return nil, err
		}
		answer, err := s.call(ctx, http.MethodGet, "/cart", header, nil, nil)
		if err != nil {
			return nil, err
		}
		header.Set("If-None-Match", answer.Get("ETag"))
		c, err := same(s.server.url+"/cart", header)(ctx)
		if err != nil {
			return nil, err
		}
		c.want = http.StatusNotModified
		return c, nil
	}
}

// mark adds headers to the nth change of a client that protect its retries.
type mark func(h http.Header, client string, n int)

func plain(http.Header, string, int) {}

func stamped(h http.Header, _ string, n int) {
	h.Set("X-Timestamp", strconv.FormatInt(time.Now().UnixMilli()+int64(n), 10))
}

func keyed(h http.Header, client string, n int) {
	h.Set("Idempotency-Key", client+"-"+strconv.Itoa(n))
}

// addsPerCart keeps every line of a cart below 999, the maximum quantity.
const addsPerCart = 990 * fewLines

// adding returns clients that increase the quantities of their lines in turn. A client
// switches to a new cart before its lines are full.
func adding(mark mark) func(*shop) clients {
	return func(s *shop) clients {
		return func(ctx context.Context) (*client, error) {
			c, n := &client{}, 0
			take := func(ctx context.Context) error {
				guest, err := s.newGuest(ctx, fewLines)
				if err != nil {
					return err
				}
				c.request, err = newRequest(http.MethodPost, s.server.url+"/cart/add", guest)
				return err
			}
			c.prepare = func(ctx context.Context) error {
				if n > 0 && n%addsPerCart == 0 {
					if err := take(ctx); err != nil {
						return err
					}
				}
				setBody(c.request, addition(n%fewLines))
				mark(c.request.Header, c.request.Header.Get("X-Cart-Token"), n)
				n++
				return nil
			}
			return c, take(ctx)
		}
	}
}

// patching returns clients that change the quantities of their lines in turn.
func patching(mark mark) func(*shop) clients {
	return func(s *shop) clients {
		return func(ctx context.Context) (*client, error) {
			guest, err := s.newGuest(ctx, fewLines)
			if err != nil {
				return nil, err
			}
			c := &client{request: &http.Request{Method: http.MethodPatch, Header: guest}}
			var lines [fewLines]*url.URL
			for i := range lines {
				if lines[i], err = url.Parse(fmt.Sprintf("%s/cart/items/%d", s.server.url, firstProduct+i)); err != nil {
					return nil, err
				}
			}
			n := 0
			c.prepare = func(context.Context) error {
				c.request.URL = lines[n%fewLines]
				setBody(c.request, fmt.Appendf(nil, `{"quantity":%d}`, n/fewLines%900+2))
				mark(guest, guest.Get("X-Cart-Token"), n)
				n++
				return nil
			}
			return c, nil
		}
	}
}

// floorClients returns the clients of a floor. Each client of floor-add has its own key.
func floorClients(name, rawURL string) clients {
	if !strings.HasPrefix(name, "floor-add") {
		return same(rawURL+"/cart", http.Header{})
	}
	return func(context.Context) (*client, error) {
		token := fmt.Sprintf("floor-%d", time.Now().UnixNano())
		r, err := newRequest(http.MethodPost, rawURL+"/cart/add", http.Header{"X-Cart-Token": {token}})
		c, n := &client{request: r}, 0
		c.prepare = func(context.Context) error {
			setBody(r, addition(n%fewLines))
			n++
			return nil
		}
		return c, err
	}
}
