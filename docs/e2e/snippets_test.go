package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/deploy/assert"
)

// snippetCall is a call of the page.
type snippetCall struct {
	method, path, body string
	headers            map[string]string // in addition to those that every call has
	customer           bool
	status             int // of the response; 0 for 200
}

var snippetCalls = map[string]snippetCall{
	"read":     {method: "GET", path: "/cart"},
	"customer": {method: "GET", path: "/cart", customer: true},
	"still":    {method: "GET", path: "/cart", headers: map[string]string{"If-None-Match": "*"}, status: 304},
	"count":    {method: "GET", path: "/cart/count"},
	"validate": {method: "GET", path: "/cart/validate"},
	"summary":  {method: "GET", path: "/cart/summary"},
	"add":      {method: "POST", path: "/cart/add", body: `{"product_id":1,"qty":3}`, headers: keyed},
	"add with everything": {
		method: "POST", path: "/cart/add", headers: keyed,
		body: `{"product_id":5,"qty":1,"fields":{"Account email":"sara@example.com"},"notice":"It's \"قبل الجمعة\" $HOME \\ ` + "`id`" + `\nplease"}`,
	},
	"add a plan":    {method: "POST", path: "/cart/add", body: `{"product_id":4,"qty":1,"subscription_plan":42}`, headers: keyed},
	"add too many":  {method: "POST", path: "/cart/add", body: `{"product_id":2,"qty":9}`, headers: keyed, status: 422},
	"quantity":      {method: "PATCH", path: "/cart/items/1", body: `{"quantity":5}`, headers: map[string]string{"Idempotency-Key": "k1", "If-Match": "*"}},
	"note":          {method: "PATCH", path: "/cart/items/1", body: `{"notice":"For Omar"}`, headers: keyed},
	"remove":        {method: "DELETE", path: "/cart/items/1", headers: keyed},
	"coupon":        {method: "POST", path: "/cart/coupon", body: `{"coupon":"TEN"}`, headers: keyed},
	"coupon away":   {method: "DELETE", path: "/cart/coupon", headers: keyed},
	"one coupon":    {method: "DELETE", path: "/cart/coupon?code=TEN", headers: keyed},
	"clear":         {method: "DELETE", path: "/cart/clear", headers: keyed},
	"operations":    {method: "POST", path: "/cart/ops", body: `{"mode":"each","ops":[{"op":"remove","item":"1"},{"op":"edit","item":"2","quantity":9}]}`, headers: keyed},
	"subscriptions": {method: "GET", path: "/subscriptions?page=2&per_page=5"},
}

var keyed = map[string]string{"Idempotency-Key": "k1", "X-Timestamp": "1763632800"}

// The page of a service that only records what it gets. Each snippet makes its call once, and prints the response.
func TestSnippets_MakeTheSameCall(t *testing.T) {
	p, _ := openStore(t)
	installed := installPackages(t, "npmtrip")
	type received struct {
		call    string // its method and path
		body    any
		headers http.Header
	}
	calls := make(chan received, 9)
	var call snippetCall
	url := serveGateway(t, func(w http.ResponseWriter, r *http.Request) {
		got := received{call: r.Method + " " + r.URL.String(), headers: r.Header}
		if body, _ := io.ReadAll(r.Body); len(body) > 0 {
			assert.Succeeds(t, json.Unmarshal(body, &got.body), "the body %s", body)
		}
		calls <- got
		w.Header().Set("Content-Type", "application/json")
		switch status := call.status; {
		case status == 0, status == http.StatusNotModified && r.Header.Get("If-None-Match") == "":
			fmt.Fprint(w, `{"success":true,"data":{"count":42,"said":"by the service"}}`)
		case status == http.StatusNotModified:
			w.WriteHeader(status)
		default:
			w.WriteHeader(status)
			fmt.Fprint(w, `{"success":false,"message":"said by the service","code":"insufficient_stock","data":null}`)
		}
	})
	for name, tried := range snippetCalls {
		for kind, run := range map[string][]string{
			"curl": {"sh"}, "fetch": {"node", "--input-type=module"}, "client": {"node", "--import", asBrowser, "--input-type=module"},
		} {
			call = tried
			code := p.snippet(kind, url, call)
			program := command(t, run[0], run[1:]...)
			program.Dir, program.Stdin = installed, strings.NewReader(code)
			said, _ := program.CombinedOutput() // a refused call of the client is an uncaught error
			assert.Require(t, len(calls) == 1, "%s as %s makes %d calls:\n%s\n%s", name, kind, len(calls), code, said)
			got := <-calls
			want := received{call: call.method + " " + call.path, headers: call.allHeaders()}
			if call.body != "" {
				assert.NoError(t, json.Unmarshal([]byte(call.body), &want.body))
			}
			byClient := strings.Contains(code, "storefront.cart")
			for header := range want.headers {
				sent := !byClient || header == "X-Public-Key" || header == "X-Cart-Token" || header == "Authorization"
				assert.That(t, !sent || got.headers.Get(header) == want.headers.Get(header), "%s as %s: %s: %q", name, kind, header, got.headers[header])
			}
			assert.Equal(t, got.call, want.call, "the call of %s as %s", name, kind)
			assert.That(t, cmp.Equal(got.body, want.body), "%s as %s: %v, want %v", name, kind, got.body, want.body)
			assert.That(t, strings.Contains(string(said), call.prints(name, byClient)), "%s as %s printed\n%s", name, kind, said)
		}
	}
}

// prints is a part of what a snippet prints. The client returns the data alone, of a count only the number, and
// nothing after a clear.
func (c snippetCall) prints(name string, byClient bool) string {
	switch {
	case byClient && name == "clear":
		return ""
	case byClient && name == "count":
		return "42"
	case c.status == http.StatusNotModified && !byClient:
		return "304"
	}
	return "by the service"
}

// asBrowser makes Node.js look like a browser to the client.
const asBrowser = `data:text/javascript,globalThis.window={document:{},navigator:{}};`

func (c snippetCall) allHeaders() http.Header {
	all := http.Header{"Accept": {"application/json"}, "Accept-Language": {"en"}, "X-Public-Key": {"pk_demo"}}
	for name, value := range c.headers {
		all.Set(name, value)
	}
	if c.body != "" {
		all.Set("Content-Type", "application/json")
	}
	switch {
	case strings.HasPrefix(c.path, "/subscriptions"), c.customer:
		all.Set("Authorization", "Bearer 1|a.token")
	default:
		all.Set("X-Cart-Token", "a-token-of-22-characters")
	}
	return all
}

// snippet returns a call as the page shows it.
func (p page) snippet(kind, url string, c snippetCall) string {
	p.t.Helper()
	headers := map[string]string{}
	for name, values := range maps.All(c.allHeaders()) {
		headers[name] = values[0]
	}
	request := map[string]any{"method": c.method, "path": c.path, "url": url + c.path, "headers": headers}
	if c.body != "" {
		request["body"] = c.body
	}
	argument := assert.Must(json.Marshal(request))(p.t)
	writer := map[string]string{"curl": "codecalls.js", "fetch": "codecalls.js", "client": "clientcall.js"}[kind]
	return evaluate[string](p, fmt.Sprintf(`import("./playground/js/log/%s").then((module) => module.%sOf(%s))`, writer, kind, argument))
}
