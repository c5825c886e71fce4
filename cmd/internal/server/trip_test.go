package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
)

// published sends the requests of the published storefront client in a browser. See
// npmtrip_test.go for the client itself; this one needs no Node.
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
	const plans = `{"product_id":4,"qty":1,"subscription_plan":41}|{"product_id":4,"qty":1,"subscription_plan":42}`
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
		"quantity of 0 by product": {plans, "PATCH", "/cart/items/4", `{"quantity":0}`, "4.p42×1", 3},
		"removal by product":       {plans, "DELETE", "/cart/items/4", "", "4.p42×1", 3},
		"removal of the last line": {`{"product_id":1,"qty":2}`, "DELETE", "/cart/items/1", "", "", 2},
		"clear":                    {`{"product_id":1,"qty":2}`, "DELETE", "/cart/clear", "", "", 2},
		"add by a customer":        {`customer|{"product_id":1,"qty":2}`, "POST", "/cart/add", `{"product_id":1,"qty":3}`, "1×5", 2},
		"add that merges a cart":   {`{"product_id":1,"qty":2}|customer`, "POST", "/cart/add", `{"product_id":1,"qty":3}`, "1×5", 2},
	}
	onEachRedis(t, func(t *testing.T, s *shop) {
		line := loseReplies(t, s.URL)
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
			line.carry(t, first)
			s.pass(t, time.Second)
			a := c.do(retry)
			assert.That(t, a.Status == http.StatusOK, "%s: sent again: %d %s", name, a.Status, a.Raw)
			assert.Equal(t, c.shows(tc.want, "GET", "/cart", "").Version, tc.version, "%s: version", name)
		}
		assert.Equal(t, line.lost.Load(), int64(len(cases)), "changes that were made before their reply was lost")
	})
}

// lossyLine is a proxy between client and service. It loses the first response to every
// change: the change is made, and the connection closed before the response. Reads and
// retries pass.
type lossyLine struct {
	URL            string
	lost, repeated atomic.Int64
	seen           sync.Map
}

func loseReplies(t testing.TB, service string) *lossyLine {
	t.Helper()
	line, proxy := &lossyLine{}, proxyTo(t, service)
	proxy.ModifyResponse = line.lose
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	line.URL = serveGateway(t, proxy.ServeHTTP)
	return line
}

// lose returns an error for the first response to a change.
func (l *lossyLine) lose(reply *http.Response) error {
	r := reply.Request
	if r.Method == http.MethodGet {
		return nil
	}
	change := fmt.Sprint(r.Method, r.URL.Path, r.Header["X-Timestamp"], r.Header["X-Cart-Token"], r.Header["Authorization"])
	if _, again := l.seen.LoadOrStore(change, true); again {
		l.repeated.Add(1)
		return nil
	}
	l.lost.Add(1)
	return errors.New("the reply is lost")
}

// carry sends a change through the proxy, which must lose its response.
func (l *lossyLine) carry(t testing.TB, r *http.Request) {
	t.Helper()
	over, _ := url.Parse(l.URL)
	r.URL.Host = over.Host
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		response.Body.Close()
		t.Fatalf("%s %s came back: %d", r.Method, r.URL.Path, response.StatusCode)
	}
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
