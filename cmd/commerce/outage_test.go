package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"commerce/deploy/ephemeral"
)

// slowed returns a URL of the database through a proxy that can be made slow.
func slowed(t *testing.T, databaseURL string) (viaURL string, line *toxiproxy.Proxy) {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	line = toxiproxy.NewProxy(api, "postgres", "127.0.0.1:0", u.Host)
	if err := line.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(line.Stop)
	u.Host = line.Listen
	return u.String(), line
}

func TestCarts_WorkWithoutPostgres(t *testing.T) {
	t.Parallel()
	type outage struct{ begin, end func() }
	for name, outageOf := range map[string]func(*testing.T, *ephemeral.Server, *toxiproxy.Proxy) outage{
		"stopped": func(_ *testing.T, s *ephemeral.Server, _ *toxiproxy.Proxy) outage { return outage{s.Kill, s.Restart} },
		"frozen":  func(_ *testing.T, s *ephemeral.Server, _ *toxiproxy.Proxy) outage { return outage{s.Freeze, s.Thaw} },
		"slow": func(t *testing.T, _ *ephemeral.Server, line *toxiproxy.Proxy) outage {
			return outage{
				func() {
					_, err := line.Toxics.AddToxicJson(strings.NewReader(`{"name":"slow","type":"latency","attributes":{"latency":900}}`))
					if err != nil {
						t.Fatal(err)
					}
				},
				func() { line.Toxics.ResetToxics(context.Background()) },
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			postgres := ephemeral.StartPostgres(t)
			if err := ephemeral.Migrate(t.Context(), postgres.URL); err != nil {
				t.Fatal(err)
			}
			onDatabase(t, postgres.URL, "seed")
			via, line := slowed(t, postgres.URL)
			i := startInstance(t, via)
			outage := outageOf(t, postgres, line)

			load := shop(t, i, 4)
			time.Sleep(300 * time.Millisecond)
			load.took()

			outage.begin()
			wantUnavailable(t, i, `{"product_id":2}`)
			wantNoWaiting(t, load)
			wantUnavailable(t, i, `{"product_id":7,"qty":2}`)

			outage.end()
			wantRevalidated(t, i, postgres.URL)
		})
	}
}

// postgresWait is less than the time of a request that waits for a slow or frozen
// Postgres: 900 ms over the slow line, 1 s until a load is abandoned.
const postgresWait = 800 * time.Millisecond

// wantNoWaiting checks that requests do not wait for Postgres during an outage: in one of
// the windows no request took postgresWait. A window is longer than a cached value is
// fresh plus one load, so requests that wait for Postgres would occur in every window. A
// busy machine is slow only in some.
func wantNoWaiting(t *testing.T, load *shoppers) {
	t.Helper()
	const window, windows = 2 * time.Second, 10
	time.Sleep(time.Second) // what is held is too old from now on
	load.took()
	var seen []string
	for range windows {
		time.Sleep(window)
		took := load.took()
		waited := 0
		for _, each := range took {
			if each > postgresWait {
				waited++
			}
		}
		if len(took) > 0 && waited == 0 {
			return
		}
		seen = append(seen, fmt.Sprintf("%d of %d", waited, len(took)))
	}
	t.Errorf("requests that took more than %v, by window: %s", postgresWait, strings.Join(seen, ", "))
}

// wantUnavailable adds a product that the instance has not cached. The time limit of a
// request is 5 s; the cache's own tests check how long it waits.
func wantUnavailable(t *testing.T, i instance, product string) {
	t.Helper()
	for range 3 {
		began := time.Now()
		a, err := i.call("", "POST", "/cart/add", product)
		if err != nil || a.Status != http.StatusServiceUnavailable || a.Code != "unavailable" || a.Header.Get("Retry-After") == "" {
			t.Errorf("add of a product that is not cached: %v, %d %s, want 503 with Retry-After", err, a.Status, a.Body)
		}
		if took := time.Since(began); took > 4500*time.Millisecond {
			t.Errorf("the 503 took %v", took)
		}
	}
}

// wantRevalidated deactivates a product and waits until the instance rejects it.
func wantRevalidated(t *testing.T, i instance, databaseURL string) {
	t.Helper()
	change(t, writer(t, databaseURL), "UPDATE products SET active = false WHERE (store_id, id) = (1, 5)")
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		a, err := i.call("", "POST", "/cart/add", `{"product_id":5,"fields":{"Account email":"a@example.com"}}`)
		if err == nil && a.Code == "product_inactive" {
			return
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("20s after Postgres is back: %v, %d %s, want product_inactive", err, a.Status, a.Body)
		}
	}
}

// shoppers send cart requests, all of which must succeed.
type shoppers struct {
	t *testing.T

	mu    sync.Mutex
	times []time.Duration
}

// shop lets n shoppers use an instance until the test ends, each with a cart of several
// kinds of lines.
func shop(t *testing.T, i instance, n int) *shoppers {
	t.Helper()
	s := &shoppers{t: t}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	for range n {
		token := i.mustCall(t, "", "POST", "/cart/add", `{"product_id":1}`).Data.CartToken
		i.mustCall(t, token, "POST", "/cart/add", `{"product_id":4,"subscription_plan":41}`)
		i.mustCall(t, token, "POST", "/cart/add", `{"product_id":5,"fields":{"Account email":"a@example.com","Region":"us"}}`)
		i.mustCall(t, token, "POST", "/cart/coupon", `{"coupon":"TEN"}`)
		all.Go(func() {
			for ctx.Err() == nil {
				s.send(i, token, "POST", "/cart/add", `{"product_id":1}`)
				s.send(i, token, "GET", "/cart", "")
				s.send(i, token, "PATCH", "/cart/items/1", `{"quantity":1}`)
				s.send(i, token, "GET", "/cart/summary", "")
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return s
}

func (s *shoppers) send(i instance, token, method, path, body string) {
	began := time.Now()
	a, err := i.call(token, method, path, body)
	took := time.Since(began)
	if err != nil || a.Status != http.StatusOK {
		s.t.Errorf("%s %s: %v, %d %s", method, path, err, a.Status, a.Body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, took)
}

// took returns the response times since its last call.
func (s *shoppers) took() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	took := s.times
	s.times = nil
	return took
}
