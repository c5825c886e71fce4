package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// unreadable are bodies that every call refuses. Package wire tests all of their kinds.
func unreadable(c *shopper, method, path string) []refusal {
	return []refusal{
		{c, method, path, `{"product_id":1,"quantity":3`, nil, 400, "malformed_json", nil},
		{c, method, path, `{"product_id":1,"quantity":3,"quantity":3}`, nil, 400, "malformed_json", []string{"quantity"}},
		{c, method, path, `{"product_id":1,"quantity":3,"x":[{"a":1,"a":1}]}`, nil, 400, "malformed_json", []string{"x.0.a"}},
		{c, method, path, strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), nil, 400, "malformed_json", nil},
		{c, method, path, padded(64<<10 + 1), nil, 413, "body_too_large", nil},
	}
}

func padded(n int) string {
	const frame = `{"product_id":1,"quantity":3,"pad":""}`
	return strings.Replace(frame, `""`, `"`+strings.Repeat("x", n-len(frame))+`"`, 1)
}

// One body of each kind. Packages carthttp and cart test all values of the members.
func TestBody_ABadOneChangesNothing(t *testing.T) {
	s := newShop(t)
	c := s.guest(t).fill("1×2")
	before := c.tag()
	const add, item = "/cart/add", "/cart/items/1"
	wantRefused(t, slices.Concat(unreadable(c, "POST", add), unreadable(c, "PATCH", item), unreadable(c, "POST", "/cart/coupon"), unreadable(c, "POST", "/cart/ops"), []refusal{
		{c, "POST", add, `{}`, nil, 422, "validation_failed", []string{"product_id"}},
		{c, "POST", add, `{"product_id":5,"fields":{"0":"` + strings.Repeat("x", 4097) + `"}}`, nil, 422, "validation_failed", []string{"fields"}},
		{c, "POST", add, `{"product_id":1,"qty":1000}`, nil, 422, "quantity_out_of_range", []string{"qty"}},
		{c, "POST", add, `{"product_id":2,"qty":4}`, nil, 422, "insufficient_stock", []string{"qty"}},
		{c, "POST", add, `{"product_id":6}`, nil, 422, "out_of_stock", []string{"qty"}},
		{c, "POST", add, `{"product_id":3}`, nil, 422, "product_inactive", []string{"product_id"}},
		{c, "POST", add, `{"product_id":1e400}`, nil, 404, "product_not_found", []string{"product_id"}},
		{c, "POST", add, `{"product_id":4}`, nil, 422, "plan_unavailable", []string{"subscription_plan"}},
		{c, "POST", add, `{"product_id":5,"fields":{"0":"x","\u0000":"us"}}`, nil, 422, "field_invalid", []string{"fields.\x00"}},
		{c, "POST", add, `{"product_id":5,"fields":{"0":"\u200b"}}`, nil, 422, "field_missing", []string{"fields.Account email"}},
		{c, "PATCH", item, `{"quantity":null,"fields":null,"subscription_plan":null}`, nil, 422, "validation_failed", []string{"fields", "quantity", "subscription_plan"}},
		{c, "PATCH", item, `{"qty":1e400}`, nil, 422, "quantity_out_of_range", []string{"qty"}},
		{c, "POST", "/cart/coupon", `{"coupon":"TEN","code":"FIVE"}`, nil, 422, "validation_failed", []string{"code"}},
		{c, "POST", "/cart/coupon", `{"coupon":"OLD"}`, nil, 422, "coupon_invalid", []string{"coupon"}},
	}))
	small := s.guest(t).fill("2×1")
	wantRefused(t, []refusal{{small, "POST", "/cart/coupon", `{"coupon":"FIVE"}`, nil, 422, "coupon_minimum", []string{"coupon"}}})
	assert.Equal(t, c.tag(), before, "the cart's tag after refusals")
}

