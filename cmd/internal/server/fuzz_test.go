package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/net/http/httpguts"

	"commerce/auth"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
	"commerce/subscriptions"
	"commerce/subscriptions/suite"
)

// Each fuzz target calls the whole service, with its own Redis and Postgres, as `commerce serve`
// uses them. Every response must match the OpenAPI document and must not be a 5xx. The service
// must not log errors, and a refused change must change nothing.

// openFuzzed opens a shop with its data in Postgres, which logs only errors.
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
	stopped, stop := context.WithCancel(context.Background())
	stop()
	logged := func(p *server.Parts) {
		p.Ending = stopped // so that streams of events end
		p.Log = slog.New(slog.NewJSONHandler(failures, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	s := openShopAs(f, ephemeral.StartRedis(f).URL, postgres, append([]func(*server.Parts){logged}, edits...)...)
	s.Log = failures.logBuffer
	return s
}

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
	catalog := p.Carts.Catalog.(*inPostgres)
	own := catalog.store.ID
	customers, all := sampleOf(own, time.Now())
	customers = slices.DeleteFunc(customers, func(c subscriptions.Customer) bool { return c.StoreID != own })
	all = slices.DeleteFunc(all, func(s subscriptions.Subscription) bool { return s.StoreID != own })
	assert.NoError(t, pgx.BeginFunc(t.Context(), catalog.db, func(tx pgx.Tx) error {
		return sample.WriteSubscriptions(t.Context(), tx, customers, all)
	}))
	ephemeral.Settle(t, catalog.db)
	tokens := auth.NewPostgresAPITokens(catalog.db)
	token := assert.Must(tokens.Create(t.Context(), own, "fuzz"))(t)
	p.APITokens = auth.NewAPITokens(auth.APITokensConfig{Source: tokens, Stores: p.Stores})
	serveSource(p, suite.Patient(catalog.db))
	return token
}

// begin prepares the shop for one input: it removes the carts of the previous input. At the end,
// the test fails if the service has logged an error.
func (s *shop) begin(t *testing.T) {
	t.Helper()
	assert.NoError(t, s.Redis.FlushDB(t.Context()).Err())
	t.Cleanup(func() { assert.Equal(t, s.Log.String(), "", "logged errors") })
}

// fuzzed makes one call, which must not get a 5xx, if an HTTP client can make it.
func (c *shopper) fuzzed(method, path string, body []byte, headers ...string) answer {
	c.t.Helper()
	for i := 1; i < len(headers); i += 2 {
		if !httpguts.ValidHeaderFieldValue(headers[i]) {
			c.t.(*testing.T).Skip("no header's value")
		}
	}
	a := c.send(method, path, string(body), headers...)
	assert.Require(c.t, a.Status < http.StatusInternalServerError, "%s %s: %d %s", method, path, a.Status, a.Raw)
	explained := a.Body.Code != "" && a.Body.Message != "" || method == http.MethodHead || forAgents(c.request(method, path, nil).URL.Path)
	assert.Require(c.t, a.Status == http.StatusOK || a.Status == http.StatusNotModified || explained, "%s %s: %d says nothing: %s", method, path, a.Status, a.Raw)
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
		assert.That(t, item.Quantity >= 1 && item.Quantity <= 999 && !ids[item.ID], "the cart holds %q", b.lines())
		ids[item.ID] = true
	}
	assert.That(t, b.Count == count && minor(b.Subtotal) == subtotal && minor(b.Discount) == discount && minor(b.Total) == subtotal-discount && discount <= subtotal, "count %d, subtotal %v, discount %v, total %v: %+v", b.Count, b.Subtotal, b.Discount, b.Total, b.Items)
}

type fuzzedCall struct{ method, path, body string }

