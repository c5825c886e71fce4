package server_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"commerce/cart/catalog"
	"commerce/cmd/internal/server"
	"commerce/cmd/internal/telemetry"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/subscriptions/postgres"
)

func metricsPage(t *testing.T, m *telemetry.Metrics) []string {
	t.Helper()
	var series []string
	for line := range strings.Lines(ask(m.Handler(), "192.0.2.1", "GET", "/metrics").Body.String()) {
		if strings.HasPrefix(line, "commerce_") {
			series = append(series, line)
		}
	}
	return series
}

func metric(t *testing.T, m *telemetry.Metrics, series string) float64 {
	t.Helper()
	for _, line := range metricsPage(t, m) {
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			return assert.Must(strconv.ParseFloat(strings.TrimSpace(text), 64))(t)
		}
	}
	return 0
}

// maxSeries bounds the series of an instance, whatever callers send. About 500 exist from the
// start. Each combination of method, route and status that occurs adds 15.
const maxSeries = 2500

func TestMetrics_HaveNoLabelsFromCallers(t *testing.T) {
	s := realShop(t)
	c := s.guest(t)
	const planted = "planted"
	paths := []string{"/", "/cart", "/cart/count", "/cart/add", "/cart/items/", "/cart/coupon", "/cart/handover/redeem", "/cart/share/", "/subscriptions", "/subscriptions/", "/cart/validate?x="}
	methods := []string{"GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT", planted}
	for i := range 600 {
		mark := planted + rand.Text()
		method, path := methods[i%len(methods)], paths[i%len(paths)]
		if method == planted {
			method = mark
		}
		if i%2 == 0 {
			path += mark
		}
		headers := []string{
			"X-Cart-Token", mark, "X-Request-Id", mark, "Idempotency-Key", mark, "If-Match", `"` + mark + `"`,
			"Accept-Language", mark, "Origin", "https://" + mark,
		}
		switch i % 3 {
		case 0:
			headers = append(headers, "X-Public-Key", mark)
		case 1:
			headers = append(headers, "Authorization", "Bearer "+mark)
		}
		c.quickly(method, path, `{"product_id":1,"coupon":"`+mark+`"}`, headers...)
	}
	page := metricsPage(t, s.Metrics)
	for _, series := range page {
		assert.That(t, !strings.Contains(strings.ToLower(series), planted) && !strings.Contains(series, `store`+`="`), "a label comes from a caller, or names a store: %s", series)
	}
	assert.That(t, len(page) <= maxSeries, "%d series, want at most %d", len(page), maxSeries)
}

func TestMetrics_CountWhatHappensToCarts(t *testing.T) {
	s := realShop(t)
	guest := s.guest(t)
	guest.add(`{"product_id":1}`, "Idempotency-Key", "k")
	guest.add(`{"product_id":1}`, "Idempotency-Key", "k")
	guest.refused(409, "idempotency_conflict", "POST", "/cart/add", `{"product_id":2}`, "Idempotency-Key", "k")
	guest.refused(412, "version_mismatch", "POST", "/cart/add", `{"product_id":2}`, "If-Match", `"x.1"`)
	guest.refused(422, "product_inactive", "POST", "/cart/add", `{"product_id":3}`)
	guest.ok("GET", "/cart/validate", "")
	customer := guest.logIn("1")
	customer.cart()
	customer.withoutToken().add(`{"product_id":2,"qty":3}`)
	s.customer(t, "2").add(`{"product_id":2}`)
	s.Catalog.Delete(s.ID, 2)
	customer.withoutToken().refused(400, "cart_invalid", "GET", "/cart/validate", "")
	s.guest(t).refused(401, "unauthenticated", "GET", "/cart", "", "Authorization", "Bearer x")
	for series, want := range map[string]float64{
		`commerce_carts_created_total{owner="guest"}`:                             1,
		`commerce_carts_created_total{owner="customer"}`:                          1,
		`commerce_idempotent_replays_total`:                                       1,
		`commerce_conflicts_total{code="idempotency_conflict"}`:                   1,
		`commerce_conflicts_total{code="version_mismatch"}`:                       1,
		`commerce_cart_refusals_total{code="product_inactive",route="/cart/add"}`: 1,
		`commerce_merges_total{outcome="merged"}`:                                 1,
		`commerce_merge_duration_seconds_count`:                                   1,
		`commerce_cart_validation_issues_total{code="product_not_found"}`:         1,
		`commerce_bad_credentials_total{kind="malformed"}`:                        1,
		`commerce_http_requests_in_flight`:                                        0,
	} {
		assert.Equal(t, metric(t, s.Metrics, series), want, "%s", series)
	}
}

