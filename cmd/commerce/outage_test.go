package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"commerce/deploy/ephemeral"
)

// slowed is a database at url as it is seen over a line that can be made slow.
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

func TestCarts_DoNotNoticeWhenPostgresIsGone(t *testing.T) {
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

			load := shop(t, i, 8)
			time.Sleep(300 * time.Millisecond)
			before := load.speed()

			outage.begin()
			wantUnavailable(t, i, `{"product_id":2}`)
			time.Sleep(2 * time.Second)
			wantUnavailable(t, i, `{"product_id":7,"qty":2}`)
			during := load.speed()

			outage.end()
			wantRevalidated(t, i, postgres.URL)
			after := load.speed()

			t.Logf("requests, median and p99: before %v, during %v, after %v", before, during, after)
			if during.p99 > 500*time.Millisecond {
				t.Errorf("p99 is %v with Postgres %s, %v without", during.p99, name, before.p99)
			}
			if during.median > 4*before.median+25*time.Millisecond {
				t.Errorf("median is %v with Postgres %s, %v without", during.median, name, before.median)
			}
		})
	}
}

// wantUnavailable asks for a product that no cart ever held.
func wantUnavailable(t *testing.T, i instance, product string) {
	t.Helper()
	for range 3 {
		began := time.Now()
		a, err := i.call("", "POST", "/cart/add", product)
		if err != nil || a.Status != http.StatusServiceUnavailable || a.Code != "unavailable" || a.Header.Get("Retry-After") == "" {
			t.Errorf("add of a product that is not known: %v, %d %s, want 503 with Retry-After", err, a.Status, a.Body)
		}
		if took := time.Since(began); took > 600*time.Millisecond {
			t.Errorf("it took %v to say that a product is not known", took)
		}
	}
}

// wantRevalidated changes the stock and waits for it to count.
func wantRevalidated(t *testing.T, i instance, databaseURL string) {
	t.Helper()
	change(t, writer(t, databaseURL), "UPDATE products SET active = false WHERE (store_id, id) = (1, 5)")
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		a, err := i.call("", "POST", "/cart/add", `{"product_id":5,"fields":{"Account email":"a@example.com"}}`)
		if err == nil && a.Code == "product_inactive" {
			return
		}
		if time.Since(began) > 5*time.Second {
			t.Fatalf("5s after Postgres is back: %v, %d %s, want product_inactive", err, a.Status, a.Body)
		}
	}
}

// shoppers use carts; no request of theirs may fail.
type shoppers struct {
	t *testing.T

	mu   sync.Mutex
	took []time.Duration
}

// speed is how long requests took.
type speed struct {
	requests    int
	median, p99 time.Duration
}

func (s speed) String() string { return fmt.Sprintf("%d, %v, %v", s.requests, s.median, s.p99) }

// shop sends n shoppers to an instance until the test ends, each with a cart that
// holds a bit of everything.
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
				time.Sleep(5 * time.Millisecond)
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
	s.took = append(s.took, took)
}

// speed says how long requests took since it was last asked.
func (s *shoppers) speed() speed {
	s.mu.Lock()
	defer s.mu.Unlock()
	took := s.took
	s.took = nil
	slices.Sort(took)
	return speed{len(took), took[len(took)/2], took[len(took)*99/100]}
}