func fuzzedCalls() []fuzzedCall {
	return []fuzzedCall{
		{"GET", "/cart", ""},
		{"GET", "/cart/count", ""},
		{"GET", "/cart/validate", ""},
		{"GET", "/cart/summary", ""},
		{"GET", "/cart/events", ""},
		{"POST", "/cart/add", `{"product_id":1}`},
		{"PATCH", "/cart/items/{item_id}", `{"quantity":2}`},
		{"DELETE", "/cart/items/{item_id}", ""},
		{"POST", "/cart/ops", `{"ops":[{"op":"add","product_id":1},{"op":"edit","item":"1","notice":"n"},{"op":"coupon","coupon":"TEN"}],"mode":"each"}`},
		{"DELETE", "/cart/clear", ""},
		{"POST", "/cart/coupon", `{"coupon":"TEN"}`},
		{"DELETE", "/cart/coupon", ""},
		{"POST", "/cart/handover", ""},
		{"POST", "/cart/handover/redeem", `{"code":"none","preview":true}`},
		{"POST", "/cart/merge/undo", `{"id":"5APZMAR32G"}`},
		{"POST", "/cart/share", ""},
		{"GET", "/cart/share/{code}", ""},
		{"DELETE", "/cart/share/{code}", ""},
		{"GET", "/.well-known/ucp", ""},
		{"POST", "/ucp/{key}/carts", `{"line_items":[{"item":{"id":"1"},"quantity":1}],"discounts":{"codes":["TEN"]}}`},
		{"GET", "/ucp/{key}/carts/{id}", ""},
		{"PUT", "/ucp/{key}/carts/{id}", `{"line_items":[{"item":{"id":"1"},"quantity":2}]}`},
		{"POST", "/ucp/{key}/carts/{id}/cancel", `{}`},
		{"POST", "/ucp/{key}/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_cart","arguments":{"id":"x"}}}`},
		{"GET", "/subscriptions", ""},
		{"GET", "/subscriptions/changes", ""},
		{"GET", "/subscriptions/events", ""},
		{"GET", "/subscriptions/summary", ""},
		{"GET", "/subscriptions/metrics", ""},
		{"GET", "/subscriptions/{id}", ""},
		{"GET", "/subscriptions/{id}/history", ""},
		{"GET", "/ucp/{key}/profiles/{release}", ""},
		{"GET", "/ucp/{key}/buy/{items}", ""},
	}
}

func fuzzedHeaders() []string {
	return []string{
		"Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Content-Encoding", "Content-Type",
		"Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-Id", "Origin", "X-Cart-Token", "X-Client-Auth", "X-Forwarded-For",
		"X-Forwarded-Host", "X-Forwarded-Proto", "X-Public-Key", "X-Request-Id", "X-Signature", "X-Signature-Version",
		"X-Timestamp", "UCP-Agent",
	}
}

func TestFuzzTargets_CallEveryRoute(t *testing.T) {
	t.Parallel()
	var called []string
	for _, call := range fuzzedCalls() {
		called = append(called, call.method+" "+call.path)
	}
	slices.Sort(called)
	assert.Equal(t, called, servedRoutes(), "routes in fuzzedCalls")
}

func TestFuzzTargets_SendEveryHeader(t *testing.T) {
	t.Parallel()
	doc := assert.Must(document())(t)
	named := 0
	for _, parameter := range doc.Components.Parameters {
		if parameter.Value.In != "header" {
			continue
		}
		named++
		assert.That(t, slices.Contains(fuzzedHeaders(), parameter.Value.Name), "add %s to fuzzedHeaders", parameter.Value.Name)
	}
	assert.That(t, named != 0, "the document names no header")
}

// FuzzRequest makes any call with any path segment, query, headers and body. Each line of headers
// is one header, whose first byte chooses the name. Without an Authorization header, the caller
// is a guest, or the store's program for subscriptions.
func FuzzRequest(f *testing.F) {
	seedRequests(f)
	s := openFuzzed(f, func(p *server.Parts) { p.TrustedProxies = []string{"127.0.0.1"} })
	customer := s.token(f, "1001")
	f.Fuzz(func(t *testing.T, route byte, head bool, segment, query string, headers, body []byte) {
		s.begin(t)
		c := s.guest(t)
		tag := c.add(`{"product_id":1}`).Header.Get("ETag")
		call := fuzzedCalls()[int(route)%len(fuzzedCalls())]
		path := strings.NewReplacer("{item_id}", url.PathEscape(segment), "{id}", url.PathEscape(segment), "{items}", url.PathEscape(segment), "{release}", url.PathEscape(segment), "{key}", s.Key).Replace(call.path)
		if _, err := url.Parse("/?" + query); err == nil && query != "" && !strings.ContainsAny(query, "# \t\r\n") {
			path += "?" + query
		}
		if head && call.method == http.MethodGet {
			call.method = http.MethodHead
		}
		given := readHeaders(headers, strings.NewReplacer("{customer}", customer, "{store}", s.API, "{key}", s.Key, "{token}", c.Token, "{tag}", tag))
		asGuest := !slices.Contains(given, "Authorization") && !slices.Contains(given, "X-Cart-Token")
		if strings.HasPrefix(call.path, "/subscriptions") && asGuest {
			given = append(given, "Authorization", "Bearer "+s.API)
		}
		a := s.with(t, c).fuzzed(call.method, path, body, given...)
		s.wantOwnStore(t, given, call.path, a)
		after := c.cart()
		after.sound(t)
		untouched := after.Version == 1 && after.lines() == "1×1" && after.Coupon == nil
		reads := call.method == http.MethodGet || call.method == http.MethodHead
		assert.Require(t, (!asGuest || !reads && a.Status < 300 || untouched) && after.Version <= 2, "%s %s: %d %s, and the cart holds %q at version %d", call.method, path, a.Status, a.Body.Code, after.lines(), after.Version)
		if asGuest && !reads && !untouched {
			s.wantAsked(t, c, call, path, body, given, tag, a, after)
		}
	})
}

// wantAsked fails unless a guest's change that was made is the one that was sent, was sent for this cart, and is known when it is repeated.
func (s *shop) wantAsked(t *testing.T, c *shopper, call fuzzedCall, path string, body []byte, headers []string, tag string, a answer, after cartBody) {
	t.Helper()
	part, _, _ := strings.Cut(tag, "-")
	keys := 0
	for i := 0; i < len(headers); i += 2 {
		switch headers[i] {
		case "If-Match":
			all := strings.Join(headers, " ")
			assert.Require(t, strings.Contains(all, "*") || strings.Contains(all, part), "If-Match %q is not of this cart", headers[i+1])
		case "Idempotency-Key":
			keys++
		}
	}
	if call.path == "/cart/add" {
		asked, err := quantitiesIn(body)
		want := append([]float64{1}, asked...)[len(asked)]
		assert.Require(t, err == nil && float64(after.Count) == 1+want, "%d in the cart, want %v more than 1, %v", after.Count, want, err)
	}
	if keys == 1 && call.path != redeem {
		assert.Require(t, s.with(t, c).fuzzed(call.method, path, body, headers...).replayed(t), "a repeat was applied: %d", a.Status)
	}
}

func seedRequests(f *testing.F) {
	line := func(name, value string) string {
		return string(rune('A'+slices.Index(fuzzedHeaders(), name))) + value + "\n"
	}
	for i, call := range fuzzedCalls() {
		f.Add(byte(i), false, "1", "", []byte(nil), []byte(call.body))
		f.Add(byte(i), true, "5001", "page=1", []byte(line("Accept-Language", "ar;q=0.5, *;q=0.1")+line("X-Public-Key", "{key}")), []byte("{"))
		f.Add(byte(i), false, "a/b", "customerEmail=%00@x", []byte(line("Authorization", "Bearer {customer}")+line("X-Forwarded-For", "::1, x")), []byte(call.body))
	}
	for body, route := range map[string]string{
		`{"product_id":1.0,"qty":2e0}`: "/cart/add", `{"product_id":2,"quantity":3,"notice":"é\u0000"}`: "/cart/add", `{"product_id":1,"qUantity":3}`: "/cart/add",
		`{"product_id":4,"subscription_plan":{"id":42}}`: "/cart/add", `{"product_id":5,"fields":{"0":"x","Region":null}}`: "/cart/add",
		`{"product_id":1,"qty":1e400}`: "/cart/add", `{"product_id":-1,"qty":-0.0}`: "/cart/add",
		`{"code":"five"}`: "/cart/coupon", `{"coupon":null,"code":"TEN"}`: "/cart/coupon", `{"coupon":"TEN","code":"FIVE"}`: "/cart/coupon", `{"coupon":"\u0000ß"}`: "/cart/coupon",
	} {
		i := slices.IndexFunc(fuzzedCalls(), func(c fuzzedCall) bool { return c.method == "POST" && c.path == route })
		f.Add(byte(i), false, "1", "", []byte(line("Content-Type", "application/json")), []byte(body))
	}
	patch := slices.IndexFunc(fuzzedCalls(), func(c fuzzedCall) bool { return c.method == "PATCH" })
	for _, body := range []string{
		`{"qty":0}`, `{"quantity":1,"qty":1.0}`, `{"quantity":1e-400}`, `[]`, ``, `{"fields":{"0":"b","1":null},"notice":"n"}`, `{"fields":null}`,
		`{"notice":"\u200b"}`, `{"subscription_plan":{"id":null}}`, `{"product_id":5,"qty":998}`,
	} {
		f.Add(byte(patch), false, "1", "", []byte(line("Content-Type", "application/json")+line("Idempotency-Key", "k")), []byte(body))
	}
	for _, id := range []string{"v", "1:n", "1.p1", "5.fAAAAAAAAAAAAAAAA", "..", "\x00", "٣", "+", "%31", ""} {
		f.Add(byte(patch), false, id, "", []byte(nil), []byte(`{"quantity":2}`))
	}
	for _, credentials := range []string{
		line("X-Cart-Token", "*?[a-z]aaaaaaaaaaaaaaaa"), line("X-Cart-Token", strings.Repeat("aZ9_-", 5)+"\xff"), line("X-Cart-Token", "{1:c:1001}aaaaaaaaaaaaaaaa"),
		line("Authorization", "Bearer .."), line("Authorization", "Bearer 1|secret"), line("Authorization", "Bearer {customer}="),
		line("Authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIiwiZXhwIjo5OTk5OTk5OTk5fQ."), line("Authorization", "Bearer 9223372036854775807|"+strings.Repeat("a", 43)),
	} {
		f.Add(byte(patch), false, "1", "", []byte(credentials), []byte(`{"quantity":2}`))
	}
	for n, headers := range []string{
		line("Content-Type", "application/json") + line("Idempotency-Key", "k") + line("If-Match", "*"),
		line("If-Match", `W/"a.1-b"`) + line("If-None-Match", `"a" , "b"`) + line("X-Timestamp", "\xff"),
		line("If-Match", ` . `) + line("If-None-Match", `"\"`) + line("Idempotency-Key", strings.Repeat("k", 256)) + line("X-Request-Id", strings.Repeat("x", 65)),
		line("X-Public-Key", "pk_demo") + line("Content-Type", "text/plain"),
		line("X-Public-Key", "\xff") + line("Accept-Language", ";;q=,") + line("Content-Type", "application/json; charset=latin1"),
		line("Content-Encoding", "gzip") + line("Accept-Encoding", "gzip;q=1"),
		line("Origin", "https://shop.example.com") + line("If-None-Match", "{tag}") + line("If-Match", "{tag}"),
		line("Idempotency-Key", "k") + line("Idempotency-Key", "k") + line("X-Timestamp", "1"),
		line("Authorization", "Bearer {store}") + line("Authorization", "Basic eDp5") + line("X-Cart-Token", "{token}"),
		line("X-Forwarded-Host", "a:80") + line("X-Forwarded-Proto", "https") + line("X-Request-Id", "\xff"),
		line("X-Client-Auth", "a") + line("X-Signature", "b") + line("X-Signature-Version", "2") + line("Accept", "text/csv;q=0"),
	} {
		for i := n % 3; i < len(fuzzedCalls()); i += 3 { // each seed takes time
			f.Add(byte(i), false, "1", "", []byte(headers), []byte(fuzzedCalls()[i].body))
		}
	}
}

