package server_test

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"golang.org/x/net/http/httpguts"

	"commerce/auth"
	"commerce/cart/carthttp"
	"commerce/cart/wire"
	"commerce/cmd/internal/server"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/subscriptionshttp"
)

// Each fuzz target calls the whole service, with its own Redis and Postgres, as `commerce serve`
// uses them. Every response must match the OpenAPI document and must not be a 5xx. The service
// must not log errors, and a refused change must change nothing.

// openFuzzed opens a shop for a fuzz target, with its data in Postgres. Its log contains only
// errors.
func openFuzzed(f *testing.F, edits ...func(*server.Parts)) *shop {
	f.Helper()
	var api string
	fromPostgres := func(p *server.Parts) { api = subscriptionsFromPostgres(f, p) }
	s := openFuzzedAs(f, true, append([]func(*server.Parts){fromPostgres}, edits...)...)
	s.API = api
	return s
}

// openFuzzedAs is openFuzzed with the data in Postgres or in memory.
func openFuzzedAs(f *testing.F, postgres bool, edits ...func(*server.Parts)) *shop {
	f.Helper()
	failures := errorLog{&logBuffer{}}
	logged := func(p *server.Parts) {
		p.Log = slog.New(slog.NewJSONHandler(failures, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	s := openShopAs(f, ephemeral.StartRedis(f).URL, postgres, append([]func(*server.Parts){logged}, edits...)...)
	s.Log = failures.logBuffer
	return s
}

// errorLog keeps the lines of a log that are errors.
type errorLog struct{ *logBuffer }

func (l errorLog) Write(line []byte) (int, error) {
	if !bytes.Contains(line, []byte(`"level":"ERROR"`)) {
		return len(line), nil
	}
	return l.logBuffer.Write(line)
}

// subscriptionsFromPostgres makes a shop read the sample's subscriptions and the API tokens
// from the database of its catalog. It returns an API token.
func subscriptionsFromPostgres(t testing.TB, p *server.Parts) string {
	t.Helper()
	catalog := p.Catalog.(*inPostgres)
	own := catalog.store.ID
	customers, all := sampleOf(own, time.Now())
	customers = slices.DeleteFunc(customers, func(c subscriptions.Customer) bool { return c.StoreID != own })
	all = slices.DeleteFunc(all, func(s subscriptions.Subscription) bool { return s.StoreID != own })
	err := pgx.BeginFunc(t.Context(), catalog.db, func(tx pgx.Tx) error {
		return sample.WriteSubscriptions(t.Context(), tx, customers, all)
	})
	if err != nil {
		t.Fatal(err)
	}
	ephemeral.Settle(t, catalog.db)
	tokens := auth.NewPostgresAPITokens(catalog.db, rand.Reader)
	token, err := tokens.Create(t.Context(), own, "fuzz")
	if err != nil {
		t.Fatal(err)
	}
	p.APITokens = auth.NewAPITokens(auth.APITokensConfig{Source: tokens, Stores: p.Stores})
	p.Subscriptions = postgres.New(postgres.Config{Pool: catalog.db, Budget: 10 * time.Second, Wait: 5 * time.Second})
	return token
}

// begin prepares the shop for one input: it removes the carts of the previous input. At the end,
// the test fails if the service has logged an error.
func (s *shop) begin(t *testing.T) {
	t.Helper()
	if err := s.Redis.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if log := s.Log.String(); log != "" {
			t.Errorf("logged: %s", log)
		}
	})
}

// fuzzed makes one call, which must not get a 5xx. It skips calls that no HTTP client can
// make.
func (c *shopper) fuzzed(method, path string, body []byte, headers ...string) answer {
	c.t.Helper()
	for i := 1; i < len(headers); i += 2 {
		if !httpguts.ValidHeaderFieldValue(headers[i]) {
			c.t.(*testing.T).Skip("no header's value")
		}
	}
	a := c.send(method, path, string(body), headers...)
	if a.Status >= http.StatusInternalServerError {
		c.t.Fatalf("%s %s: %d %s", method, path, a.Status, a.Raw)
	}
	explained := a.Body.Code != "" && a.Body.Message != "" || method == http.MethodHead
	if a.Status != http.StatusOK && a.Status != http.StatusNotModified && !explained {
		c.t.Fatalf("%s %s: %d says nothing: %s", method, path, a.Status, a.Raw)
	}
	return a
}

// sound fails if the numbers of a cart do not add up. The store's prices include tax.
func (b cartBody) sound(t testing.TB) {
	t.Helper()
	minor := func(amount float64) int64 { return int64(math.Round(amount * 100)) }
	var count, subtotal, discount int64
	ids := map[string]bool{}
	for _, item := range b.Items {
		count, subtotal, discount = count+item.Quantity, subtotal+minor(item.TotalPrice), discount+minor(item.Discount)
		if item.Quantity < 1 || item.Quantity > 999 || ids[item.ID] {
			t.Errorf("the cart holds %q", b.lines())
		}
		ids[item.ID] = true
	}
	if b.Count != count || minor(b.Subtotal) != subtotal || minor(b.Discount) != discount || minor(b.Total) != subtotal-discount || discount > subtotal {
		t.Errorf("count %d, subtotal %v, discount %v, total %v: %+v", b.Count, b.Subtotal, b.Discount, b.Total, b.Items)
	}
}

// fuzzedCall is a call to fuzz, with a body that it accepts.
type fuzzedCall struct{ method, path, body string }

// fuzzedCalls returns the calls that FuzzRequest and FuzzRawRequest make.
func fuzzedCalls() []fuzzedCall {
	return []fuzzedCall{
		{"GET", "/cart", ""},
		{"GET", "/cart/count", ""},
		{"GET", "/cart/validate", ""},
		{"GET", "/cart/summary", ""},
		{"POST", "/cart/add", `{"product_id":1}`},
		{"PATCH", "/cart/items/{item_id}", `{"quantity":2}`},
		{"DELETE", "/cart/items/{item_id}", ""},
		{"DELETE", "/cart/clear", ""},
		{"POST", "/cart/coupon", `{"coupon":"TEN"}`},
		{"DELETE", "/cart/coupon", ""},
		{"GET", "/subscriptions", ""},
		{"GET", "/subscriptions/changes", ""},
		{"GET", "/subscriptions/summary", ""},
		{"GET", "/subscriptions/{id}", ""},
	}
}

// fuzzedHeaders returns the headers that FuzzRequest and FuzzRawRequest send.
func fuzzedHeaders() []string {
	return []string{
		"Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Content-Encoding", "Content-Type",
		"Idempotency-Key", "If-Match", "If-None-Match", "Origin", "X-Cart-Token", "X-Client-Auth", "X-Forwarded-For",
		"X-Forwarded-Host", "X-Forwarded-Proto", "X-Public-Key", "X-Request-Id", "X-Signature", "X-Signature-Version",
		"X-Timestamp",
	}
}

func TestFuzzTargets_CallEveryRoute(t *testing.T) {
	t.Parallel()
	var called, served []string
	for _, call := range fuzzedCalls() {
		called = append(called, call.method+" "+call.path)
	}
	parameter := regexp.MustCompile(`:(\w+)`)
	for _, area := range []wire.Area{carthttp.New(nil, nil, "").Area(), subscriptionshttp.New(subscriptionshttp.Config{}).Area()} {
		for _, route := range area.Routes {
			served = append(served, route.Method+" "+parameter.ReplaceAllString(route.Path, "{$1}"))
		}
	}
	slices.Sort(called)
	slices.Sort(served)
	if diff := cmp.Diff(served, called); diff != "" {
		t.Errorf("add the missing routes to fuzzedCalls (-served +fuzzed)\n%s", diff)
	}
}

func TestFuzzTargets_SendEveryHeader(t *testing.T) {
	t.Parallel()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, parameter := range doc.Components.Parameters {
		if parameter.Value.In != "header" {
			continue
		}
		named++
		if !slices.Contains(fuzzedHeaders(), parameter.Value.Name) {
			t.Errorf("add %s to fuzzedHeaders", parameter.Value.Name)
		}
	}
	if named == 0 {
		t.Error("the document names no header")
	}
	allowed := openShop(t, embeddedRedis(t)).guest(t).send("OPTIONS", "/cart", "",
		"Origin", "https://shop.example.com", "Access-Control-Request-Method", "POST").Header.Get("Access-Control-Allow-Headers")
	if allowed == "" {
		t.Error("browsers may send no header")
	}
	for name := range strings.SplitSeq(allowed, ",") {
		if !slices.Contains(fuzzedHeaders(), http.CanonicalHeaderKey(strings.TrimSpace(name))) {
			t.Errorf("add %s to fuzzedHeaders: browsers may send it", name)
		}
	}
}
