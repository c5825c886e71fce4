package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"commerce/cmd/bench/results"
)

// Numbers of lines: a usual cart, and a large one.
const fewLines, manyLines = 5, 50

// usualRead is the case that other reads are compared with.
const usualRead = "guest, 5 lines"

// cartCase is one kind of request to the service, or to a floor. Its comparisons are with
// earlier cases of the same benchmark.
type cartCase struct {
	benchmark string
	name      string
	clients   func(*shop) clients // nil: the floor with that name
	compared  []comparison
}

// cartCases are the cases of all benchmarks of carts under full load.
func cartCases() []cartCase {
	return []cartCase{
		{"get", "floor-ping", nil, nil},
		{"get", "floor-hgetall", nil, nil},
		{"get", "floor-hgetall, Valkey", nil, nil},
		{"get", "floor-get", nil, nil},
		{"get", "floor-shared", nil, nil},
		{"get", usualRead, reading("/cart", fewLines, (*shop).newGuest), append(cpuOf("floor-get", 0.6), comparison{"floor-ping", serverCPU(), 2.3})},
		{"get", "guest, 50 lines", reading("/cart", manyLines, (*shop).newGuest), cpuOf(usualRead, 1.8)},
		{"get", "guest, 5 lines, 304", unchanged, cpuOf(usualRead, 0.7)},
		{"get", "customer, 5 lines", reading("/cart", fewLines, (*shop).newCustomer), cpuOf(usualRead, 1.1)},
		{"get", "customer with a merged token, 5 lines", reading("/cart", fewLines, (*shop).newMerged), cpuOf(usualRead, 1.25)},

		{"count", "floor-ping", nil, nil},
		{"count", "floor-hgetall", nil, nil},
		{"count", "floor-get", nil, nil},
		{"count", usualRead, reading("/cart/count", fewLines, (*shop).newGuest), cpuOf("floor-get", 0.6)},
		{"count", "guest, 50 lines", reading("/cart/count", manyLines, (*shop).newGuest), nil},
		{"count", "customer, 5 lines", reading("/cart/count", fewLines, (*shop).newCustomer), nil},

		{"add", "floor-ping", nil, nil},
		{"add", "floor-script", nil, nil},
		{"add", "floor-script, Valkey", nil, nil},
		{"add", "floor-add", nil, nil},
		{"add", "add", adding(plain), []comparison{{"floor-add", cpu(), 0.85}, {"floor-add", storeCPU(), 0.8}}},
		{"add", "add, X-Timestamp", adding(stamped), []comparison{{"floor-add", cpu(), 0.95}, {"floor-add", storeCPU(), 0.9}}},
		{"add", "add, Idempotency-Key", adding(keyed), cpuOf("floor-add", 0)},
		{"add", "patch", patching(plain), cpuOf("floor-add", 0.85)},
		{"add", "patch, X-Timestamp", patching(stamped), cpuOf("patch", 1.1)},
		{"add", "patch, all clients on one cart", patchingOne(fewLines), cpuOf("patch", 0)},
		{"add", "10 operations", operating(), cpuOf("add", 2.5)},
	}
}

// benchCarts measures the cases of one benchmark. Each case of the second service follows the
// same case of the first one.
func benchCarts(name string) func(context.Context, *stage) (results.Benchmark, error) {
	return func(ctx context.Context, s *stage) (results.Benchmark, error) {
		shops, err := openShops(ctx, s, 0)
		if err != nil {
			return results.Benchmark{}, err
		}
		var all []testCase
		for _, c := range cartCases() {
			switch {
			case c.benchmark != name:
			case c.clients == nil:
				floor, err := openFloor(ctx, s, c.name, shops[0])
				if err != nil {
					return results.Benchmark{}, err
				}
				all = append(all, floor)
			default:
				for _, shop := range shops {
					compared := c.compared
					if shop.label != "" {
						compared = cpuOf(c.name, 0)
					}
					all = append(all, testCase{name: c.name + shop.label, server: shop.server, clients: c.clients(shop), compared: compared})
				}
			}
		}
		return measure(ctx, s.options, all...)
	}
}