func TestBody_MustBeJSON(t *testing.T) {
	c := newShop(t).guest(t).fill("1×1")
	const fine = `{"product_id":1,"quantity":2}`
	for _, tt := range []struct {
		body    string
		headers []string // the first is at fault
	}{
		{"product_id=1&qty=2", []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{fine, []string{"Content-Type", "application/json", "Content-Type", "application/json"}},
		{fine, []string{"Content-Encoding", "gzip"}},
	} {
		refused := c.refused(415, "unsupported_media_type", "POST", "/cart/add", tt.body, tt.headers...)
		refused.names(t, tt.headers[0])
		compressed := tt.headers[0] == "Content-Encoding"
		assert.Equal(t, refused.Header.Get("Accept-Encoding") == "identity", compressed, "%v: tells which encodings are accepted", tt.headers)
		c.refused(415, "unsupported_media_type", "PATCH", "/cart/items/1", tt.body, tt.headers...).names(t, tt.headers[0])
	}
	c.wantLines("1×1")
}

// A client that asks whether to send a body that is too large gets the answer without sending it.
func TestBody_IsAskedForUnlessItIsTooLarge(t *testing.T) {
	s := openShop(t, embeddedRedis(t))
	for length, want := range map[int]int{64<<10 + 1: 413, 64 << 10: 100} {
		conn := openWeb(t, s.handler).dial(t)
		fmt.Fprintf(conn, "POST /cart/add HTTP/1.1\r\nHost: x\r\nX-Public-Key: %s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", s.Key, length)
		response := assert.Must(http.ReadResponse(bufio.NewReader(conn), nil))(t)
		assert.Equal(t, response.StatusCode, want, "first status for %d bytes", length)
	}
}

func TestExpect_OfAnythingElseIsRefusedWithAnEnvelope(t *testing.T) {
	s := openShop(t, embeddedRedis(t))
	for _, line := range []string{"GET /cart HTTP/1.1", "GET /cart HTTP/1.0", "HEAD /cart HTTP/1.1"} {
		conn := openWeb(t, s.handler).dial(t)
		fmt.Fprintf(conn, "%s\r\nHost: x\r\nExpect: gold\r\n\r\n", line)
		raw := assert.Must(io.ReadAll(conn))(t)
		response := assert.Must(http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil))(t)
		assert.Equal(t, response.StatusCode, http.StatusExpectationFailed, "%s: status", line)
		if strings.HasPrefix(line, "HEAD") {
			assert.That(t, bytes.HasSuffix(raw, []byte("\r\n\r\n")), "%s: a body: %s", line, raw)
			continue
		}
		body := assert.Must(io.ReadAll(response.Body))(t)
		var envelope struct {
			Success   bool
			Code      string
			Errors    map[string][]string
			RequestID string `json:"request_id"`
		}
		assert.NoError(t, json.Unmarshal(body, &envelope))
		assert.That(t, !envelope.Success && envelope.Code == "invalid_parameter" && len(envelope.Errors["Expect"]) == 1 &&
			envelope.RequestID == response.Header.Get("X-Request-Id"), "%s: %s", line, body)
	}
}

func TestBody_OfGETAndDELETEIsNotRead(t *testing.T) {
	c := newShop(t).guest(t)
	c.fill("1×1 2×1")
	for _, headers := range [][]string{
		{"Content-Type", "application/x-www-form-urlencoded"},
		{"Content-Type", "application/json", "Content-Encoding", "gzip"},
	} {
		for _, body := range []string{"{", strings.Repeat("x", 64<<10+1)} {
			for _, path := range []string{"/cart", "/cart/count", "/cart/validate", "/cart/summary"} {
				c.ok("GET", path, body, headers...)
			}
			c.ok("DELETE", "/cart/items/1", body, headers...)
		}
	}
	c.wantLines("2×1")
	c.ok("DELETE", "/cart/clear", `{"product_id":2`)
	c.wantLines("")
}

func TestHeaders_RepeatedOnesAreRefusedOrIgnored(t *testing.T) {
	s := newShop(t)
	c := s.guest(t)
	etag := c.add(`{"product_id":1}`).Header.Get("ETag")
	one, other := c.Token, strings.Repeat("token", 5)

	twice := s.guest(t)
	twice.ok("GET", "/cart", "", "X-Cart-Token", one, "X-Cart-Token", one)
	twice.wantLines("")
	twice.ok("GET", "/cart", "", "X-Cart-Token", one, "X-Cart-Token", other)
	assert.That(t, twice.Token != one && twice.Token != other, "one of two tokens was used")
	c.refused(400, "invalid_parameter", "POST", "/cart/add", `{"product_id":1}`, "Idempotency-Key", "a", "Idempotency-Key", "a").names(t, "Idempotency-Key")
	c.refused(400, "invalid_parameter", "GET", "/cart", "", "X-Public-Key", s.Key, "X-Public-Key", "pk_other").names(t, "X-Public-Key")
	c.ok("GET", "/cart", "", "X-Public-Key", s.Key, "X-Public-Key", s.Key)
	bearer := "Bearer " + s.token(t, "1001")
	c.refused(401, "unauthenticated", "GET", "/cart", "", "Authorization", bearer, "Authorization", bearer)
	c.ok("PATCH", "/cart/items/1", `{"quantity":2}`, "If-Match", `"other.1-a"`, "If-Match", etag)
}

func TestItemID_AnUnknownOneNamesNoLine(t *testing.T) {
	s := newShop(t)
	c := s.guest(t)
	c.add(`{"product_id":1,"notice":"n"}`)
	c.add(`{"product_id":4,"subscription_plan":41}`)
	before := c.add(`{"product_id":5,"fields":{"0":"x"}}`)
	for _, id := range []string{
		"v", "1:n", "1%3Af", "%00", "%0A1", "+1", "a%2Fb", "..%2F..%2Fcart", "%2E%2E", "01", "1.p41", "4.p42", "5.f", "%D9%A1", "%FF", strings.Repeat("9", 300),
	} {
		c.refused(404, "item_not_found", "PATCH", "/cart/items/"+id, `{"quantity":2}`)
		c.refused(404, "item_not_found", "PATCH", "/cart/items/"+id, `{"quantity":0}`)
		a := c.ok("DELETE", "/cart/items/"+id, "")
		assert.Require(t, a.Header.Get("ETag") == before.Header.Get("ETag"), "DELETE %s changed the cart: %s", id, a.Raw)
	}
	c.ok("PATCH", "/cart/items/%31", `{"quantity":2}`) // the ID, percent-encoded
	for _, path := range []string{"/cart/items/", "/cart/items/1/", "/cart/items/1/2", "/cart/items"} {
		c.refused(404, "not_found", "DELETE", path, "")
	}
}

