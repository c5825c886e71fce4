package server_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"commerce/cart/catalog"
	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions/postgres"
)

// delay is how long replies take on a slow line: longer than a request that is slow by itself.
const delay = 400 * time.Millisecond

// slowLine returns the URL of a server by way of a proxy, and a function that delays its replies
// from then on.
func slowLine(t testing.TB, server string) (via string, slow func()) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "line", "127.0.0.1:0", u.Host)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	u.Host = proxy.Listen
	return u.String(), func() {
		toxic := fmt.Sprintf(`{"type":"latency","stream":"downstream","attributes":{"latency":%d}}`, delay.Milliseconds())
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			t.Fatal(err)
		}
	}
}

// patientPool opens a pool on a slow line.
func patientPool(t testing.TB, url string, tracer pgx.QueryTracer) *pgxpool.Pool {
	t.Helper()
	return ephemeral.OpenPool(t, url, connect.PostgresConfig{
		StatementTimeout: -1, ConnectTimeout: 10 * time.Second, Tracer: tracer,
		Edit: func(c *pgxpool.Config) { c.PingTimeout = 10 * time.Second },
	})
}

// wantSlow sends requests until the line of one says that it spent most of its time in one
// place: on a busy machine, the first may be slow for another reason. Then it fails unless the
// request's trace has a span of that length.
func wantSlow(t *testing.T, s *shop, r *recorder, member, span string, send func(requestID string)) {
	t.Helper()
	for try := range 20 {
		id := fmt.Sprint("slow", try)
		send(id)
		line := s.line(t, id)
		all, _ := line["ms"].(float64)
		there, _ := line[member].(float64)
		if there < float64(delay.Milliseconds()) || there > all {
			t.Fatalf("%s is %v of %v ms", member, there, all)
		}
		if there > all/2 {
			wantSpan(t, r, id, span)
			return
		}
	}
	t.Errorf("%s is never most of the time", member)
}

// wantSpan ends the recording. It fails unless a request has a span that took the delay.
func wantSpan(t *testing.T, r *recorder, requestID, span string) {
	t.Helper()
	spans := r.ended(t)
	found := named(below(spans, root(t, spans, requestID)), span)
	if found == nil || took(found) < delay {
		t.Errorf("no span %q of %v below the request", span, delay)
	}
}

func TestSlowRequest_SaysThatRedisIsSlow(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	via, slow := slowLine(t, ephemeral.Redis(t))
	s := openShop(t, ephemeral.Redis(t), r.on(t, via))
	guest := s.guest(t)
	guest.add(`{"product_id":1}`)
	guest.cart()
	slow()
	wantSlow(t, s, r, "redis_ms", "redis ", func(id string) { guest.send("GET", "/cart", "", "X-Request-Id", id) })
}

func TestSlowRequest_SaysThatAMergeIsSlow(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	via, slow := slowLine(t, ephemeral.Redis(t))
	s := openShop(t, ephemeral.Redis(t), r.on(t, via))
	guest, customer := s.guest(t), s.customer(t, "1001")
	guest.add(`{"product_id":1}`)
	slow()
	customer.send("GET", "/cart", "", "X-Cart-Token", guest.Token, "X-Request-Id", "slow")
	if spent, _ := s.line(t, "slow")["redis_ms"].(float64); spent < 5*float64(delay.Milliseconds()) { // five steps
		t.Errorf("redis_ms %v", spent)
	}
	wantSpan(t, r, "slow", "merge")
}

func TestSlowRequest_SaysThatPostgresIsSlow(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	via, slow := slowLine(t, ephemeral.Migrated(t))
	s := openShop(t, embeddedRedis(t), func(p *server.Parts) {
		p.Subscriptions = postgres.New(postgres.Config{
			Pool: patientPool(t, via, r.traces.PostgresTracer()), Wait: 10 * time.Second, Budget: 10 * time.Second,
		})
		p.Traces = r.traces
	})
	merchant := s.guest(t)
	list := func(id string) {
		merchant.ok("GET", "/subscriptions", "", "Authorization", "Bearer "+s.API, "X-Request-Id", id)
	}
	list("quick")
	slow()
	wantSlow(t, s, r, "postgres_ms", "postgres ", func(id string) {
		list(id)
		if line := s.line(t, id); line["caller"] != "merchant" || line["store"] != float64(s.ID) {
			t.Errorf("not the store's: %v", line)
		}
	})
}

func TestSlowRequest_SaysThatTheCatalogIsSlow(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	var cache *catalog.Cache
	var slow func()
	s := openShopAs(t, embeddedRedis(t), true, func(p *server.Parts) {
		var via string
		via, slow = slowLine(t, p.Catalog.(*inPostgres).db.Config().ConnString())
		cache = catalog.NewCache(catalog.CacheConfig{
			Source: catalog.NewPostgres(patientPool(t, via, r.traces.PostgresTracer())), Patience: 10 * time.Second,
		})
		p.Catalog, p.Coupons, p.Traces = cache, cache, r.traces
	})
	guest := s.guest(t)
	guest.add(`{"product_id":1}`)
	slow()
	wantSlow(t, s, r, "catalog_ms", "wait for the catalog", func(id string) {
		cache.InvalidateAll()
		guest.send("GET", "/cart", "", "X-Request-Id", id)
		if spent := s.line(t, id)["postgres_ms"]; spent != nil {
			t.Errorf("the load of the cache counts twice: postgres_ms %v", spent)
		}
	})
}

// Lines of fast requests stay short.
func TestLog_SaysWhereOnlySlowAndFailedRequestsSpentTheirTime(t *testing.T) {
	t.Parallel()
	redis := ephemeral.StartRedis(t)
	s := openShop(t, redis.URL)
	guest := s.guest(t)
	guest.add(`{"product_id":1}`)
	within(t, 20*time.Second, "a fast request", func() bool {
		guest.send("GET", "/cart", "", "X-Request-Id", "fast")
		lines := s.Log.logged(t)
		line := lines[len(lines)-1]
		if line["redis_ms"] != nil && line["ms"].(float64) < 100 {
			t.Errorf("the line of a fast request says where its time went: %v", line)
		}
		return line["redis_ms"] == nil
	})
	if line := s.line(t, "fast"); line["store"] != float64(s.ID) || line["caller"] != "guest" {
		t.Errorf("whose request it was is missing in %v", line)
	}
	redis.Stop()
	guest.send("GET", "/cart", "", "X-Request-Id", "failed")
	if line := s.line(t, "failed"); line["redis_ms"] == nil || line["store"] != float64(s.ID) || line["caller"] != "guest" {
		t.Errorf("a failed request does not say whose it was and where its time went: %v", line)
	}
}

func TestLog_NamesTheCallerOfARefusal(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	s.customer(t, "1001").send("POST", "/cart/add", `{}`, "X-Request-Id", "refused")
	s.guest(t).send("GET", "/cart", "", "Authorization", "Bearer none", "X-Request-Id", "unknown")
	if line := s.line(t, "refused"); line["status"] != 422.0 || line["caller"] != "customer" || line["store"] != float64(s.ID) {
		t.Errorf("a refusal: %v", line)
	}
	if line := s.line(t, "unknown"); line["caller"] != nil || line["store"] != nil {
		t.Errorf("a caller who could not be identified: %v", line)
	}
}
