package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"commerce/cart/wire"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func (l *logBuffer) logged(t testing.TB) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for text := range strings.Lines(l.String()) {
		lines = append(lines, decode[map[string]any](t, []byte(text)))
	}
	return lines
}

var planted = struct {
	token, ownToken, key, email, field, notice, customer, name, query, path, other string
}{
	token: "planted-token-000000000000", ownToken: "planted-stale token", key: "planted-key", email: "planted@example.com",
	field: "planted-field", notice: "planted-notice", customer: "planted-customer@example.com", name: "planted-member",
	query: "planted-query", path: "planted-item", other: "planted-header",
}

// plant makes every kind of call with secrets everywhere, and returns how many it made.
func plant(t testing.TB, s *shop) int {
	headers := func(more ...string) []string {
		return append([]string{
			"Idempotency-Key", planted.key, "X-Timestamp", planted.other + "1", "X-Signature", planted.other + "2",
			"X-Client-Auth", planted.other + "3", "Cookie", planted.other + "4", "User-Agent", planted.other + "5",
			"UCP-Agent", `profile="https://` + planted.other + `7.example.com/"`, "Referer", "https://" + planted.other + ".example.com/", "X-Forwarded-For", planted.other + "6",
		}, more...)
	}
	calls := [][3]string{
		{"GET", "/cart?email=" + planted.query},
		{"POST", "/cart/add", `{"product_id":5,"fields":{"Account email":"` + planted.email + `"},"notice":"` + planted.notice + `"}`},
		{"POST", "/cart/add?" + planted.query, `{"product_id":5,"fields":{"` + planted.name + `":"` + planted.field + `"}}`},
		{"POST", "/cart/add", `{"product_id":5,"fields":{"0":"` + planted.field + `","1":"` + planted.field + `"}}`},
		{"POST", "/cart/add", `{"product_id":"` + planted.field + `","` + planted.name + `":1}`},
		{"POST", "/cart/add", `{"product_id":1,"` + planted.name + `":1,"` + planted.name + `":2}`},
		{"POST", "/cart/add", `{"` + planted.field},
		{"POST", "/cart/add", `{"product_id":1} ` + planted.field},
		{"PATCH", "/cart/items/" + planted.path, `{"quantity":1}`},
		{"PATCH", "/cart/items/1", `{"quantity":"` + planted.field + `"}`},
		{"DELETE", "/cart/items/" + planted.path},
		{"GET", "/cart/count"},
		{"GET", "/cart/validate"},
		{"GET", "/cart/summary"},
		{"DELETE", "/cart/clear"},
		{"POST", "/ucp/" + s.Key + "/carts", `{"line_items":[{"item":{"id":"1"},"quantity":1}],"buyer":{"email":"` + planted.email + `"}}`},
		{"PUT", "/ucp/" + s.Key + "/carts/" + planted.path, `{"line_items":[],"` + planted.name + `":1}`},
		{"GET", "/ucp/" + planted.path + "/carts/" + planted.path},
		{"POST", "/ucp/" + s.Key + "/mcp", `{"jsonrpc":"2.0","id":"` + planted.field + `","method":"` + planted.name + `"}`},
		{"GET", "/" + planted.path + "?" + planted.query},
		{"PUT", "/cart", planted.field},
	}
	odd := [][]string{
		{"X-Cart-Token", planted.ownToken},
		{"Authorization", "Bearer " + planted.token},
		{"Authorization", "Basic " + planted.token},
		{"X-Public-Key", planted.other},
		{"If-Match", planted.other},
		{"If-None-Match", planted.other},
		{"If-Match", `"` + planted.other + `.1-x"`},
		{"Content-Type", planted.other + "/json"},
		{"Accept-Language", planted.other},
		{"X-Request-Id", planted.other + " with a space"},
	}
	at(len(calls), func(i int) {
		guest, customer := s.guest(t), s.customer(t, planted.customer)
		guest.Token, customer.Token = planted.token, planted.token
		for _, c := range []*shopper{guest, s.guest(t), customer} {
			c.send(calls[i][0], calls[i][1], calls[i][2], headers()...)
		}
		for _, more := range odd {
			guest.send(calls[i][0], calls[i][1], calls[i][2], headers(more...)...)
		}
	})
	return len(calls) * (3 + len(odd))
}

// wantClean wants one line for each request, and no planted value or issued token in any.
func (s *shop) wantClean(t *testing.T, requests int) {
	t.Helper()
	log := s.Log.String()
	for _, secret := range []string{"planted", strings.Split(s.token(t, planted.customer), ".")[0] + ".", "@example.com"} {
		at := strings.Index(strings.ToLower(log), strings.ToLower(secret))
		assert.That(t, at < 0, "in the log: …%s…", log[max(0, at-200):min(len(log), at+100)])
	}
	seen := map[any]bool{}
	for _, line := range s.Log.logged(t) {
		if line["msg"] != "request" {
			continue
		}
		for _, name := range []string{"time", "level", "method", "route", "status", "ms", "request_id"} {
			assert.That(t, line[name] != nil, "no %s in %v", name, line)
		}
		assert.That(t, !seen[line["request_id"]], "two lines of request %v", line["request_id"])
		seen[line["request_id"]] = true
		status := line["status"].(float64)
		assert.That(t, status < 400 || line["code"] != nil, "no code in %v", line)
	}
	assert.That(t, len(seen) == requests, "%d lines for %d requests", len(seen), requests)
}