// delay is how long replies take on a slow line: longer than a request that is slow by itself.
const delay = 400 * time.Millisecond

// slowLine returns a server's URL by a proxy, and a function that delays its replies.
func slowLine(t testing.TB, server string) (via string, slow func()) {
	t.Helper()
	u := assert.Must(url.Parse(server))(t)
	proxy := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "line", "127.0.0.1:0", u.Host)
	assert.NoError(t, proxy.Start())
	t.Cleanup(proxy.Stop)
	u.Host = proxy.Listen
	return u.String(), func() {
		toxic := fmt.Sprintf(`{"type":"latency","stream":"downstream","attributes":{"latency":%d}}`, delay.Milliseconds())
		assert.Must(proxy.Toxics.AddToxicJson(strings.NewReader(toxic)))(t)
	}
}

func patientPool(t testing.TB, url string, tracer pgx.QueryTracer) *pgxpool.Pool {
	t.Helper()
	return ephemeral.OpenPool(t, url, connect.PostgresConfig{
		StatementTimeout: -1, Tracer: tracer,
		Edit: func(c *pgxpool.Config) { c.PingTimeout = ephemeral.Patience(10 * time.Second) },
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
		assert.Require(t, there >= float64(delay.Milliseconds()) && there <= all, "%s is %v of %v ms", member, there, all)
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
	assert.That(t, found != nil && took(found) >= delay, "no span %q of %v below the request", span, delay)
}

func TestSlowRequest_SaysThatRedisIsSlow(t *testing.T) {
	r := newRecorder(t)
	via, slow := slowLine(t, ephemeral.Redis(t))
	s := realShop(t, r.on(t, via))
	guest := s.guest(t).fill("1×1")
	guest.cart()
	slow()
	wantSlow(t, s, r, "redis_ms", "redis ", func(id string) { guest.send("GET", "/cart", "", "X-Request-Id", id) })
}

func TestSlowRequest_SaysThatAMergeIsSlow(t *testing.T) {
	r := newRecorder(t)
	via, slow := slowLine(t, ephemeral.Redis(t))
	s := realShop(t, r.on(t, via))
	guest, customer := s.guest(t), s.customer(t, "1001")
	guest.add(`{"product_id":1}`)
	slow()
	customer.send("GET", "/cart", "", "X-Cart-Token", guest.Token, "X-Request-Id", "slow")
	spent, _ := s.line(t, "slow")["redis_ms"].(float64)
	assert.That(t, spent >= 5*float64(delay.Milliseconds()), "redis_ms %v, want those of five steps", spent)
	wantSpan(t, r, "slow", "merge")
}

func TestSlowRequest_SaysThatPostgresIsSlow(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	via, slow := slowLine(t, ephemeral.Migrated(t))
	s := openShop(t, embeddedRedis(t), func(p *server.Parts) {
		p.Subscriptions = postgres.New(postgres.NewServers(postgres.Config{
			Pool: patientPool(t, via, telemetry.New("test").PostgresTracer()), Wait: ephemeral.Patience(10 * time.Second), Budget: ephemeral.Patience(10 * time.Second),
		}), nil)
		p.Traces = r.traces
	})
	list := func(id string) { s.merchant(t).ok("GET", "/subscriptions", "", "X-Request-Id", id) }
	list("quick")
	slow()
	wantSlow(t, s, r, "postgres_ms", "postgres ", func(id string) {
		list(id)
		line := s.line(t, id)
		assert.That(t, line["caller"] == "merchant" && line["store"] == float64(s.ID), "not the store's: %v", line)
	})
}

func TestSlowRequest_SaysThatTheCatalogIsSlow(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	var cache *catalog.Cache
	var slow func()
	s := openShopAs(t, embeddedRedis(t), true, func(p *server.Parts) {
		var via string
		via, slow = slowLine(t, p.Carts.Catalog.(*inPostgres).db.Config().ConnString())
		cache = catalog.NewCache(catalog.CacheConfig{
			Source: catalog.NewPostgres(patientPool(t, via, telemetry.New("test").PostgresTracer())), Patience: ephemeral.Patience(10 * time.Second),
		})
		p.Carts.Catalog, p.Carts.Coupons, p.Traces = cache, cache, r.traces
	})
	guest := s.guest(t).fill("1×1")
	slow()
	wantSlow(t, s, r, "catalog_ms", "wait for the catalog", func(id string) {
		cache.InvalidateAll()
		guest.send("GET", "/cart", "", "X-Request-Id", id)
		spent := s.line(t, id)["postgres_ms"]
		assert.That(t, spent == nil, "the load of the cache counts twice: postgres_ms %v", spent)
	})
}

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
