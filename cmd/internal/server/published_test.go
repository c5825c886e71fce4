package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"commerce/deploy/assert"
)

// published sends the requests of the published storefront client in a browser. The tests in docs/e2e
// drive the client itself.
type published struct{ *shopper }

func (s *shop) published(t testing.TB) published { return published{s.guest(t)} }

// request returns what the client sends: the same headers with every method, an empty body
// with DELETE, and a stamp that its own retries repeat.
func (c published) request(method, path, payload string) *http.Request {
	c.t.Helper()
	r := c.shopper.request(method, path, strings.NewReader(payload),
		"Accept", "application/json", "Accept-Language", "*", "X-Signature-Version", "v1", "X-Client-Auth", "true",
		"X-Timestamp", strconv.FormatInt(c.shop.Clock.Now().Unix(), 10))
	if method == http.MethodDelete {
		r.TransferEncoding = []string{"identity"} // net/http then sends Content-Length: 0, like browsers
	}
	return r
}

// shows makes a call after which the cart must hold these lines.
func (c published) shows(lines, method, path, payload string) cartBody {
	c.t.Helper()
	a := c.do(c.request(method, path, payload))
	assert.Require(c.t, a.Status == http.StatusOK, "%s %s %s: %d %s", method, path, payload, a.Status, a.Raw)
	got := a.Body.Data
	assert.That(c.t, got.lines() == lines, "after %s %s %s the cart holds %q, want %q", method, path, payload, got.lines(), lines)
	return got
}

// The client retries a change without a response a second later, with the same stamp.
func TestPublishedClient_ALostReplyCountsOnce(t *testing.T) {
	const plan = `{"product_id":4,"qty":1,"subscription_plan":41}|{"product_id":1,"qty":1}`
	cases := map[string]struct {
		held                  string // bodies of adds
		method, path, payload string
		want                  string // lines
		version               int64
	}{
		"add":                      {`{"product_id":1,"qty":2}`, "POST", "/cart/add", `{"product_id":1,"qty":3}`, "1×5", 2},
		"first add":                {``, "POST", "/cart/add", `{"product_id":1,"qty":3}`, "1×3", 1},
		"add of all in stock":      {``, "POST", "/cart/add", `{"product_id":2,"qty":3}`, "2×3", 1},
		"quantity":                 {`{"product_id":1,"qty":2}`, "PATCH", "/cart/items/1", `{"quantity":7}`, "1×7", 2},
		"quantity of 0 by product": {plan, "PATCH", "/cart/items/4", `{"quantity":0}`, "1×1", 3},
		"removal by product":       {plan, "DELETE", "/cart/items/4", "", "1×1", 3},
		"removal of the last line": {`{"product_id":1,"qty":2}`, "DELETE", "/cart/items/1", "", "", 2},
		"clear":                    {`{"product_id":1,"qty":2}`, "DELETE", "/cart/clear", "", "", 2},
		"add by a customer":        {`customer|{"product_id":1,"qty":2}`, "POST", "/cart/add", `{"product_id":1,"qty":3}`, "1×5", 2},
		"add that merges a cart":   {`{"product_id":1,"qty":2}|customer`, "POST", "/cart/add", `{"product_id":1,"qty":3}`, "1×5", 2},
	}
	onEachRedis(t, func(t *testing.T, s *shop) {
		for name, tc := range cases {
			c := s.published(t)
			for held := range strings.SplitSeq(tc.held, "|") {
				switch held {
				case "": // a new shopper
				case "customer":
					c.JWT = s.token(t, strings.ReplaceAll(name, " ", "-"))
				default:
					c.do(c.request("POST", "/cart/add", held))
				}
			}
			first, retry := c.request(tc.method, tc.path, tc.payload), c.request(tc.method, tc.path, tc.payload)
			retry.Header = first.Header
			lost, _ := exchange(t, first) // the client does not see it
			s.pass(t, time.Second)
			a := c.do(retry)
			assert.That(t, lost.StatusCode == http.StatusOK && a.Status == http.StatusOK, "%s: %d, and sent again: %d %s", name, lost.StatusCode, a.Status, a.Raw)
			assert.Equal(t, c.shows(tc.want, "GET", "/cart", "").Version, tc.version, "%s: version", name)
		}
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