func TestLog_AndTracesHaveEachRequestOnceAndNoSecret(t *testing.T) {
	s, r := traced(t, ephemeral.Redis(t))
	requests := plant(t, s) + 2
	issued := s.guest(t).fill("1×1")
	s.guest(t).send("GET", "/cart", "", "tracestate", "planted=planted", "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	s.wantClean(t, requests)
	assert.That(t, !strings.Contains(s.Log.String(), issued.Token), "an issued token is in the log")
	spans := r.ended(t)
	wantNoSecret(t, spans)
	ofRequests := slices.DeleteFunc(slices.Clone(spans), func(s sdk.ReadOnlySpan) bool { return s.SpanKind() != trace.SpanKindServer })
	assert.Equal(t, len(ofRequests), requests, "number of spans of requests")
}

func TestLog_AndTracesHaveNoSecretWhenRedisIsDown(t *testing.T) {
	ephemeral.Slow(t)
	redis := ephemeral.StartRedis(t)
	s, r := traced(t, redis.URL)
	s.guest(t).fill("1×1")
	redis.Stop()
	requests := plant(t, s)
	s.wantClean(t, requests+1)
	failed := 0
	for _, line := range s.Log.logged(t) {
		if line["status"] == 503.0 {
			failed++
			assert.That(t, line["level"] == "ERROR" && line["err"] != nil, "a failure without an error: %v", line)
		}
	}
	assert.That(t, failed != 0, "nothing failed")
	wantNoSecret(t, r.ended(t))
}

func TestLog_HasTheDetailsOfADefectAndTheResponseNone(t *testing.T) {
	t.Parallel()
	h, log := handlerOf(t, func(c *server.Config) {
		c.Areas = slices.Concat(
			only("/panic", func(*gin.Context) (wire.Answer, error) { panic("the cause") }),
			only("/range", func(c *gin.Context) (wire.Answer, error) { _ = c.Params[len(c.Params)]; return wire.Answer{}, nil }),
			only("/defect", func(*gin.Context) (wire.Answer, error) {
				return wire.Answer{}, &json.UnsupportedValueError{Str: "the cause"}
			}),
		)
	})
	for _, path := range []string{"/panic", "/range", "/defect"} {
		w := ask(h, "192.0.2.1", "GET", path, "X-Request-Id", "the-id")
		assert.That(t, w.Code == 500 && decode[body](t, w.Body.Bytes()).Code == "internal" && !strings.Contains(w.Body.String(), "cause") && !strings.Contains(w.Body.String(), "range"), "%s: %d %s", path, w.Code, w.Body)
	}
	requests, causes, stacks := 0, 0, 0
	for _, line := range log.logged(t) {
		assert.That(t, line["request_id"] == "the-id", "unexpected line: %v", line)
		if line["msg"] == "request" {
			requests++
			if text, _ := line["err"].(string); strings.Contains(text, "the cause") || strings.Contains(text, "out of range") {
				causes++
			}
		}
		if text, _ := line["stack"].(string); strings.Contains(text, "log_test.go") {
			stacks++
		}
	}
	assert.That(t, requests == 3 && causes == 3 && stacks == 2, "%d lines, %d causes, %d stacks:\n%s", requests, causes, stacks, log.String())
}

func TestLog_TruncatesWhatACallerSends(t *testing.T) {
	t.Parallel()
	h, log := handlerOf(t, func(c *server.Config) {
		c.Areas = only("/defect", func(c *gin.Context) (wire.Answer, error) {
			return wire.Answer{}, fmt.Errorf("no %s", c.Query("q"))
		})
	})
	long := strings.Repeat("X", 60_000)
	ask(h, "192.0.2.1", long, "/nothing", "User-Agent", long, "X-Request-Id", long)
	ask(h, "192.0.2.1", "GET", "/"+long)
	ask(h, "192.0.2.1", "GET", "/defect?q="+long)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	assert.That(t, len(lines) == 3, "%d lines for 3 requests", len(lines))
	for _, line := range lines {
		assert.That(t, len(line) <= 4<<10, "a line of %d bytes: %.200s…", len(line), line)
	}
}

// Lines of fast requests stay short.
func TestLog_SaysWhereOnlySlowAndFailedRequestsSpentTheirTime(t *testing.T) {
	s, redis := fragileShop(t)
	guest := s.guest(t).fill("1×1")
	ephemeral.Eventually(t, "a fast request", func() bool {
		guest.send("GET", "/cart", "", "X-Request-Id", "fast")
		lines := s.Log.logged(t)
		line := lines[len(lines)-1]
		assert.That(t, line["redis_ms"] == nil || line["ms"].(float64) >= 100, "the line of a fast request says where its time went: %v", line)
		return line["redis_ms"] == nil
	})
	s.wantCaller(t, "fast", "guest")
	redis.Stop()
	guest.send("GET", "/cart", "", "X-Request-Id", "failed")
	s.wantCaller(t, "failed", "guest")
	assert.That(t, s.line(t, "failed")["redis_ms"] != nil, "a failed request does not say where its time went")
}

func (s *shop) wantCaller(t *testing.T, requestID string, caller any) {
	t.Helper()
	store := map[bool]any{true: float64(s.ID), false: nil}[caller != nil]
	line := s.line(t, requestID)
	assert.Equal(t, []any{line["store"], line["caller"]}, []any{store, caller}, "store and caller of %s", requestID)
}

func TestLog_NamesTheCallerOfARefusal(t *testing.T) {
	s := newShop(t)
	s.customer(t, "1001").send("POST", "/cart/add", `{}`, "X-Request-Id", "refused")
	s.guest(t).send("GET", "/cart", "", "Authorization", "Bearer none", "X-Request-Id", "unknown")
	s.wantCaller(t, "refused", "customer")
	assert.Equal(t, s.line(t, "refused")["status"], any(422.0), "status")
	s.wantCaller(t, "unknown", nil)
}