// readHeaders returns the headers in lines, in the form that send takes. It leaves out values
// that no HTTP client can send.
func readHeaders(lines []byte, known *strings.Replacer) (headers []string) {
	for line := range bytes.SplitSeq(lines, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		name := fuzzedHeaders()[int(line[0]-'A')%len(fuzzedHeaders())]
		if value := known.Replace(string(line[1:])); httpguts.ValidHeaderFieldValue(value) {
			headers = append(headers, name, value)
		}
	}
	return headers
}

// wantOwnStore fails if a cart was shown although X-Public-Key names another store.
func (s *shop) wantOwnStore(t *testing.T, headers []string, path string, a answer) {
	t.Helper()
	for i := 0; i < len(headers); i += 2 {
		key := strings.TrimSpace(headers[i+1])
		assert.Require(t, headers[i] != "X-Public-Key" || a.Status != http.StatusOK || !strings.HasPrefix(path, "/cart") || key == s.Key || key == "", "%s: store %q is not this one", path, key)
	}
}

// quantitiesIn returns the quantities in a body, as another JSON parser reads them. It matches
// member names exactly, unlike that parser when it decodes into a struct.
func quantitiesIn(body []byte) (quantities []float64, err error) {
	var members map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&members); err != nil {
		return nil, err
	}
	for _, name := range []string{"qty", "quantity"} {
		var quantity *float64
		if text, ok := members[name]; ok {
			if err := json.Unmarshal(text, &quantity); err != nil {
				return nil, err
			}
		}
		if quantity != nil {
			quantities = append(quantities, *quantity)
		}
	}
	return quantities, nil
}