// openFloor starts this program as one of its floors. It uses the shop's Redis server and database, or a Valkey server if its
// name says so.
func openFloor(ctx context.Context, s *stage, name string, shop *shop) (testCase, error) {
	self, err := os.Executable()
	if err != nil {
		return testCase{}, err
	}
	settings, store := shop.settings, shop.store
	floor, valkey := strings.CutSuffix(name, ", Valkey")
	if valkey {
		own, err := s.redis(ctx, "valkey-server")
		if err != nil {
			return testCase{}, err
		}
		settings, store = []string{"REDIS_URL=" + own.url}, func(context.Context) ([]int, error) { return []int{own.pid()}, nil }
	}
	p, err := s.http(ctx, settings, "/", self, floor)
	if err != nil {
		return testCase{}, err
	}
	c := testCase{name: name, server: &server{p, store}, clients: same(p.url+"/floor", http.Header{})}
	switch floor {
	case "floor-add":
		c.clients = floorAdding(p.url)
	case "floor-hgetall", "floor-script":
		c.commands = perPipeline
	}
	return c, nil
}

// floorAdding returns the clients of floor-add, each with its own cart.
func floorAdding(rawURL string) clients {
	return func(context.Context) (*client, error) {
		token := fmt.Sprintf("floor-%d", time.Now().UnixNano())
		r, err := newRequest(http.MethodPost, rawURL+"/floor", http.Header{"X-Cart-Token": {token}})
		c, n := &client{request: r}, 0
		c.prepare = func(context.Context) error {
			setBody(r, addition(n%fewLines))
			n++
			return nil
		}
		return c, err
	}
}

// reading returns clients that repeat a GET, each on its own cart.
func reading(path string, lines int, of shopper) func(*shop) clients {
	return func(s *shop) clients {
		return func(ctx context.Context) (*client, error) {
			header, err := of(s, ctx, lines)
			if err != nil {
				return nil, err
			}
			return same(s.url+path, header)(ctx)
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
		r, err := newRequest(http.MethodGet, s.url+"/cart", header)
		return &client{request: r, want: http.StatusNotModified}, err
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

// changesPerCart keeps every line of a cart below 999, the maximum quantity.
const changesPerCart = 990 * fewLines

// changing returns clients that send the nth change to the path of one line after the other, and that
// switch to a new cart before its lines are full.
func changing(mark mark, method string, path func(line int) string, body func(n int) []byte) func(*shop) clients {
	return func(s *shop) clients {
		return func(ctx context.Context) (c *client, err error) {
			var urls [fewLines]*url.URL
			for i := range urls {
				if urls[i], err = url.Parse(s.url + path(i)); err != nil {
					return nil, err
				}
			}
			c, n := &client{}, 0
			take := func(ctx context.Context) error {
				guest, err := s.newGuest(ctx, fewLines)
				c.request = &http.Request{Method: method, Header: guest}
				return err
			}
			c.prepare = func(ctx context.Context) error {
				if n > 0 && n%changesPerCart == 0 {
					if err := take(ctx); err != nil {
						return err
					}
				}
				c.request.URL = urls[n%fewLines]
				setBody(c.request, body(n))
				mark(c.request.Header, c.request.Header.Get("X-Cart-Token"), n)
				n++
				return nil
			}
			return c, take(ctx)
		}
	}
}

// adding returns clients that add one to their lines in turn.
func adding(mark mark) func(*shop) clients {
	return changing(mark, http.MethodPost, func(int) string { return "/cart/add" }, func(n int) []byte { return addition(n % fewLines) })
}

// patching returns clients that change the quantities of their lines in turn.
func patching(mark mark) func(*shop) clients {
	path := func(line int) string { return fmt.Sprint("/cart/items/", firstProduct+line) }
	return changing(mark, http.MethodPatch, path, func(n int) []byte { return fmt.Appendf(nil, `{"quantity":%d}`, n/fewLines%900+2) })
}

// patchingOne returns clients that change the quantity of a line of one cart.
func patchingOne(lines int) func(*shop) clients {
	return func(s *shop) clients {
		guest := sync.OnceValues(func() (http.Header, error) { return s.newGuest(context.Background(), lines) })
		return func(context.Context) (*client, error) {
			header, err := guest()
			if err != nil {
				return nil, err
			}
			r, err := newRequest(http.MethodPatch, fmt.Sprint(s.url, "/cart/items/", firstProduct), header)
			n := 0
			return &client{request: r, prepare: func(context.Context) error {
				n++
				setBody(r, fmt.Appendf(nil, `{"quantity":%d}`, n%900+2))
				return nil
			}}, err
		}
	}
}

// operating returns clients that send ten operations: each line is set to one, and one is added to it.
func operating() func(*shop) clients {
	var list []string
	for i := range fewLines {
		list = append(list, fmt.Sprintf(`{"op":"edit","item":"%[1]d","quantity":1},{"op":"add","product_id":%[1]d}`, firstProduct+i))
	}
	body := []byte(`{"ops":[` + strings.Join(list, ",") + `]}`)
	return changing(plain, http.MethodPost, func(int) string { return "/cart/ops" }, func(int) []byte { return body })
}