// A truncated body must not be applied.
func TestBody_ATruncatedOneChangesNothing(t *testing.T) {
	c := newShop(t).guest(t).fill("1×1")
	r := c.request("POST", "/cart/add", &halfBody{})
	r.ContentLength = 100
	if response, err := http.DefaultTransport.RoundTrip(r); err == nil {
		response.Body.Close()
		assert.That(t, response.StatusCode >= 400, "half a body was answered with %d", response.StatusCode)
	}
	c.wantLines("1×1")
}

// halfBody ends before its Content-Length.
type halfBody struct{ sent bool }

func (b *halfBody) Read(p []byte) (int, error) {
	if b.sent {
		return 0, context.Canceled
	}
	b.sent = true
	return copy(p, `{"product_id":1}`), nil
}

func TestBody_ThatTimesOutEndsTheConnection(t *testing.T) {
	s := newShop(t)
	impatient := httptest.NewUnstartedServer(s.handler)
	impatient.Config.ReadTimeout = ephemeral.Patience(300 * time.Millisecond)
	impatient.Start()
	defer impatient.Close()
	conn := assert.Must(net.Dial("tcp", impatient.Listener.Addr().String()))(t)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /cart/add HTTP/1.1\r\nHost: x\r\nX-Public-Key: %s\r\nContent-Length: 100\r\n\r\n{", s.Key)
	assert.NoError(t, conn.SetReadDeadline(time.Now().Add(ephemeral.Patience(20*time.Second))))
	answered, err := io.ReadAll(conn)
	assert.That(t, err == nil && (len(answered) == 0 || strings.Contains(string(answered), " 408 ")), "got %q, %v; want no answer, or 408", answered, err)
	logged := s.Log.logged(t)
	last := logged[len(logged)-1]
	assert.That(t, last["status"] == 499.0 && last["level"] == "INFO", "logged as %v", last)
}

// A form shows all its faults at once. The code is that of the one which is judged first.
func TestErrors_NameEveryMemberAtFault(t *testing.T) {
	s := newShop(t)
	c := s.guest(t)
	line := c.add(`{"product_id":5,"fields":{"Account email":"b@example.com"}}`).Body.Data.Items[0].ID
	const tooMany, email = `"qty":5000`, `"Account email":"a@example.com"`
	long := `"notice":"` + strings.Repeat("x", 501) + `"`
	var rows []refusal
	for _, call := range [][2]string{{"POST", "/cart/add"}, {"PATCH", "/cart/items/" + line}} {
		for _, f := range []struct {
			members, fields, code string
			named                 []string
		}{
			{tooMany, email, "quantity_out_of_range", []string{"qty"}},
			{tooMany, email + `,"Color":"red"`, "field_invalid", []string{"fields.Color", "qty"}},
			{tooMany, email + `,"Region":"nowhere","Color":"red"`, "field_invalid", []string{"fields.Color", "fields.Region", "qty"}},
			{tooMany, `"Account email":null,"Region":"nowhere"`, "field_missing", []string{"fields.Account email", "fields.Region", "qty"}},
			{tooMany + "," + long, `"Account email":null,"Color":"red"`, "validation_failed", []string{"fields.Account email", "fields.Color", "notice", "qty"}},
			{`"qty":0.5,"subscription_plan":"x",` + long, `"Account email":["x"],"Region":"nowhere"`, "validation_failed", []string{"fields.Account email", "fields.Region", "notice", "qty", "subscription_plan"}},
		} {
			rows = append(rows, refusal{c, call[0], call[1], `{"product_id":5,"fields":{` + f.fields + "}," + f.members + "}", nil, 422, f.code, f.named})
		}
	}
	wantRefused(t, append(rows, refusal{c, "PATCH", "/cart/items/404", `{"quantity":-1,"notice":5}`, nil, 422, "validation_failed", []string{"notice", "quantity"}}))
	c.wantLines(line + "×1")
}

func TestErrors_NameAtMost50Members(t *testing.T) {
	c := newShop(t).guest(t)
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":"",`, i)
		}
		return `{"product_id":5,"fields":{` + b.String() + `"Account email":"a@example.com"}}`
	}
	assert.Equal(t, len(c.refused(422, "field_invalid", "POST", "/cart/add", keys(99)).Body.Errors), 50, "number of members that are named")
	c.refused(422, "validation_failed", "POST", "/cart/add", keys(100)).names(t, "fields")
}
